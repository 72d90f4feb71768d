"""URLs in CSS, srcset and refresh are found in linear time, whatever the text is."""

import time

import pytest

from crawld.core.content.html import refresh_target
from crawld.core.content.rewrite import rewrite_css
from crawld.core.content.url_kind import UrlKind
from crawld.core.content.url_syntax import (
    MAX_CSS_CHARACTERS,
    MAX_SRCSET_CANDIDATES,
    css_unescape,
    css_url_spans,
    refresh_url_span,
    srcset_url_spans,
)
from tests.unit.steps import assert_linear

HOSTILE_CSS = [
    *('"\\"', '"', '\\"', "'", "url(", 'url("', 'url("\\"', "url(a\\(", 'url(a"', "/*", "*/*"),
    *("image-set(", "image-set(()", 'image-set("', "image-set(type(", "image-set((", "@import"),
    *("@import/*", "@import url(", '@import "\\"', "@font-face", "@font-face{", "@font-face{url("),
    *("@font-face{/*", "@namespace", "u", "i", "@", "/", "\\", '\n"', "\"\n'", "url( ", "url()"),
]


def css_urls(css):
    return [(css[start:end], kind) for start, end, kind in css_url_spans(css)]


@pytest.mark.parametrize("unit", HOSTILE_CSS)
def test_the_time_for_css_is_linear(unit):
    assert_linear(lambda size: unit * size, css_urls, size=1_000)
    # What the steps do not see: a quadratic match of this size would take minutes.
    started = time.process_time()
    css_urls(unit * (1_000_000 // len(unit)))
    assert time.process_time() - started < 20


@pytest.mark.parametrize("unit", [",", ", ", "a,", "a (", "(", " ", "a b", "a ()", ",a", "a 1x,"])
def test_the_time_for_srcsets_is_linear(unit):
    assert_linear(lambda size: unit * size, lambda value: list(srcset_url_spans(value)))
    started = time.process_time()
    list(srcset_url_spans(unit * 500_000))
    assert time.process_time() - started < 20


@pytest.mark.parametrize("unit", [" ", "'a", "0", ".", ";", "url=", "\"'", " '", "0; "])
def test_the_time_for_a_refresh_is_linear(unit):
    assert_linear(lambda size: unit * size, refresh_url_span)
    started = time.process_time()
    refresh_url_span(unit * 500_000)
    refresh_target(" " * 400 + "'a'b'" + unit * 100_000)
    css_unescape("\\" + unit * 500_000)
    assert time.process_time() - started < 20


def test_broken_css_is_read_as_a_browser_reads_it():
    image, style, font = UrlKind.IMAGE, UrlKind.STYLE, UrlKind.FONT
    # A string without its quote ends with the line; a URL without its parenthesis is none.
    assert css_urls("a{b:'url(x)\n;c:url(d)}") == [("d", image)]
    assert css_urls("a{b:url(x y);c:url(d)}") == [("d", image)]
    assert css_urls('url("a"') == []
    assert css_urls("@import 'a") == []
    # An escaped quote outside a string opens none.
    assert css_urls(".content-\\'s{b:url(d)}") == [("d", image)]
    # What is open at the end of the text is closed there.
    assert css_urls("@font-face{src:url(f)") == [("f", font)]
    assert css_urls("image-set('a' 1x, calc(1), url(b) 2x") == [("a", image), ("b", image)]
    # A declaration ends an image-set without its parenthesis.
    assert css_urls("x{b:image-set('a' 1x;content:'c'}@import 'd';") == [
        ("a", image),
        ("d", style),
    ]


def test_a_token_of_very_many_parts_ends_early():
    # A match of `re` cannot be interrupted.
    assert css_urls('url("' + "\\a" * 1_000 + '")') == [("\\a" * 1_000, UrlKind.IMAGE)]
    assert css_urls('url("' + "\\a" * 70_000 + '")') == []


def test_css_beyond_the_limit_is_passed_through():
    css = b"a{b:url(c)}"
    longer = css + b" " * MAX_CSS_CHARACTERS
    assert rewrite_css(css, "http://a.test/", lambda url, kind: "/x") == b"a{b:url(/x)}"
    assert rewrite_css(longer, "http://a.test/", lambda url, kind: "/x") == longer


def test_candidates_of_a_srcset_are_capped():
    value = ", ".join(f"{n}.png {n}w" for n in range(2 * MAX_SRCSET_CANDIDATES))
    assert len(list(srcset_url_spans(value))) == MAX_SRCSET_CANDIDATES
