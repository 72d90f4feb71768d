"""Small answers that unpack to large pages of the costliest content of other families."""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Callable, Iterable

from crawld.simweb.fault import Fault, Handler
from crawld.simweb.hostile.case import (
    BROKEN,
    STORED,
    HostileCase,
    Place,
    failed,
    html,
)
from crawld.simweb.message import SimRequest, SimResponse, build_response

_MB = 1 << 20
_SIZE_BYTES = 30 * _MB
_GZIP = "Content-Encoding: gzip\r\n"
_PLAIN_TEXT = "text/plain"
_OUTCOMES = STORED | failed("memory")
_BLOCKS = ("<p>a", "<p>b")
_WORDS = tuple(f"w{number} " for number in range(99))


def _packed(parts: Iterable[bytes], size_bytes: int) -> bytes:
    """Return a page of these parts, packed, until it has a size."""
    packing = zlib.compressobj(6, zlib.DEFLATED, 31)
    first = html("").replace(b"</body></html>", b"")
    out, left = [packing.compress(first)], size_bytes - len(first)
    for part in parts:
        if left <= 0:
            break
        out.append(packing.compress(part[:left]))
        left -= len(part)
    return b"".join((*out, packing.flush()))


def _repeated(text: str) -> Iterable[bytes]:
    return itertools.repeat(text.encode() * (65_536 // len(text) + 1))


def _numbered(pattern: str) -> Iterable[bytes]:
    """Yield a pattern with numbers that never repeat in place of `#`."""
    for first in itertools.count(step=1_000):
        yield "".join(pattern.replace("#", str(first + k)) for k in range(1_000)).encode()


def _large(
    name: str,
    parts: Callable[[], Iterable[bytes]],
    size_bytes: int = _SIZE_BYTES,
    *,
    quick: bool = False,
) -> HostileCase:
    def respond(place: Place) -> Fault:
        body = _packed(parts(), size_bytes)
        return lambda request, _: build_response(request, 200, body, extra=_GZIP)

    return HostileCase(
        name=name, family="", respond=respond, outcomes=_OUTCOMES, wait=10.0, quick=quick
    )


def _volatile(name: str, text: Callable[[random.Random], str], size_bytes: int) -> HostileCase:
    """Return a case whose large page is another one at each visit."""

    def respond(place: Place) -> Fault:
        bodies = itertools.cycle([_packed(_drawn(text, seed), size_bytes) for seed in range(3)])
        return lambda request, _: build_response(request, 200, next(bodies), extra=_GZIP)

    return HostileCase(name=name, family="", respond=respond, outcomes=_OUTCOMES, wait=10.0)


def _drawn(text: Callable[[random.Random], str], seed: int) -> Iterable[bytes]:
    draw = random.Random(seed)
    while True:
        yield text(draw).encode()


def _file(name: str, path: str, start: str, text: str, site: str, kind: str) -> HostileCase:
    """Return a case with a large packed file beside a small page."""

    def respond(place: Place) -> Fault:
        body = zlib.compress((start + text * (_SIZE_BYTES // len(text))).encode(), 6, 31)
        page = html("<img src=/x.png>", f"<link rel=stylesheet href='{path}'>")

        def handler(request: SimRequest, _: Handler) -> SimResponse:
            if request.path == path:
                return build_response(request, 200, body, content_type=kind, extra=_GZIP)
            return build_response(request, 200 if request.path == "/" else 404, page)

        return handler

    return HostileCase(
        name=name,
        family="",
        respond=respond,
        outcomes=_OUTCOMES | BROKEN | {"robots", "blocked:robots"},
        site=site,
        owns=True,
        wait=10.0,
    )


CASES: tuple[HostileCase, ...] = (
    _large("large-merged-attributes", lambda: _numbered("<html a#=1>"), quick=True),
    _large("large-merged-long", lambda: _numbered("<body attribute-#=" + "v" * 200 + ">")),
    _large("large-one-tag", lambda: itertools.chain((b"<p ",), _numbered("a# "))),
    _large("large-deep-div", lambda: _repeated("<div>")),
    _large("large-deep-mixed", lambda: _repeated("<ul><li><table><tr><td><b><i>")),
    _large("large-formatting", lambda: _repeated("<p><b><i><u><font size=1>")),
    _large("large-adoption", lambda: _repeated("<a><b><p></a></b>")),
    _large("large-foster", lambda: itertools.chain((b"<table>",), _repeated("x<b>y"))),
    _large("large-ignored-tags", lambda: _repeated("</q a=b>x")),
    _large("large-ignored-cells", lambda: _repeated("<td a=b>x<tr>y")),
    _large("large-less-than", lambda: _repeated("<")),
    _large("large-ampersands", lambda: _repeated("&")),
    _large("large-entities", lambda: _repeated("&NotEqualTilde;")),
    _large("large-comment", lambda: itertools.chain((b"<!--",), _repeated("- "))),
    _large("large-comments", lambda: _repeated("<!>")),
    _large("large-empty-tags", lambda: _repeated("<p>")),
    _large("large-links", lambda: _numbered("<a href='/#'>x</a>")),
    _large("large-links-equal", lambda: _repeated("<a href=/>x</a>")),
    _large("large-srcset", lambda: itertools.chain((b"<img srcset='",), _repeated(","))),
    _large("large-style", lambda: itertools.chain((b"<style>",), _repeated('\\"'))),
    _large("large-style-urls", lambda: itertools.chain((b"<style>",), _repeated("url("))),
    _large("large-style-attributes", lambda: _repeated("<p style='a:url(\"\\\"'>")),
    _large("large-title", lambda: itertools.chain((b"<title>",), _repeated("title "))),
    _large("large-one-word", lambda: _repeated("a")),
    _large("large-blanks", lambda: _repeated(" \n")),
    _large("large-nuls", lambda: _repeated("\0")),
    _large("large-combining", lambda: _repeated("e\u0301\u0302")),
    _large("large-script", lambda: itertools.chain((b"<script>",), _repeated("<!--<script>"))),
    _large("large-limit-divs", lambda: _repeated("<div>"), 64 * _MB),
    _volatile("large-letters-change", lambda r: f"<p>1{'a' * r.randrange(9_000)}", 8 * _MB),
    _volatile("large-numbers-change", lambda r: f"<p>{r.randrange(10**9)} ", 8 * _MB),
    _volatile("large-blocks-change", lambda r: "".join(r.choices(_BLOCKS, k=1_000)), 8 * _MB),
    _volatile("large-words-change", lambda r: "".join(r.choices(_WORDS, k=1_000)), 8 * _MB),
    _file("large-css", "/a.css", "", '"\\"', "", "text/css"),
    _file("large-robots", "/robots.txt", "User-agent: *\n", "Disallow: /*x*$\n", "", _PLAIN_TEXT),
    _file(
        "large-sitemap",
        "/map.xml",
        "<urlset>",
        "<url><loc>/a</loc></url>",
        "sitemap_urls = ['{origin}/map.xml']",
        "text/xml",
    ),
    _file(
        "large-feed",
        "/feed",
        "<rss><channel>",
        "<item><link>/a</link></item>",
        "feeds = ['{origin}/feed']",
        "application/rss+xml",
    ),
    _file(
        "large-listing",
        "/list/",
        "<html>",
        "<a href=x>x</a> 2026-01-01 ",
        "listings = ['{origin}/list/']",
        "text/html",
    ),
)
