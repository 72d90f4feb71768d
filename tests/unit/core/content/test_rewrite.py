"""URLs of pages and style sheets are rewritten, every other byte is kept."""

import time
import tracemalloc

import pytest

from crawld.core.content import rewrite
from crawld.core.content.rewrite import rewrite_css, rewrite_html
from crawld.core.content.url_kind import UrlKind
from crawld.web.large_pages import RENDERING_FACTOR
from tests.unit.core.content.hostile_pages import HOSTILE_PAGES
from tests.unit.steps import assert_linear

PAGE_URL = "https://example.org/d/page"


def to_mirror(url, _kind):
    return None if "elsewhere" in url else "/" + url.replace("://", "/", 1)


def html(page, **options):
    body = page if isinstance(page, bytes) else page.encode()
    return rewrite_html(body, PAGE_URL, to_mirror, **options).decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("page", "rewritten"),
    [
        ('<a href="x">', '<a href="/https/example.org/d/x">'),
        ("<a href=x>", '<a href="/https/example.org/d/x">'),
        ("<a href='x'>", "<a href='/https/example.org/d/x'>"),
        ("<a href=x>y</a>", '<a href="/https/example.org/d/x">y</a>'),
        ('<a href="">', '<a href="">'),
        ("<base href=/b><a href>", '<base ><a href="/https/example.org/b">'),
        ("<base href=/b><a href= >", '<base ><a href= "/https/example.org/b">'),
        (
            "<base href=/b><img src='' srcset='' style='' >",
            "<base ><img src='' srcset='' style='' >",
        ),
        ("<img src>", "<img src>"),
        ('<a href="../x#a?b">', '<a href="/https/example.org/x#a?b">'),
        ('<a href="?a&amp;b">', '<a href="/https/example.org/d/page?a&amp;b">'),
        ('<a href="?a&b">', '<a href="/https/example.org/d/page?a&amp;b">'),
        ('<a href="//elsewhere.org">', '<a href="https://elsewhere.org/">'),
        ('<a href="https://elsewhere.org/x">', '<a href="https://elsewhere.org/x">'),
        ('<a href="https://elsewhere.org/?a&b">', '<a href="https://elsewhere.org/?a&b">'),
        ('<a href="http://other.org:8080/x">', '<a href="/http/other.org:8080/x">'),
        ('<a href="/../../etc/passwd">', '<a href="/https/example.org/etc/passwd">'),
        ('<a href="/%2e%2e/x">', '<a href="/https/example.org/x">'),
        ('<a href="#x">', '<a href="#x">'),
        ('<a href="javascript:x">', '<a href="javascript:x">'),
        ('<base href="/b/"><a href="x">', '<base ><a href="/https/example.org/b/x">'),
        ('<a href="x"><BASE HREF=/b/>', '<a href="/https/example.org/b/x"><BASE >'),
        ('<base href="/b/"><a href="#x">', '<base ><a href="/https/example.org/b/#x">'),
        ('<base href="javascript:x"><a href="y">', '<base ><a href="/https/example.org/d/y">'),
        (
            '<base href="//elsewhere.org/a/"><a href="b">',
            '<base ><a href="https://elsewhere.org/a/b">',
        ),
        ('<a ping="/p" href="#x">', '<a  href="#x">'),
        ('<script integrity="x" crossorigin>', "<script  >"),
        ('<link rel=preconnect href="//x">', '<link rel=preconnect href="data:,">'),
        ('<link rel="dns-prefetch" href="//x">', '<link rel="dns-prefetch" href="data:,">'),
        ('<meta http-equiv="Content-Security-Policy" content="x">', '<meta  content="x">'),
        (
            '<meta http-equiv=refresh content="5; url=x">',
            '<meta http-equiv=refresh content="5; url=/https/example.org/d/x">',
        ),
        (
            '<img srcset="a 1x, b,c 2x">',
            '<img srcset="/https/example.org/d/a 1x, /https/example.org/d/b,c 2x">',
        ),
        (
            '<base href=/b/><p style="b:url(#x)"><svg><use href="#y" fill="url(#z)">',
            '<base ><p style="b:url(#x)"><svg><use href="#y" fill="url(#z)">',
        ),
        (
            '<p style="b:url(&quot;x&quot;)">',
            '<p style="b:url(&quot;/https/example.org/d/x&quot;)">',
        ),
        ("<p style=b:url(x)>", '<p style="b:url(/https/example.org/d/x)">'),
        (
            "<iframe srcdoc='<a href=\"x\">'>",
            "<iframe srcdoc='&lt;a href=\"/https/example.org/d/x\">'>",
        ),
        (
            "<style>@import 'x';</style>",
            "<style>@import '/https/example.org/d/x';</style>",
        ),
    ],
)
def test_html(page, rewritten):
    assert html(page) == rewritten


def test_other_bytes_stay():
    page = b"\xff<p>\x00<A  HREF = 'x'\t>\xc3\x28<!-- <a href=x> --><b \xe9=1 ></b\n>\r"
    expected = page.replace(b"'x'", b"'/https/example.org/d/x'")
    assert rewrite_html(page, PAGE_URL, to_mirror) == expected


def test_urls_in_the_charset_of_the_page():
    page = '<a href="ж?ю">ж</a>'.encode("cp1251")
    rewritten = rewrite_html(page, PAGE_URL, to_mirror, charset="cp1251").decode("cp1251")
    assert rewritten == '<a href="/https/example.org/d/%D0%B6?%D1%8E">ж</a>'


def test_addresses_with_characters_outside_the_charset():
    rewritten = rewrite_html(b'<a href="x">', PAGE_URL, lambda _url, _kind: 'ж"&', charset="cp1252")
    assert rewritten == b'<a href="&#1078;&quot;&amp;">'


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16-be", "cp932", "gb18030", "iso2022_jp"])
def test_charsets_that_cannot_be_edited_bytewise(charset):
    page = '<meta charset=x><a href="表">表</a>'.encode(charset)
    rewritten = html(page, charset=charset)
    expected = '\ufeff<meta charset=x><a href="/https/example.org/d/%E8%A1%A8">表</a>'
    assert rewritten == expected


def test_locate_gets_the_kind():
    asked = []

    def locate(url, kind):
        asked.append((url, kind))

    page = b'<a href=x><img src=x><a href="x#1"><link rel=icon href=/i>'
    rewrite_html(page, "http://a.org/", locate)
    assert asked == [
        ("http://a.org/x", UrlKind.LINK),
        ("http://a.org/x", UrlKind.IMAGE),
        ("http://a.org/x", UrlKind.LINK),
        ("http://a.org/i", UrlKind.ICON),
    ]


def test_a_leading_comma_does_not_split_a_candidate():
    page = rewrite_html(b'<img srcset="a 1x">', PAGE_URL, lambda *_: ",a")
    assert page == b'<img srcset="./,a 1x">'


def test_nested_documents_are_limited():
    page = "<a href=x>"
    for _ in range(4):
        page = '<iframe srcdoc="' + page.replace("&", "&amp;").replace('"', "&quot;") + '">'
    assert html(page).count("srcdoc") == 3


@pytest.mark.parametrize(
    ("css", "rewritten"),
    [
        ("a{b:url(x)}", "a{b:url(/https/example.org/d/x)}"),
        ("a{b:url( 'x' )}", "a{b:url( '/https/example.org/d/x' )}"),
        (r"a{b:url(x\)y)}", "a{b:url(/https/example.org/d/x\\29 y)}"),
        ('a{b:url("x\'y")}', 'a{b:url("/https/example.org/d/x\\27 y")}'),
        (r"a{b:url(?x\3c/style\>)}", "a{b:url(/https/example.org/d/page?x%3C/style%3E)}"),
        (r"a{b:url(x#\3c/style\>\\)}", r"a{b:url(/https/example.org/d/x#\3c /style>\5c )}"),
        ("@import '//elsewhere.org/x'", "@import 'https://elsewhere.org/x'"),
        ("a{b:url(#x)}", "a{b:url(#x)}"),
        ("a{b:url(data:,x)}", "a{b:url(data:,x)}"),
        ("a{b:'url(x)'}", "a{b:'url(x)'}"),
    ],
)
def test_css(css, rewritten):
    assert rewrite_css(css.encode(), PAGE_URL, to_mirror).decode() == rewritten


def test_a_hundred_thousand_links():
    page = "".join(f'<a href="p{number}">x</a>' for number in range(100_000))
    rewritten = html(page)
    assert rewritten.count('"/https/example.org/d/p') == 100_000


def test_a_url_that_is_too_long_stays():
    page = f'<a href="{"x" * 9_000}">'
    assert html(page) == page


@pytest.mark.parametrize(
    ("page", "rewritten"),
    [
        ("<title>t</title><body class=a><p>", "<title>t</title><body class=a>[é]<p>"),
        ("<script>'<body>'</script><p>", "<script>'<body>'</script><p>[é]"),
        ("<body><body>", "<body>[é]<body>"),
        ("", "[é]"),
    ],
)
def test_inserted_markup(page, rewritten):
    assert html(page, insert="[é]") == rewritten


@pytest.mark.parametrize("sign", ["1", "x1", "0"])
def test_an_endless_character_reference_is_read(sign):
    page = f'<a href="/&#{sign}{"1" * 100_000}">'.encode()
    assert rewrite_html(page, "http://a.test/", lambda url, kind: None).count(b"%EF%BF%BD") == 1


@pytest.mark.parametrize("kind", HOSTILE_PAGES)
def test_the_time_of_a_rewrite_is_linear(kind):
    def rewritten(page):
        rewrite_html(page, "http://a.test/", lambda url, kind: None)

    assert_linear(lambda size: HOSTILE_PAGES[kind](size).encode(), rewritten, size=4_000)
    started = time.process_time()
    rewritten(HOSTILE_PAGES[kind](200_000).encode())
    assert time.process_time() - started < 10


@pytest.mark.parametrize("link", ["<a href='/%d'>x</a>", '<a href="/%d">x</a>', "<img src=%d>"])
def test_a_page_of_links_takes_a_few_times_its_size(monkeypatch, link):
    monkeypatch.setattr(rewrite, "MAX_REMEMBERED", 500)
    monkeypatch.setattr(rewrite, "JOINED_PARTS", 500)
    body = "".join(link % number for number in range(15_000)).encode()
    rewrite_html(body, "http://a.test/", lambda url, kind: "/" + url)
    tracemalloc.start()
    try:
        rewritten = rewrite_html(body, "http://a.test/", lambda url, kind: "/" + url)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(rewritten) > len(body)
    assert peak_bytes < RENDERING_FACTOR * len(body)
