"""The URLs of HTML and CSS, and their kinds."""

import pytest

from crawld.core.content.markup import start_tags, unescape
from crawld.core.content.references import css_references, linked_href
from crawld.core.content.url_kind import UrlKind
from crawld.core.content.url_syntax import css_unescape, refresh_url_span, srcset_url_spans
from tests.unit.core.content.page_urls import urls_of

ROOT = "http://a.test/"


def found(page, **options):
    body = page if isinstance(page, bytes) else page.encode()
    return [(str(kind), url.removeprefix(ROOT)) for kind, url in urls_of(body, ROOT, **options)]


@pytest.mark.parametrize(
    ("page", "kind", "url"),
    [
        ('<a href="x">', "link", "x"),
        ("<AREA HREF=x/y>", "link", "x/y"),
        ("<a href = 'a b' >", "link", "a%20b"),
        ('<a title=a"b href=x>', "link", "x"),
        ('<a\nclass="a>b"\nhref="x">', "link", "x"),
        ('<a href="?a=1&amp;b=2&copy=3">', "link", "?a=1&b=2&copy=3"),
        ('<svg><a xlink:href="x">', "link", "x"),
        ('<img src="x">', "image", "x"),
        ('<image xlink:href="x">', "image", "x"),
        ('<input type=image src="x">', "image", "x"),
        ('<body background="x">', "image", "x"),
        ('<table><td BACKGROUND\n= "x">', "image", "x"),
        ('<video poster="x">', "image", "x"),
        ('<video src="x">', "media", "x"),
        ('<track src="x">', "media", "x"),
        ('<script src="x">', "script", "x"),
        ('<iframe src="x">', "frame", "x"),
        ('<object data="x">', "object", "x"),
        ('<embed src="x">', "object", "x"),
        ('<form action="x">', "form", "x"),
        ('<button formaction="x">', "form", "x"),
        ('<link rel="StyleSheet" href="x">', "style", "x"),
        ('<link href="x" rel="alternate stylesheet">', "style", "x"),
        ('<link rel="shortcut icon" href="x">', "icon", "x"),
        ('<link rel="preload" as="font" href="x">', "font", "x"),
        ('<link rel="preload" href="x">', "data", "x"),
        ('<link rel="modulepreload" href="x">', "script", "x"),
        ('<link rel="manifest" href="x">', "manifest", "x"),
        ('<link rel="next" href="x">', "link", "x"),
        ('<link rel="canonical" href="x">', "mention", "x"),
        ('<q cite="x">', "mention", "x"),
        ('<meta http-equiv="Refresh" content="0;URL=x">', "refresh", "x"),
        ('<meta content="0;URL=x" http-equiv="&#114;efresh">', "refresh", "x"),
        ('<p style="background: url(x)">', "image", "x"),
        ('<p style="background: url(&quot;x&quot;)">', "image", "x"),
        ('<rect fill="url(x)">', "image", "x"),
        ("<style>@import 'x'</style>", "style", "x"),
        ('<iframe srcdoc="&lt;img src=x&gt;">', "image", "x"),
        ('<svg><style/><a href="x">', "link", "x"),
        ('<svg><title>a<a href="x"></a></title></svg>', "link", "x"),
        ('<svg><p><title></title><a href="x">', "link", "x"),
        ("<noscript><img src=x></noscript>", "image", "x"),
        ("<!--><a href=x>", "link", "x"),
        ("<!-- a --!><a href=x>", "link", "x"),
        ("</a title='<a href=no>'><a href=x>", "link", "x"),
    ],
)
def test_each_location(page, kind, url):
    assert found(page) == [(kind, url)]


@pytest.mark.parametrize(
    "page",
    [
        "",
        "<",
        "<a",
        "<a href=x",
        '<a href="x>',
        "<a href>",
        "<a name=x>",
        "<abbr href=x>",
        "<a href=javascript:alert(1)>",
        "<a href=' JavaScript:x'>",
        "<a href=mailto:a@b>",
        "<a href='#top'>",
        "<img src=data:image/png;base64,AA>",
        "<!-- <a href=x> -->",
        "<!-- <a href=x>",
        "<script>'<a href=x>'</script>",
        "<script>'<a href=x>'",
        "<title><a href=x></title>",
        "<textarea></textare><a href=x></textarea>",
        "<plaintext><a href=x>",
        '<p title="<a href=x>">',
        "<? <a href=x ?>".replace("<a", "a"),
        "<base href=x>",
        "<meta http-equiv=refresh content=5>",
        "<script/><a href=x>",
    ],
)
def test_pages_without_references(page):
    assert found(page) == []


def test_srcset_keeps_commas_inside_urls():
    page = '<img src=a srcset="b 1x, c,d.png 2x,e.png, f (a,b) 3x ,data:image/png;base64,AA 4x">'
    assert [url for _, url in found(page)] == ["a", "b", "c,d.png", "e.png", "f"]


@pytest.mark.parametrize(
    ("value", "urls"),
    [("", []), (" , ", []), ("a,", ["a"]), ("a,,b", ["a,,b"]), ("a 1x,b 2x", ["a", "b"])],
)
def test_srcset(value, urls):
    assert [value[start:end] for start, end in srcset_url_spans(value)] == urls


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("5; url=x", "x"),
        ("0;URL = 'x y' z", "x y"),
        ("url=x", "x"),
        ("3,x", "x"),
        (' 1.5 ;url="x', "x"),
        ("5", None),
        ("5; url=", None),
    ],
)
def test_refresh(value, url):
    place = refresh_url_span(value)
    assert (value[slice(*place)] if place else None) == url


@pytest.mark.parametrize(
    ("css", "references"),
    [
        ("a{background:url(x)}", [("image", "x")]),
        ("a{background:URL( 'x y' )}", [("image", "x y")]),
        (r"a{background:url(x\29 y)}", [("image", "x)y")]),
        ("@import url(x) print;", [("style", "x")]),
        ('@import"x";', [("style", "x")]),
        ('@import/* y */ /**//***/"x";', [("style", "x")]),
        ('@import/* "y"', []),
        ("@font-face{font-family:a;src:url(x) format('w'),url(y)}", [("font", "x"), ("font", "y")]),
        ("@font-face{src:url(x)}a{b:url(y)}", [("font", "x"), ("image", "y")]),
        ('a{b:image-set("x" 1x, url(y) 2x type("z"))}', [("image", "x"), ("image", "y")]),
        ("@namespace url(x);a{b:url(y)}", [("image", "y")]),
        ("/* url(x) */", []),
        ("a{content:'url(x)'}", []),
        ("a{b:url()}", []),
        ("a{b:url(#x)}", []),
        ("a{b:url(data:,x)}", []),
        ("a{b:url(x", []),
        ('a{b:"\nurl(x)', [("image", "x")]),
    ],
)
def test_css(css, references):
    assert [(str(kind), url) for kind, url in css_references(css)] == references


def test_css_escapes():
    assert css_unescape("a\\\nb\\41 c\\0\\110000 \\\\") == "abAc\ufffd\ufffd\\"


def test_names_without_semicolon_are_not_references_in_attributes():
    assert unescape("&lt&lt=&ltx&lt;&amp;lt;&nothing;&#x41;=") == "<&lt=&ltx<&lt;&nothing;A="


def test_other_charsets():
    assert found("<a href=ж>".encode("cp1251"), charset="cp1251") == [("link", "%D0%B6")]
    assert found("<a href=ж>".encode("utf-16-le"), charset="utf-16-le") == [("link", "%D0%B6")]
    # The second byte of 表 in Shift_JIS is a backslash.
    page = "<style>a{content:'表'}b{c:url(x)}</style>".encode("cp932")
    assert found(page, charset="cp932") == [("image", "x")]
    assert found(b"<a href=\xff\xfe>", charset="utf-8") == [("link", "%EF%BF%BD" * 2)]


def test_in_xml_an_empty_element_has_no_raw_text():
    page = "<html><script src='s'/><title/><a href='x'/></html>"
    assert found(page, xml=True) == [("script", "s"), ("link", "x")]


def test_duplicate_attributes_count_once():
    assert found("<a href=x href=y HREF=z>") == [("link", "x")]


@pytest.mark.parametrize(
    "part",
    [
        *("<a ", "<a href=x", '<a b="', "<!--", "<!-", "</a ", "<style>", "<script>", "<svg>"),
        *("<textarea>", "<img srcset=',", "&", "<p style='url(", "<style>@font-face"),
        *("<style>image-set((", '<style>url("', "<style>/*", "a="),
    ],
)
def test_work_is_linear(part):
    """A quadratic pattern would take minutes for these 400 KB."""
    page = part * (400_000 // len(part))
    assert sum(1 for _ in start_tags(page)) <= len(page)
    assert len(urls_of(page.encode())) <= len(page)
    assert len(list(css_references(page))) <= len(page)


@pytest.mark.parametrize(
    ("page", "href"),
    [
        ("<a rel=license href=a><LINK REL='other License' HREF=' x&amp;y '>", " x&y "),
        ("<link rel=copyright><link rel=license href=x>", ""),
        ("<link rel=stylesheet href=x><link href=y>", None),
        ("rel=license href=x", None),
    ],
)
def test_a_link_element_is_found_by_its_relation(page, href):
    assert linked_href(page, {"license", "copyright"}) == href


def test_kinds_are_strings():
    assert all(kind == kind.name.lower() for kind in UrlKind)
