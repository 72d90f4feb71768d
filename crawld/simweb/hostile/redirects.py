"""Redirects: loops, chains, and locations that no crawler may follow."""

from __future__ import annotations

from crawld.simweb.fault import Fault, Handler, redirect_chain
from crawld.simweb.hostile.case import (
    BROKEN,
    NO_ROBOTS,
    STORED,
    HostileCase,
    Place,
    failed,
    html,
    stream,
    wire,
)
from crawld.simweb.message import SimRequest, SimResponse, build_response

_MOVED = frozenset({"moved"})
_BAD = failed("bad_redirect", "address_refused", "protocol")
_EITHER = _MOVED | _BAD
_OWN_PRIVATE = "allow_private = false\nallow_private_hosts = ['{host}']"


def _location(
    name: str, location: str, outcomes: frozenset[str] = _EITHER, *, site: str = ""
) -> HostileCase:
    def respond(place: Place) -> Fault:
        target = location.replace("{vault}", place.vault).replace("{origin}", place.origin)

        def handler(request: SimRequest, _: Handler) -> SimResponse:
            if request.path != "/":
                return build_response(request, 404)
            raw = f"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {target}\r\n\r\n"
            return SimResponse(302, raw.encode())

        return handler

    return HostileCase(
        name=name, family="", respond=respond, outcomes=outcomes, site=site, owns=True
    )


def _endless(request: SimRequest, _: Handler) -> SimResponse:
    if request.path == "/robots.txt":
        return build_response(request, 404)
    return build_response(request, 301, extra=f"Location: {request.path}a/{request.serial}\r\n")


def _pair(request: SimRequest, _: Handler) -> SimResponse:
    if request.path == "/robots.txt":
        return build_response(request, 404)
    other = "/a" if request.path == "/b" else "/b"
    return build_response(request, 301, extra=f"Location: {other}\r\n")


CASES: tuple[HostileCase, ...] = (
    _location("location-self", "/", _BAD, site="max_pages = 30"),
    HostileCase(
        name="location-pair", family="", respond=lambda _: _pair, outcomes=_MOVED, owns=True
    ),
    HostileCase(
        name="location-endless",
        family="",
        respond=lambda _: _endless,
        outcomes=_MOVED,
        owns=True,
        quick=True,
    ),
    HostileCase(
        name="location-chain-40",
        family="",
        respond=lambda _: redirect_chain(40),
        outcomes=_MOVED | STORED | NO_ROBOTS,
        owns=True,
    ),
    wire(
        "locations-two",
        b"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
        outcomes=_EITHER,
        quick=True,
    ),
    wire("location-none", b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", outcomes=_BAD),
    stream(
        "location-large-body",
        lambda: (
            b"HTTP/1.1 302 Found\r\nLocation: /a\r\nConnection: close\r\n\r\n",
            html("x" * 9_000_000),
        ),
        outcomes=_EITHER | BROKEN,
    ),
    wire(
        "location-300",
        b"HTTP/1.1 300 Many\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n",
        outcomes=_EITHER | failed("http_status"),
    ),
    _location("location-vault", "{vault}", site=_OWN_PRIVATE),
    _location("location-vault-userinfo", "{vault}#@{origin}", site=_OWN_PRIVATE),
    _location("location-number", "http://2130706433:1/", site=_OWN_PRIVATE),
    _location("location-hexadecimal", "http://0x7f.1:1/", site=_OWN_PRIVATE),
    _location("location-mapped", "http://[::ffff:127.0.0.1]:1/", site=_OWN_PRIVATE),
    _location("location-port", "http://location-port.hostile.test:1/"),
    _location("location-javascript", "javascript:alert(1)"),
    _location("location-data", "data:text/html,<p>x"),
    _location("location-file", "file:///etc/passwd"),
    _location("location-empty", ""),
    _location("location-blank", "/a b\tc"),
    _location("location-latin", "/ä\u00ff"),
    _location("location-50kb", "/" + "x" * 50_000),
    _location("location-blanks", " " * 50_000 + "/a"),
    _location("location-percent", "/" + "%25" * 15_000),
    _location("location-dots", "/" + "../" * 15_000 + "a"),
    _location("location-query", "/?" + "a&" * 20_000),
    _location("location-scheme", "//:0"),
    _location("location-punycode", "http://xn--" + "a" * 200 + ".test/"),
)
