"""Rules of duplicate URLs, for any rules and any URLs."""

from hypothesis import given
from hypothesis import strategies as st

from crawld.core.dust.likely import likely_rewrites
from crawld.core.dust.rewrite import Rewrite, RewriteForm, rewrite_target
from crawld.core.dust.rules import MAX_TARGET, DustRule, HostRules
from crawld.core.url import canonicalize, split_url, target_of

PIECES = st.sampled_from(
    [
        *("/", "//", "a", "A", "b", ".", "..", "index.html", "print", "%23", "%", "%2F", ";sid=1"),
        *("?", "&", "&&", "=", "sid=1", "page=1", "b=2", "(S(a1b2c3d4))", "8f3a09bc77", "%41", ";"),
    ]
)
URLS = st.lists(PIECES, max_size=12).map(
    lambda parts: canonicalize("http://a.org:8080/" + "".join(parts))
)
NAMES = st.sampled_from(
    ["a", "A", "b", "sid", "page", "print", "index.html", "%23", ";sid=", ";", ".", "%", "", "/"]
)


def rewrites():
    def named(form):
        name = st.sampled_from(["0", "1", "5"]) if form is RewriteForm.TOKEN else NAMES
        return st.builds(Rewrite, st.just(form), name.filter(bool), NAMES)

    return st.sampled_from(list(RewriteForm)).flatmap(named)


RULES = st.builds(
    HostRules,
    st.lists(st.builds(DustRule, rewrites(), st.sampled_from(["", "a", "b"])), max_size=8),
    st.just(["a", "b"]),
)


@given(RULES, URLS)
def test_rules_are_idempotent_and_stay_on_the_origin(rules, url):
    found = rules.apply(url)
    if found is None:
        return
    assert found.url != url
    assert split_url(found.url).origin == split_url(url).origin
    assert canonicalize(found.url) == found.url
    assert rules.apply(found.url) is None
    assert found.used
    assert set(found.used) <= rules.rules


@given(RULES, URLS)
def test_a_url_in_a_section_without_rules_stays(rules, url):
    section = rules.section_of(target_of(url))
    if not any(rule.section == section for rule in rules.rules):
        assert rules.apply(url) is None


@given(rewrites(), URLS)
def test_a_rewrite_keeps_a_target_a_path_from_the_root(rewrite, url):
    target = target_of(url)
    mapped = rewrite_target(target, rewrite)
    assert mapped.startswith("/") or rewrite.form in (
        RewriteForm.REPLACE,
        RewriteForm.REMOVE,
        RewriteForm.CUT,
    )


@given(st.lists(URLS, max_size=40))
def test_likely_rewrites_have_support_in_the_urls(urls):
    targets = [target_of(url) for url in urls]
    for one in likely_rewrites(targets):
        members = {}
        for target in {*targets}:
            mapped = rewrite_target(target, one.rewrite)
            members.setdefault(mapped, set()).add(target)
        assert sum(len(found) >= 2 for found in members.values()) >= one.support >= 3


def test_long_and_hostile_urls_stay():
    rules = HostRules(
        [DustRule(Rewrite(RewriteForm.DROP, "a"), ""), DustRule(Rewrite(RewriteForm.SORT), "")]
    )
    many = "/x?" + "&".join(f"a={n}" for n in range(1_000))
    assert len(many) > MAX_TARGET
    assert rules.apply_to_target(many) is None
    deep = "/" + "//" * 900
    assert rules.apply_to_target(deep) is None
