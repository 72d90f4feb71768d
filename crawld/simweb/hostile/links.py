"""Links that no crawler may follow, that lead nowhere, or that never end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from crawld.simweb.fault import Fault, Handler
from crawld.simweb.hostile.case import STORED, HostileCase, Place, html
from crawld.simweb.message import SimRequest, SimResponse, build_response

_OWN_PRIVATE = "allow_private = false\nallow_private_hosts = ['{host}']\nmax_pages = 25"
_FEW = "max_pages = 25"
_EVERYTHING = STORED | {"soft_gone"}
"""A server that has any page has those that a probe makes up, too."""

Links = Callable[[SimRequest], "list[str]"]


def _page(name: str, *links: str, site: str = _FEW, quick: bool = False) -> HostileCase:
    """Return a case whose every page has these links; `{vault}` and `{port}` are filled."""
    return _large(name, lambda: links, site=site, quick=quick)


def _large(
    name: str, links: Callable[[], Iterable[str]], *, site: str = _FEW, quick: bool = False
) -> HostileCase:
    """Return such a case; its links are made when it is served."""

    def respond(place: Place) -> Fault:
        filled = [
            link.replace("{vault}", place.vault).replace("{port}", str(place.port))
            for link in links()
        ]
        return _handler(lambda request: filled)

    return HostileCase(name=name, family="", respond=respond, site=site, owns=True, quick=quick)


def _trap(name: str, links: Links, *, quick: bool = False) -> HostileCase:
    """Return a case whose links are made of the target asked for: there is no end to them."""
    return HostileCase(
        name=name,
        family="",
        respond=lambda _: _handler(links),
        outcomes=_EVERYTHING,
        site=_FEW,
        owns=True,
        quick=quick,
    )


def _handler(links: Links) -> Fault:
    def handler(request: SimRequest, _: Handler) -> SimResponse:
        if request.path == "/robots.txt":
            return build_response(request, 404)
        anchors = "".join(f'<a href="{link}">x</a>' for link in links(request))
        return build_response(request, 200, html(anchors + request.path[:500]))

    return handler


def _calendar(request: SimRequest) -> list[str]:
    digits = "".join(filter(str.isdigit, request.path))[-6:] or "202601"
    number = int(digits)
    return [f"/calendar/{number + 1}", f"/calendar/{number - 1}", f"/calendar?day={number + 7}"]


def _session(request: SimRequest) -> list[str]:
    return [f"/page/{k}?sid={request.serial:032x}" for k in range(50)]


CASES: tuple[HostileCase, ...] = (
    _page("link-userinfo", "http://user:secret@link-userinfo.hostile.test/", "//a:b@c:d@e/"),
    _page("link-javascript", "javascript:alert(1)", "java\nscript:1", "\x01javascript:1"),
    _large("link-data", lambda: ("data:text/html," + "x" * 3_000_000, "blob:x", "about:blank")),
    _page("link-schemes", "file:///etc/passwd", "ftp://a/", "gopher://a/", "dict://a:1/", "x:y"),
    _large(
        "link-query-200kb", lambda: ("/?" + "q" * 200_000, "/?" + "a=b&amp;" * 40_000), quick=True
    ),
    _large(
        "link-parameters-unsorted",
        lambda: (f"/?z={k}&amp;" + "a=1&amp;" * 30 for k in range(20_000)),
    ),
    _large("link-percent", lambda: ("/" + "%25" * 300_000, "/%", "/%zz", "/%00", "/%ff%fe")),
    _large(
        "link-dots",
        lambda: ("/" + "../" * 400_000, "/" + "a/../" * 300_000, "/" + "%2e%2e/" * 90_000),
    ),
    _large("link-slashes", lambda: ("/" * 800_000, "\\" * 800_000, "/a" + "//" * 900)),
    _large("link-fragments", lambda: (f"/#{'f' * 200}{k}" for k in range(30_000))),
    _large("link-blanks", lambda: (" " * 900_000 + "/x", "/a" + "\t\n" * 400_000 + "b")),
    _page(
        "link-ports", "http://link-ports.hostile.test:0/", "http://a:99999/", "//a:-1/", "//a:b/"
    ),
    _page("link-hosts-odd", "http:///", "//", "http://[::1", "http://[::1%25x]/", "http://a..b/"),
    _page("link-hosts-long", "http://" + "a." * 100_000 + "test/", "http://" + "a" * 300_000),
    _page("link-hosts-labels", *(f"http://{'x' * 64}.{k}.test/" for k in range(9_000))),
    _page("link-punycode", "http://xn--" + "a" * 50_000 + "/", "http://xn--99999999999/"),
    _page("link-idn", "http://faß.de/", "http://FAẞ.de/", "http://" + "ẞ" * 20_000 + ".test/"),
    _page("link-idn-combining", "http://" + "e\u0301" * 50_000 + "/", "http://\u202ea.test/"),
    _page("link-vault", "{vault}", "{vault}robots.txt", site=_OWN_PRIVATE),
    _page(
        "link-vault-forms",
        *(
            "http://127.66.65281:{port}/",
            "http://2134048513:{port}/",
            "http://0x7f42ff01:{port}/",
            "http://0177.66.255.1:{port}/",
        ),
        *(
            "http://[::ffff:127.66.255.1]:{port}/",
            "http://127.66.255.1.:{port}/",
            "http://１２７.66.255.1:{port}/",
        ),
        site=_OWN_PRIVATE + "\nsubdomains = true",
    ),
    _page("link-own-ports", *(f"http://link-own-ports.hostile.test:{k}/" for k in range(1, 3_000))),
    _page("link-rel", *(f"/r{k}" for k in range(9_000)), site=_FEW + "\nmax_depth = 1"),
    _large(
        "link-case", lambda: (f"/{'aA'[k % 2]}{'bB'[k // 2 % 2]}{k % 7}" for k in range(30_000))
    ),
    _page("link-nul", "/a\0b", "/\x7f\x80", "/\ud7ff", "/\ufffe"),
    _trap("trap-calendar", _calendar, quick=True),
    _trap("trap-session", _session),
    _trap("trap-path", lambda r: [f"{r.path}/deeper", f"{r.path}/again/", "more/"]),
    _trap("trap-query", lambda r: [f"{r.target[:1500]}&amp;p={r.serial}", "?a=1", "?b=2"]),
    _trap("trap-repeated", lambda r: [f"{r.path}x/y/x/y"]),
    _trap("trap-unique", lambda r: [f"/u/{r.serial}/{k}" for k in range(9_500)]),
    _trap("trap-long-names", lambda r: [f"{r.path[:900]}-{k}" for k in range(300)]),
)
