import pytest

from crawld.core.scope import Scope, ScopeRule
from crawld.core.url import canonicalize, split_url
from crawld.errors import ConfigError

HOSTS = frozenset({"a.org", "::1"})


def rules(*texts):
    return tuple(ScopeRule(*text.split(":", 1)) for text in texts)


def check(scope, raw, expected, depth=0):
    text = canonicalize(raw)
    assert scope.refusal(text, split_url(text).host, depth) == expected


@pytest.mark.parametrize(
    ("include", "exclude", "raw", "expected"),
    [
        ([], [], "http://a.org/x", None),
        ([], [], "https://a.org:8443/x", None),
        ([], [], "http://[::1]/x", None),
        ([], [], "http://b.org/", "host"),
        ([], [], "http://www.a.org/", "host"),
        (["prefix:/wiki/"], [], "http://a.org/wiki/A", None),
        (["prefix:/wiki/"], [], "http://a.org/w/wiki/A", "include"),
        (["prefix:/wiki/"], [], "http://a.org/?/wiki/", "include"),
        (["prefix:/wiki/", "prefix:/doc/"], [], "http://a.org/doc/A", None),
        (["prefix:/wiki/"], ["prefix:/wiki/Special:"], "http://a.org/wiki/Special:Log", "exclude"),
        (["prefix:http://a.org/x"], [], "http://a.org/xy", None),
        (["prefix:http://a.org/x"], [], "https://a.org/xy", "include"),
        (["prefix:HTTP://A.org:80/x"], [], "http://a.org/xy", None),
        (["prefix:http://a.org"], [], "http://a.org:8080/", "include"),
        (["prefix:/wiki/Café"], [], "http://a.org/wiki/Caf%C3%A9_noir", None),
        (["prefix:/."], [], "http://a.org/x", "include"),
        (["prefix:/x?"], [], "http://a.org/x", "include"),
        (["prefix:/x?"], [], "http://a.org/x?y", None),
        (["glob:/wiki/*"], [], "http://a.org/wiki/A/B", None),
        (["glob:/wiki/*"], [], "http://a.org/x/wiki/A", "include"),
        (["glob:/*.html"], [], "http://a.org/x/y.html", None),
        (["glob:/*.html"], [], "http://a.org/x/y.html?z", "include"),
        (["glob:/a?c"], [], "http://a.org/abc", None),
        (["glob:/é*"], [], "http://a.org/%C3%A9t%C3%A9", None),
        (["glob:http*://a.org/x"], [], "https://a.org/x", None),
        ([], ["glob:*.pdf"], "http://a.org/x.pdf", "exclude"),
        ([], ["glob:*.pdf", "glob:*.zip"], "http://a.org/x.zip", "exclude"),
        ([], ["glob:*.pdf"], "http://a.org/x.pdfa", None),
        ([], ["regex:[?&]action=(edit|raw)"], "http://a.org/w?t=1&action=edit", "exclude"),
        ([], ["regex:[?&]action=(edit|raw)"], "http://a.org/w?t=1&action=view", None),
        (["regex:^http://a\\.org/[0-9]+$"], [], "http://a.org/17", None),
        (["regex:^http://a\\.org/[0-9]+$"], [], "http://a.org/17a", "include"),
        (["regex:(a)\\1", "regex:(b)\\1"], [], "http://a.org/bb", None),
    ],
)
def test_rules(include, exclude, raw, expected):
    check(Scope(rules(*include), rules(*exclude), None, HOSTS, False), raw, expected)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("http://a.org/", None),
        ("http://www.a.org/", None),
        ("http://x.y.a.org/", None),
        ("http://ba.org/", "host"),
        ("http://org/", "host"),
        ("http://a.org.b.net/", "host"),
    ],
)
def test_subdomains(raw, expected):
    check(Scope(hosts=HOSTS, subdomains=True), raw, expected)


@pytest.mark.parametrize(
    ("max_depth", "depth", "expected"),
    [(None, 10**6, None), (0, 0, None), (0, 1, "depth"), (3, 3, None), (3, 4, "depth")],
)
def test_depth(max_depth, depth, expected):
    check(Scope(max_depth=max_depth, hosts=HOSTS), "http://a.org/", expected, depth)


def test_the_cheapest_reason_comes_first():
    scope = Scope(exclude=rules("prefix:/"), max_depth=0, hosts=HOSTS)
    assert scope.refusal("ftp://b.org/", "b.org", 9) == "scheme"
    check(scope, "http://b.org/", "depth", depth=1)
    check(scope, "http://b.org/", "host")
    check(scope, "http://a.org/", "exclude")


def test_a_scope_without_hosts_admits_nothing():
    check(Scope(), "http://a.org/", "host")


@pytest.mark.parametrize(
    ("kind", "pattern", "message"),
    [
        ("regex", "[a-", r"'\[a-' does not compile"),
        ("regex", "(?P<x>a)(?P<x>b)", "does not compile"),
        ("regex", "a{99999999999}", "does not compile"),
        ("prefix", "", "is empty"),
        ("prefix", "wiki/", "begins neither a URL nor a path"),
        ("prefix", "ftp://a.org/", "begins neither a URL nor a path"),
        ("suffix", ".pdf", "unknown rule kind 'suffix'"),
    ],
)
def test_an_error_names_the_invalid_rule(kind, pattern, message):
    with pytest.raises(ConfigError, match=message) as caught:
        ScopeRule(kind, pattern)
    assert caught.value.hint


def test_the_first_rule_that_excludes_a_url_is_named():
    rules = (
        ScopeRule("prefix", "/a/"),
        ScopeRule("glob", "*.pdf"),
        ScopeRule("regex", "[?&]print="),
        ScopeRule("prefix", "/a/b"),
    )
    scope = Scope(exclude=rules, hosts=frozenset({"a.org"}))
    for target, at in [("/a/b", 0), ("/x.pdf", 1), ("/x?print=1", 2), ("/x", None)]:
        url = f"https://a.org{target}"
        assert scope.excluding_rule(url) == at
        assert Scope(include=rules, hosts=frozenset({"a.org"})).including_rule(url) == at
        assert (scope.refusal(url, "a.org", 0) == "exclude") == (at is not None)
