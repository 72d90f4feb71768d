"""What a parse reads, and that no page makes it fail or take long."""

import pytest

from crawld.core.content.html import MAX_TITLE_CHARACTERS, parse, refresh_target

PAGE = """<!doctype html><html lang="de"><head><title> Zwei
 Zeilen </title><base href="/b/"><link rel="canonical" href="/c">
<meta name="Robots" content="NOARCHIVE, none"><meta http-equiv=refresh content="3; URL='/next'">
<meta name="generator" content="MediaWiki 1.39"><link rel="EditURI" href="//w/api.php?action=rsd">
<link rel=alternate type="application/atom+xml" href="/feed">
<link rel=alternate hreflang=en href=/en>
<link rel="stylesheet" href="/s.css"><link rel="shortcut icon" href="/i.ico"></head><body>
<a href="one?x=1&amp;y=2">1</a><a name=no>-</a><area href=two><a rel="external nofollow" href=3>
<a href>empty</a><template><a href=hidden></a></template><svg><a href=svg></a>
<a xlink:href=xlink></a></svg>
<img src=a.png srcset="b.png 1x, c,d.png 2x"><script src=e.js></script><img src="data:image/png,x">
<p>unclosed <b>never"""


def test_reads_links_and_head():
    page = parse(PAGE)
    assert page.title == "Zwei Zeilen"
    assert (page.lang, page.base, page.canonical) == ("de", "/b/", "/c")
    assert page.links == ("one?x=1&y=2", "two", "3", "svg", "xlink")
    assert page.nofollow_links == {"3"}
    assert page.robots == {"noarchive", "none", "noindex", "nofollow"}
    assert page.refresh == "/next"
    assert (page.generator, page.edit_uri) == ("MediaWiki 1.39", "//w/api.php?action=rsd")
    assert page.parsed_bytes == len(PAGE.encode())
    assert page.requisites() == ("/s.css", "/i.ico", "a.png", "b.png", "c,d.png", "e.js")


def test_frames_are_links():
    page = parse("<iframe src=/a srcdoc=x></iframe><a href=b><frameset><frame src=c><iframe>")
    assert page.links == ("/a", "b")
    assert parse("<frameset><frame src=c><frame src=></frameset>").links == ("c",)


@pytest.mark.parametrize("html", ["", " ", "\0", "\ud800", "<", "<a href=", b"\xff\xfe<", "<!--"])
def test_broken_pages_are_parsed(html):
    page = parse(html)
    assert page.links == () or page.links == ("",)
    assert page.title == ""


def test_links_are_capped():
    page = parse("<a href=x>y</a>" * 100_000)
    assert len(page.links) == 10_000
    assert len(parse("<a href=x>y</a>" * 30, max_links=30).links) == 30
    images = "".join(f"<img src={number}>" for number in range(10_001))
    assert len(parse(images).requisites()) == 10_000


@pytest.mark.parametrize(
    "rest",
    [
        lambda: "<div>" * 100_000,
        lambda: "<table><tr><td>" * 100_000,
        lambda: "<p>" + "".join(f"<b id={n}>" for n in range(5_000)) + "</p>" + "<p>x</p>" * 5_000,
        lambda: "<div " + " ".join(f"a{n}=1" for n in range(100_000)) + ">",
        lambda: "<div " + " ".join(f"<a{n}" for n in range(20_000)) + ">",
        lambda: "<div " + " ".join(f'a{n}=">"' for n in range(20_000)) + ">",
        lambda: "<div x' " + "".join(f"a{n}=b=' c{n}='>'" for n in range(9_000)) + ">",
        lambda: "\0" * 9_000_000,
    ],
    ids=["deep", "tables", "clones", "attributes", "signs", "quoted", "stray quotes", "long"],
)
def test_pages_beyond_the_limits_are_cut(rest):
    html = "<a href=first></a>" + rest()
    page = parse(html)
    assert page.links == ("first",)
    assert page.parsed_bytes < len(html)


@pytest.mark.parametrize(
    "html",
    [
        "<ul>" + "<li>item <br>" * 20_000 + "</ul>",
        "<p>" + "<b>x</b>" * 20_000,
        "<p>x" * 20_000,
        f'<img src="data:image/png;base64,{"aB/+" * 50_000}">' + "<p>x</p>" * 2_000,
        "</div>" * 20_000,
        "<p>" + "<b title='1 > 0' class=x>a < b</b>" * 3_000 + "</p>",
        "<script>for (i=0; i<n; i++) x[i] = 'it is so, and it stays so'</script>" * 1_000,
    ],
)
def test_ordinary_large_pages_are_not_cut(html):
    assert parse(html).parsed_bytes == len(html)


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("5; url=/a", "/a"),
        ('0;URL="http://x/?a=1;b=2"', "http://x/?a=1;b=2"),
        ("0, /b", "/b"),
        ("600", None),
        ("", None),
        ("1.5;", None),
        ("0; url=/" + "a" * 40_000, None),
        (" " * 400 + "0; url=/" + "a" * 40_000, None),
        (" " * 40_000 + "0; url=/c", "/c"),
    ],
)
def test_refresh(content, target):
    assert refresh_target(content) == target


def test_nofollow_in_any_case():
    page = parse("<a rel='external Nofollow' href=/a>a</a><a rel=nofollowing href=/b>b</a>")
    assert page.nofollow_links == {"/a"}


def test_values_of_the_head_are_cut_and_longer_urls_are_left_out():
    long = "x" * 500_000
    page = parse(
        f"<html lang={long}><title>{long}</title><base href={long}><link rel=canonical href={long}>"
        f"<link rel=EditURI href={long}><meta name=generator content={long}>"
        f"<meta name=robots content='noarchive,{long}'><a href={long}>a</a><a href=b rel=nofollow>"
        f"<img srcset='{long} 1x, c.png 2x'>"
    )
    assert page.title == "x" * MAX_TITLE_CHARACTERS
    assert max(len(page.lang), len(page.generator), *map(len, page.robots)) <= 1_000
    assert "noarchive" in page.robots
    assert (page.base, page.canonical, page.edit_uri) == ("", None, None)
    assert (page.links, page.nofollow_links) == (("b",), {"b"})
    assert page.requisites() == ("c.png",)
