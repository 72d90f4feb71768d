"""Properties of rewriting, compared with a parser that builds the whole tree."""

from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from crawld.core.content.rewrite import rewrite_css, rewrite_html
from crawld.core.content.url_kind import UrlKind
from crawld.core.url import resolver
from tests.unit.core.content.page_urls import PAGE_URL, urls_of

SOUP = (
    *("<", ">", "=", "'", '"', "/", " ", "\n", "&amp;", "&", "&#x26;", "&lt", "#", "-", "--", "!"),
    *("<a", "<a href=", '<a href="', "<a href='", "<p ", "<p title=", "</a>", "</p>", "</", "<!--"),
    *("-->", "--!>", "<!-->", "<?", "<!x", "<img src=", "<img src='", "<b id=x ", " href=", "é"),
    *("<script>", "</script>", "</SCRIPT >", "<title>", "</title>", "<textarea>", "</textarea"),
    *("x", "y.png", "../z", "//other.org/", "https://a.org/?b=1", "?q=1&copy=2", "javascript:x"),
    *("\x00", "\xff", "mailto:a@b", "<A HREF=x>"),
    # Tags in their usual spelling take another code path.
    *('<a class="c" href="x" title="<a href=y>">', '<a class="c">', '<p class="<a href=x>">'),
    *('<a href="x" href="y">', '<span title="(<img src=x>">', '<a href="x" ping="y">', "< a>"),
)
# Not both: a style sheet inside a drawing is always read as CSS, unlike in the standard.
STYLES = (*SOUP, "<style>", "</style>")
DRAWINGS = (*SOUP, "<svg>", "</svg>", "<svg/>")
pages = st.sampled_from([STYLES, DRAWINGS]).flatmap(
    lambda soup: st.lists(st.sampled_from(soup), max_size=40).map("".join)
)


def tree_of(page: bytes) -> LexborHTMLParser:
    return LexborHTMLParser(page.decode("utf-8", "replace"))


def hrefs(page: bytes) -> list[str]:
    return [node.attrs.get("href") or "" for node in tree_of(page).css("a[href]")]


def sources(page: bytes) -> list[str]:
    return [node.attrs.get("src") or "" for node in tree_of(page).css("img[src]")]


@settings(max_examples=500)
@given(pages)
def test_urls_equal_those_of_a_parser(page):
    body = page.encode()
    found = urls_of(body)
    resolve = resolver(PAGE_URL)
    for kind, expected in ((UrlKind.LINK, hrefs(body)), (UrlKind.IMAGE, sources(body))):
        urls = {url for found_kind, url in found if found_kind is kind}
        assert {resolve(url) for url in expected if url.strip() and url[0] != "#"} <= urls | {None}


@settings(max_examples=500)
@given(pages)
def test_a_parser_sees_the_new_addresses_and_the_same_text(page):
    body = page.encode()
    resolve = resolver(PAGE_URL)
    rewritten = rewrite_html(body, PAGE_URL, lambda url, _kind: f"/m?{url}")
    before, after = hrefs(body), hrefs(rewritten)
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        target, sign, fragment = old.strip("\t\n\f\r ").partition("#")
        absolute = resolve(target) if target else None
        assert new == (old if absolute is None else f"/m?{absolute}{sign}{fragment}")
    assert tree_of(rewritten).text() == tree_of(body).text()


@given(st.binary(max_size=200) | pages.map(str.encode))
def test_urls_without_a_copy_keep_their_meaning(body):
    absolute = rewrite_html(body, PAGE_URL, lambda _url, _kind: None)
    assert rewrite_html(absolute, PAGE_URL, lambda _url, _kind: None) == absolute


@given(
    st.binary(max_size=200),
    st.sampled_from(["utf-8", "cp1252", "utf-16-le", "cp932", "iso2022_jp", "koi8-r"]),
)
def test_any_bytes_are_rewritten(body, charset):
    rewrite_html(body, PAGE_URL, lambda url, _kind: url, charset=charset)
    rewrite_css(body, PAGE_URL, lambda url, _kind: url, charset=charset)
