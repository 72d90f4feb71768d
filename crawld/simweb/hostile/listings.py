"""Sitemaps, feeds, listings and event streams beside a harmless page."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Callable, Iterator

from crawld.simweb.fault import Fault, Handler
from crawld.simweb.hostile.case import HostileCase, Place, html
from crawld.simweb.message import SimRequest, SimResponse, Step, build_response

_XML = "application/xml"
_URLS = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
_INDEX = '<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
_LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "lol">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in itertools.pairwise("abcdefghijk"))
    + "]>"
)
_OUTSIDE = '<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a SYSTEM "{vault}">]>'
_RSS = "<rss version='2.0'><channel><title>a</title>"

Text = Callable[[Place], "str | bytes"]


def _source(
    name: str, key: str, text: Text, *, content_type: str = _XML, quick: bool = False
) -> HostileCase:
    """Return a case with one source of hints; each of its requests gets the same text."""

    def respond(place: Place) -> Fault:
        made = text(place)
        body = made.encode() if isinstance(made, str) else made
        return _beside(
            lambda request, _: build_response(request, 200, body, content_type=content_type)
        )

    return _case(name, key, respond, quick=quick)


def _streamed(
    name: str, key: str, steps: Callable[[], Iterator[Step]], **more: bool
) -> HostileCase:
    return _case(
        name,
        key,
        lambda _: _beside(lambda request, other: SimResponse(200, steps(), close=True)),
        **more,
    )


def _case(
    name: str, key: str, respond: Callable[[Place], Fault], *, quick: bool = False
) -> HostileCase:
    value = "'{origin}/source'" if key == "event_stream" else "['{origin}/source']"
    return HostileCase(
        name=name, family="", respond=respond, site=f"{key} = {value}", owns=True, quick=quick
    )


def _beside(source: Fault) -> Fault:
    """Return a site with a few harmless pages; all other targets belong to the source."""
    page = html("".join(f"<a href='/p/{k}'>x</a>" for k in range(5)))

    def handler(request: SimRequest, other: Handler) -> SimResponse:
        if request.path == "/robots.txt":
            return build_response(request, 404)
        if request.path == "/" or request.path.startswith("/p/"):
            return build_response(request, 200, page)
        return source(request, other)

    return handler


def _each(pattern: str, count: int) -> str:
    return "".join(pattern.replace("#", str(k)) for k in range(count))


def _urls(place: Place, count: int, more: str = "") -> str:
    return _URLS + _each(f"<url><loc>{place.origin}/s/#</loc>{more}</url>", count) + "</urlset>"


def _indexes(place: Place, pattern: str, count: int) -> str:
    return _INDEX + _each(f"<sitemap><loc>{place.origin}{pattern}</loc></sitemap>", count)


def _nested_gzip(place: Place) -> bytes:
    data = _urls(place, 1_000).encode()
    for _ in range(12):
        data = gzip.compress(data, mtime=0)
    return data


def _events_one_line() -> Iterator[Step]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: "
    yield from itertools.repeat(b"x" * 65_536)


def _events_comments() -> Iterator[Step]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    yield from itertools.repeat(b":\n" * 30_000)


def _events_fields() -> Iterator[Step]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    yield from itertools.repeat(b"data: [\n" * 8_000)


def _events_deep() -> Iterator[Step]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    yield b"data: " + b"[" * 400_000 + b"\n\n"
    yield b"retry: " + b"9" * 50_000 + b"\nid: " + b"i" * 50_000 + b"\n\n"
    yield 600.0


def _events_bomb() -> Iterator[Step]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b":\n" * (1 << 19)
    while True:
        yield packing.compress(block)


CASES: tuple[HostileCase, ...] = (
    _source("sitemap-million", "sitemap_urls", lambda p: _urls(p, 1_000_000), quick=True),
    _source("sitemap-nested-gzip", "sitemap_urls", _nested_gzip, content_type="application/gzip"),
    _source("sitemap-bomb", "sitemap_urls", lambda p: gzip.compress(bytes(900_000_000), 9)),
    _source(
        "sitemap-laughs", "sitemap_urls", lambda p: _LAUGHS + "<urlset>&k;</urlset>", quick=True
    ),
    _source("sitemap-laughs-loc", "sitemap_urls", lambda p: _LAUGHS + "<urlset><url><loc>&k;"),
    _source("sitemap-outside", "sitemap_urls", lambda p: _outside(p) + "<urlset>&a;</urlset>"),
    _source("sitemap-cycle", "sitemap_urls", lambda p: _indexes(p, "/source?#", 50)),
    _source("sitemap-cycle-self", "sitemap_urls", lambda p: _indexes(p, "/source", 50_000)),
    _source("sitemap-index-50000", "sitemap_urls", lambda p: _indexes(p, "/map#.xml", 50_000)),
    _source("sitemap-deep", "sitemap_urls", lambda p: _URLS + "<url>" * 500_000),
    _source("sitemap-attributes", "sitemap_urls", lambda p: "<urlset " + _each("a#='1' ", 99_999)),
    _source("sitemap-names", "sitemap_urls", lambda p: _URLS + "<" + "a:" * 900_000),
    _source("sitemap-comments", "sitemap_urls", lambda p: _URLS + "<!--" + "- -" * 900_000),
    _source("sitemap-dates", "sitemap_urls", lambda p: _urls(p, 999, _modified("9" * 4_000))),
    _source("sitemap-date-odd", "sitemap_urls", lambda p: _urls(p, 50, _modified("99999-12-31"))),
    _source("sitemap-loc-5mb", "sitemap_urls", lambda p: _URLS + "<url><loc>/" + "x" * 5_000_000),
    _source("sitemap-text", "sitemap_urls", lambda p: _each(f"{p.origin}/s/#\n", 900_000)),
    _source(
        "sitemap-text-line", "sitemap_urls", lambda p: "h" * 9_000_000, content_type="text/plain"
    ),
    _source(
        "sitemap-utf7", "sitemap_urls", lambda p: '<?xml version="1.0" encoding="utf-7"?>+ADw-'
    ),
    _source("sitemap-vault", "sitemap_urls", lambda p: f"{_URLS}<url><loc>{p.vault}</loc></url>"),
    _source("feed-laughs", "feeds", lambda p: _LAUGHS + _RSS + "<item><link>&k;", quick=True),
    _source(
        "feed-items", "feeds", lambda p: _RSS + _each("<item><link>/f/#</link></item>", 200_000)
    ),
    _source("feed-deep", "feeds", lambda p: _RSS + "<item>" * 200_000),
    _source("feed-date", "feeds", lambda p: _RSS + f"<item><pubDate>{'1 ' * 90_000}</pubDate>"),
    _source("feed-html", "feeds", lambda p: _RSS + f"<item><title>{'&lt;b&gt;' * 200_000}"),
    _source("feed-base", "feeds", lambda p: "<feed xml:base='" + "../" * 90_000 + "'><entry>"),
    _source("feed-outside", "feeds", lambda p: _outside(p) + _RSS + "<item><link>&a;"),
    _source("feed-blanks", "feeds", lambda p: " " * 9_000_000 + _RSS),
    _source(
        "listing-8mb",
        "listings",
        lambda p: html(_each("<a href=/l/#>x</a> 2026-01-01", 200_000)),
        content_type="text/html",
    ),
    _source(
        "listing-attributes",
        "listings",
        lambda p: html(_each("<html a#=1>", 30_000)),
        content_type="text/html",
        quick=True,
    ),
    _source(
        "listing-dates",
        "listings",
        lambda p: html("<pre>" + "<a href=/x>x</a> 01-Jan-" * 60_000),
        content_type="text/html",
    ),
    _streamed("events-one-line", "event_stream", _events_one_line, quick=True),
    _streamed("events-comments", "event_stream", _events_comments),
    _streamed("events-fields", "event_stream", _events_fields),
    _streamed("events-deep", "event_stream", _events_deep),
    _streamed("events-bomb", "event_stream", _events_bomb),
)


def _outside(place: Place) -> str:
    return _OUTSIDE.replace("{vault}", place.vault)


def _modified(date: str) -> str:
    return f"<lastmod>{date}</lastmod>"
