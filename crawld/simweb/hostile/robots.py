"""Hostile robots.txt files; the page behind each of them is harmless."""

from __future__ import annotations

from collections.abc import Callable

from crawld.simweb.fault import Fault, Handler, drip, endless_body, gzip_bomb, hang, redirect_chain
from crawld.simweb.hostile.case import NO_ROBOTS, STORED, HostileCase, Place, html
from crawld.simweb.message import SimRequest, SimResponse, build_response

_LINKS = 4_000
_EITHER = STORED | NO_ROBOTS


def _robots(
    name: str,
    answer: Callable[[Place], Fault],
    *,
    outcomes: frozenset[str] = STORED,
    site: str = "",
    wait: float = 2.0,
    quick: bool = False,
) -> HostileCase:
    def respond(place: Place) -> Fault:
        robots = answer(place)
        page = html("".join(f"<a href='/some/{k}.html'>x</a>" for k in range(_LINKS)))

        def handler(request: SimRequest, other: Handler) -> SimResponse:
            if request.path == "/":
                return build_response(request, 200, page)
            if request.path.startswith("/some/"):
                return build_response(request, 200, html(request.path))
            return robots(request, lambda asked: build_response(asked, 200, b"User-agent: *\n"))

        return handler

    return HostileCase(
        name=name,
        family="",
        respond=respond,
        outcomes=outcomes,
        owns=True,
        site=site,
        wait=wait,
        quick=quick,
    )


def _text(
    name: str,
    text: Callable[[], str | bytes],
    *,
    outcomes: frozenset[str] = STORED,
    extra: str = "",
    content_type: str = "text/plain",
    status: int = 200,
    quick: bool = False,
) -> HostileCase:
    def answer(place: Place) -> Fault:
        made = text()
        body = made.encode() if isinstance(made, str) else made
        return lambda request, _: build_response(
            request, status, body, content_type=content_type, extra=extra
        )

    return _robots(name, answer, outcomes=outcomes, quick=quick)


def _rules(pattern: str, count: int) -> str:
    rules = (f"Disallow: {pattern.replace('#', str(k))}\n" for k in range(count))
    return "User-agent: *\n" + "".join(rules)


def _status(name: str, status: int, outcomes: frozenset[str]) -> HostileCase:
    return _text(name, lambda: "no", status=status, outcomes=outcomes)


def _location(name: str, location: str, outcomes: frozenset[str] = _EITHER) -> HostileCase:
    def answer(place: Place) -> Fault:
        target = location.replace("{vault}", place.vault)
        return lambda request, _: build_response(request, 302, extra=f"Location: {target}\r\n")

    # Only the case's own host may be private, as an operator would allow it.
    site = "allow_private = false\nallow_private_hosts = ['{host}']"
    return _robots(name, answer, outcomes=outcomes, site=site)


CASES: tuple[HostileCase, ...] = (
    _text("robots-wildcards-28000", lambda: _rules("/*x*$", 28_000), quick=True),
    # Rules beyond the cap forbid more than they say, never less.
    _text("robots-wildcards-unique", lambda: _rules("/*x#*y*$", 20_000), outcomes=_EITHER),
    _text("robots-wildcards-close", lambda: _rules("/*s*o*m*e*#*q$", 15_000), outcomes=_EITHER),
    _text("robots-rule-400kb", lambda: "User-agent: *\nDisallow: /" + "*a" * 200_000 + "$\n"),
    _text("robots-rule-stars", lambda: "User-agent: *\nDisallow: /" + "*" * 400_000 + "zz$\n"),
    _text("robots-rule-some", lambda: "User-agent: *\nDisallow: " + "*some" * 80_000 + "$\n"),
    _text("robots-rules-plain", lambda: _rules("/none/#", 25_000)),
    _text("robots-rules-percent", lambda: _rules("/" + "%2f%41" * 100 + "#", 700)),
    _text("robots-rules-regex", lambda: _rules("/(a+)+(.*)*[#", 20_000)),
    _text("robots-agents", lambda: "User-agent: bot\n" * 32_000 + "Disallow: /\n"),
    _text("robots-agent-500kb", lambda: "User-agent: " + "b" * 500_000 + "\nDisallow: /\n"),
    _text("robots-agents-unique", lambda: "".join(f"User-agent: a{k}\n" for k in range(30_000))),
    _text("robots-groups", lambda: "User-agent: *\nDisallow: /none\n" * 16_000),
    _text("robots-line-5mb", lambda: "User-agent: *\nDisallow: /none" + "x" * 5_000_000),
    _text("robots-comments", lambda: "#" * 450_000 + "\nUser-agent: *\nDisallow: /none\n"),
    _text("robots-colons", lambda: ":" * 500_000),
    _text("robots-carriage-returns", lambda: "\r" * 500_000),
    _text("robots-nuls", lambda: b"\0" * 500_000, outcomes=_EITHER),
    _text("robots-binary", lambda: bytes(range(256)) * 2_000, outcomes=_EITHER),
    _text("robots-utf16", lambda: "User-agent: *\nDisallow: /none\n".encode("utf-16")),
    _text("robots-html", lambda: html("<p>Disallow: /"), content_type="text/html"),
    _text("robots-delay-huge", lambda: "User-agent: *\nCrawl-delay: " + "9" * 400_000),
    _text("robots-delay-nan", lambda: "User-agent: *\nCrawl-delay: nan\n"),
    _text("robots-delay-inf", lambda: "User-agent: *\nCrawl-delay: -1e999\n"),
    _text(
        "robots-rate", lambda: "User-agent: *\nRequest-rate: 1/" + "0" * 99_999, outcomes=_EITHER
    ),
    _text("robots-rate-zero", lambda: "User-agent: *\nRequest-rate: 0/0 0000-9999\n"),
    _text("robots-sitemaps", lambda: "".join(f"Sitemap: /s{k}.xml\n" for k in range(25_000))),
    _text("robots-sitemap-odd", lambda: "Sitemap: http://[::1\nSitemap: javascript:0\n"),
    _status("robots-500", 500, _EITHER),
    _status("robots-503", 503, _EITHER),
    _status("robots-401", 401, _EITHER),
    _status("robots-304", 304, _EITHER),
    _status("robots-999", 999, _EITHER),
    _location("robots-redirect-self", "/robots.txt"),
    _location("robots-redirect-private", "{vault}robots.txt", _EITHER),
    _location("robots-redirect-local", "http://localhost:1/robots.txt"),
    _location("robots-redirect-file", "file:///etc/passwd"),
    _location("robots-redirect-empty", ""),
    _robots("robots-redirect-chain", lambda _: redirect_chain(40), outcomes=_EITHER, wait=4),
    _robots("robots-slow", lambda _: drip(1, 0.7), outcomes=_EITHER, wait=3),
    _robots("robots-hang", lambda _: hang(), outcomes=_EITHER, wait=3),
    _robots("robots-endless", lambda _: endless_body(), outcomes=_EITHER, quick=True, wait=3),
    _robots("robots-bomb", lambda _: gzip_bomb(200_000_000), outcomes=_EITHER, wait=3),
)
