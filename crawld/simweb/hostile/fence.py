"""Ways around the address fence: forms of private addresses, and names that lead to them.

They stand in redirects, links, sources and robots.txt.

The simulated web gives each case a public address, so that the fence is the one that users have.
The network notes each private address that is dialed; none may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from crawld.simweb.fault import Fault, Handler
from crawld.simweb.hostile.case import (
    NO_ROBOTS,
    STORED,
    HostileCase,
    NameAnswer,
    NameServer,
    Place,
    failed,
    html,
)
from crawld.simweb.message import SimRequest, SimResponse, build_response

_MOVED = frozenset({"moved"})
_REFUSED = failed("bad_redirect", "address_refused", "protocol")
_NO_HOST = failed("address_refused", "dns", "timeout", "connect") | NO_ROBOTS

FORMS: dict[str, str] = {
    # IPv4, as inet_aton and browsers read it
    "loopback": "127.0.0.1",
    "two-parts": "127.1",
    "three-parts": "127.0.1",
    "decimal": "2130706433",
    "hexadecimal": "0x7f000001",
    "hexadecimal-upper": "0X7F000001",
    "hexadecimal-parts": "0x7f.0x0.0x0.0x1",
    "octal": "0177.0.0.1",
    "octal-long": "000000000177.0.0.1",
    "octal-whole": "017700000001",
    "mixed-bases": "0x7f.0.0.01",
    "mixed-parts": "0177.0x0.1",
    "dot-behind": "127.0.0.1.",
    "other-loopback": "127.255.255.254",
    "full-width": "\uff11\uff12\uff17.0.0.1",
    "circled": "\u2460\u2461\u2466.0.0.1",
    "superscript": "\u00b9\u00b2\u2077.0.0.1",
    "ideographic-dots": "127\u30020\u30020\u30021",
    "percent": "%31%32%37.0.0.1",
    "percent-dots": "127%2e0%2e0%2e1",
    "soft-hyphen": "127.0.\u00ad0.1",
    "zero": "0",
    "zeros": "0.0.0.0",
    "this-network": "0.1.2.3",
    # networks that are not public
    "private-10": "10.0.0.1",
    "private-172": "172.16.0.1",
    "private-192": "192.168.0.1",
    "metadata": "169.254.169.254",
    "metadata-decimal": "2852039166",
    "shared": "100.64.0.1",
    "protocols": "192.0.0.8",
    "documentation": "192.0.2.1",
    "relay": "192.88.99.1",
    "benchmark": "198.18.0.1",
    "multicast": "224.0.0.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    # IPv6, and IPv4 inside it
    "v6-loopback": "[::1]",
    "v6-loopback-long": "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "v6-none": "[::]",
    "v6-mapped": "[::ffff:127.0.0.1]",
    "v6-mapped-hexadecimal": "[::ffff:7f00:1]",
    "v6-mapped-metadata": "[::ffff:a9fe:a9fe]",
    "v6-compatible": "[::127.0.0.1]",
    "v6-nat64": "[64:ff9b::7f00:1]",
    "v6-nat64-local": "[64:ff9b:1::7f00:1]",
    "v6-6to4": "[2002:7f00:1::]",
    "v6-teredo": "[2001:0:5ef5:79fd:0:59d:80ff:fffe]",
    "v6-link": "[fe80::1]",
    "v6-link-zone": "[fe80::1%25eth0]",
    "v6-unique": "[fc00::1]",
    "v6-metadata": "[fd00:ec2::254]",
    "v6-multicast": "[ff02::1]",
    "v6-documentation": "[2001:db8::1]",
    "v6-site": "[fec0::1]",
    # names
    "localhost": "localhost",
    "localhost-dot": "localhost.",
    "localhost-upper": "LOCALHOST",
    "localhost-below": "a.localhost",
    "userinfo": "fence.hostile.test@127.0.0.1",
    "backslash": "127.0.0.1\\@fence.hostile.test",
}
"""Hosts of URLs that lead to no public address, by the name of their form."""


_HOSTS = (
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1"),
    *("192.168.0.1", "169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1"),
    *("198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "localhost", "a.localhost"),
    *("[::1]", "[::]", "[::ffff:7f00:1]", "[::ffff:a9fe:a9fe]", "[::7f00:1]", "[64:ff9b::7f00:1]"),
    *("[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:5ef5:79fd:0:59d:80ff:fffe]", "[fe80::1]"),
    *("[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:db8::1]", "[fec0::1]"),
)
_IN_SCOPE = f"hosts = {list(_HOSTS)}\n"
"""What the forms lead to belongs to the site: only the fence keeps the crawler away."""


def _fence(name: str, answer: Callable[[Place], Fault], **more: object) -> HostileCase:
    """Return a case of the simulated web whose handler answers every target."""
    return HostileCase(
        name=name,
        family="",
        respond=answer,
        owns=True,
        simulated=True,
        **more,  # type: ignore[arg-type]
    )


def _to(name: str, location: str, *, status: int = 302, quick: bool = False) -> HostileCase:
    """Return a case whose page redirects there."""

    def answer(_: Place) -> Fault:
        def handler(request: SimRequest, _: Handler) -> SimResponse:
            if request.path != "/":
                return build_response(request, 404)
            head = f"HTTP/1.1 {status} Moved\r\nContent-Length: 0\r\nLocation: {location}\r\n\r\n"
            return SimResponse(status, head.encode())

        return handler

    return _fence(name, answer, site=_IN_SCOPE, outcomes=_MOVED | _REFUSED, quick=quick)


def _page(name: str, content: str, head: str = "", site: str = "") -> HostileCase:
    """Return a case whose page has this content; all else of the host is a small page."""
    return _fence(
        name, lambda _: _pages(html(content, head)), site=_IN_SCOPE + site, outcomes=STORED
    )


def _pages(page: bytes) -> Fault:
    def handler(request: SimRequest, _: Handler) -> SimResponse:
        if request.path == "/robots.txt":
            return build_response(request, 404)
        return build_response(request, 200, page if request.path == "/" else html(request.path))

    return handler


def _named(
    name: str, resolve: NameServer, outcomes: frozenset[str], *, pages: int = 8, quick: bool = False
) -> HostileCase:
    """Return a case whose name server answers so; its pages keep the host busy for a while."""
    page = html("".join(f"<a href='/p/{k}'>x</a>" for k in range(pages)))
    return _fence(
        name,
        lambda _: _pages(page),
        resolve=resolve,
        outcomes=outcomes,
        site=f"max_pages = {pages}",
        quick=quick,
        wait=4.0,
    )


def _always(*addresses: str) -> NameServer:
    return lambda host, asked, address: NameAnswer(addresses)


def _with(*addresses: str) -> NameServer:
    """Return a name server that tells private addresses beside the right one."""
    return lambda host, asked, address: NameAnswer((*addresses, address))


def _first(count: int, then: tuple[str, ...], *, ttl_s: float = 0.0) -> NameServer:
    """Return a name server that tells the right address so often, then others (rebinding)."""
    return lambda host, asked, address: NameAnswer(
        (address,) if asked < count else then, ttl_s=ttl_s
    )


def _in_turn(*addresses: str) -> NameServer:
    """Return a name server that tells the right address each other time."""
    return lambda host, asked, address: NameAnswer(
        addresses if asked % 2 else (address,), ttl_s=0.0
    )


def _source(name: str, key: str, location: str) -> HostileCase:
    """Return a case with a source of hints that redirects there."""
    pages = _pages(html(""))

    def handler(request: SimRequest, other: Handler) -> SimResponse:
        if request.path == "/source":
            return build_response(request, 302, extra=f"Location: {location}\r\n")
        return pages(request, other)

    site = _IN_SCOPE + f"{key} = ['{{origin}}/source']"
    return _fence(name, lambda _: handler, site=site, outcomes=STORED)


def _robots(name: str, answer: Callable[[SimRequest], SimResponse]) -> HostileCase:
    pages = _pages(html(""))
    return _fence(
        name,
        lambda _: (
            lambda request, other: (
                answer(request) if request.path == "/robots.txt" else pages(request, other)
            )
        ),
        outcomes=STORED | NO_ROBOTS,
    )


_ALL = [f"http://{host}/" for host in FORMS.values()]
_IMAGES = "".join(f"<img src='{url}{k}.png'>" for k, url in enumerate(_ALL))
_LINKS = "".join(f"<a href='{url}'>x</a>" for url in _ALL)
_MAP = "<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in _ALL) + "</urlset>"
_METADATA = "http://169.254.169.254/latest/meta-data/"

CASES: tuple[HostileCase, ...] = (
    *(_to(f"fence-{form}", f"http://{host}/") for form, host in FORMS.items()),
    _to("fence-permanent", "http://127.0.0.1/", status=301),
    _to("fence-temporary-307", "http://10.0.0.1/", status=307),
    _to("fence-permanent-308", "http://[::1]/", status=308),
    _to("fence-see-other", _METADATA, status=303, quick=True),
    _to("fence-https", "https://127.0.0.1/"),
    _to("fence-scheme-relative", "//127.0.0.1/"),
    _to("fence-port-ssh", "http://fence-port-ssh.hostile.test:22/"),
    _to("fence-port-mail", "http://fence-port-mail.hostile.test:25/"),
    _to("fence-port-store", "http://127.0.0.1:6379/"),
    _page("fence-links", _LINKS, site="subdomains = true\nmax_pages = 50"),
    _page("fence-images", _IMAGES, site="requisite_hosts = ['*']\nmax_requisites = 100"),
    _page("fence-style", "", f"<link rel=stylesheet href='{_METADATA}'>"),
    _page("fence-base", "<a href='x'>x</a><img src='y.png'>", "<base href='http://127.0.0.1/'>"),
    _page("fence-refresh", "", f"<meta http-equiv=refresh content='0; url={_METADATA}'>"),
    _page("fence-canonical", "", f"<link rel=canonical href='{_METADATA}'>"),
    _page("fence-api", "", "<link rel=EditURI href='http://127.0.0.1/api.php?action=rsd'>"),
    _page("fence-feed", "", "<link rel=alternate type='application/rss+xml' href='http://[::1]/'>"),
    _source("fence-sitemap-redirect", "sitemap_urls", "http://127.0.0.1/"),
    _source("fence-feed-redirect", "feeds", _METADATA),
    _source("fence-listing-redirect", "listings", "http://[::1]/"),
    _robots(
        "fence-robots-redirect",
        lambda request: build_response(request, 302, extra="Location: http://127.0.0.1/\r\n"),
    ),
    _robots(
        "fence-robots-sitemap",
        lambda request: build_response(
            request, 200, b"".join(f"Sitemap: {url}\n".encode() for url in _ALL)
        ),
    ),
    _fence(
        "fence-sitemap-urls",
        lambda _: (
            lambda request, other: (
                build_response(request, 200, _MAP.encode(), content_type="text/xml")
                if request.path == "/map.xml"
                else _pages(html(""))(request, other)
            )
        ),
        site=_IN_SCOPE + "sitemap_urls = ['{origin}/map.xml']\nmax_pages = 50",
        outcomes=STORED,
    ),
    # names
    _named("name-private", _always("127.0.0.1"), _NO_HOST, quick=True),
    _named("name-metadata", _always("169.254.169.254"), _NO_HOST),
    _named("name-zero", _always("0.0.0.0"), _NO_HOST),
    _named("name-v6-loopback", _always("::1"), _NO_HOST),
    _named("name-v6-mapped", _always("::ffff:127.0.0.1"), _NO_HOST),
    _named("name-v6-nat64", _always("64:ff9b::7f00:1"), _NO_HOST),
    _named("name-v6-6to4", _always("2002:7f00:1::"), _NO_HOST),
    _named("name-v6-zone", _always("fe80::1%eth0"), _NO_HOST),
    _named("name-many-private", _always(*(f"10.0.0.{k}" for k in range(1, 250))), _NO_HOST),
    _named("name-broadcast", _always("255.255.255.255"), _NO_HOST),
    _named("name-mixed", _with("127.0.0.1", "10.0.0.1"), STORED),
    _named("name-mixed-v6", _with("::1", "::ffff:10.0.0.1"), STORED),
    _named("rebinding-after-robots", _first(1, ("127.0.0.1",)), STORED | _NO_HOST, pages=70),
    _named("rebinding-later", _first(2, ("169.254.169.254",)), STORED, pages=100),
    _named("rebinding-in-turn", _in_turn("10.0.0.1"), STORED | _NO_HOST, pages=70, quick=True),
    _named("rebinding-mixed", _in_turn("10.0.0.1", "::1"), STORED | _NO_HOST, pages=70),
    _named("rebinding-negative-ttl", _first(1, ("::1",), ttl_s=-1e9), STORED | _NO_HOST, pages=70),
    _named("rebinding-long-ttl", _first(1, ("::1",), ttl_s=1e30), STORED, pages=70),
    _named("name-nan-ttl", lambda h, n, a: NameAnswer((a,), ttl_s=math.nan), STORED),
    _named("name-twice", lambda h, n, a: NameAnswer((a,) * 5_000), STORED),
)
