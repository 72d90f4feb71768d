"""Links that are looked up instead of parsed: the same URLs, in bounded memory."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawld.core.link_cache import LinkCache, directory_of
from crawld.core.url import resolve

BASES = [
    "http://a.org/",
    "http://a.org/wiki/one",
    "http://a.org/wiki/two?q=a/b",
    "https://a.org/wiki/two?r",
    "http://a.org:81/wiki/deep/",
]
PLAIN = ["", "x", "/x", "./x", "../x", ".", "..", "//b.org/x", "http://b.org", "https://b.org/y?z"]
BY_PAGE = ["?a", "#a", "", " ?a", "\t#a", "\x00?a", "http:?a", "HTTP:?b", "https:#c", "hTTps:"]
OTHERS = ["mailto:a@b.org", "javascript:x", "http://", "http://a b/", "%zz", "é?ü", "a\n?b", "\\x"]

hrefs = st.lists(
    st.one_of(
        st.sampled_from(PLAIN + BY_PAGE + OTHERS),
        st.text("ab/.?#:%\\ \t\n\x01é&=", max_size=8),
        st.tuples(
            st.sampled_from(["http:", "https:", "//", "/"]), st.text("ab/.?#:", max_size=5)
        ).map("".join),
    ),
    max_size=12,
)


@given(st.lists(st.tuples(st.sampled_from(BASES), hrefs), max_size=8), st.sampled_from([1, 5, 999]))
@example([(base, BY_PAGE + PLAIN + OTHERS) for base in BASES * 2], 999)
def test_a_cache_changes_no_result(pages, generation):
    cache = LinkCache(generation)
    for base, links in pages:
        assert cache.resolve(base, links) == resolve(base, links)


@pytest.mark.parametrize("base", BASES)
def test_a_link_seen_in_the_same_directory_is_not_parsed_again(base, monkeypatch):
    cache = LinkCache()
    first = cache.resolve(base, ["x", "/y", "../z", "//b.org/"])
    monkeypatch.setattr("crawld.core.link_cache.resolver", None)
    assert (
        cache.resolve(directory_of(base) + "other?page", ["x", "/y", "../z", "//b.org/"]) == first
    )


def test_memory_is_bounded_in_links_and_in_their_length():
    cache = LinkCache(generation=100)
    cache.resolve("http://a.org/", [f"/{number}" for number in range(1_000)])
    assert len(cache) < 200
    cache = LinkCache(generation=100)
    cache.resolve("http://a.org/", ["/" + "x" * 5_000])
    assert len(cache) == 0
