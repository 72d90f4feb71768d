"""Sites without end: 200 for everything, calendars, subdomains, and spaces of URLs that grow."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from crawld.simweb.fault import Fault, Handler
from crawld.simweb.hostile.case import NO_ROBOTS, STORED, HostileCase, NameAnswer, Place, html
from crawld.simweb.message import SimRequest, SimResponse, build_response

_EITHER = STORED | NO_ROBOTS
Body = Callable[[SimRequest], bytes]
_FEW = "max_pages = 30"


def _site(
    name: str,
    body: Body,
    *,
    site: str = _FEW,
    outcomes: frozenset[str] = STORED,
    extra: Callable[[SimRequest], str] = lambda request: "",
    robots: bool = False,
    status: Callable[[SimRequest], int] = lambda request: 200,
    **more: object,
) -> HostileCase:
    """Return a case with a page at every target; `robots`: also at that of robots.txt."""

    def respond(_: Place) -> Fault:
        def handler(request: SimRequest, _: Handler) -> SimResponse:
            if request.path == "/robots.txt" and not robots:
                return build_response(request, 404)
            return build_response(request, status(request), body(request), extra=extra(request))

        return handler

    return HostileCase(
        name=name,
        family="",
        respond=respond,
        outcomes=outcomes,
        owns=True,
        site=site,
        **more,  # type: ignore[arg-type]
    )


def _links(*links: str) -> bytes:
    return html("".join(f'<a href="{link}">x</a>' for link in links))


def _drawn(request: SimRequest) -> str:
    return hashlib.blake2b(request.target.encode(), digest_size=8).hexdigest()


def _month(request: SimRequest) -> bytes:
    """Return a month of a calendar, with its neighbours and a page for each of its days."""
    parts = request.path.strip("/").split("/")
    year, month = (int(part) if part.isdigit() else 1 for part in [*parts, "1", "1"][:2])
    other = (f"/{year}/{month + 1}", f"/{year}/{month - 1}", f"/{year + 1}/{month}")
    return _links(*other, *(f"/{year}/{month}/{day}" for day in range(1, 32)))


def _sub(request: SimRequest) -> bytes:
    """Return a page with links to new names below its own."""
    base = ".".join(request.host.split(".")[-3:])
    new = (f"http://{_drawn(request)}-{k}.{base}/" for k in range(40))
    return _links(*new, f"http://a.{request.host}/")


def _wild(host: str, asked: int, address: str) -> NameAnswer:
    return NameAnswer((address,))


_SUBDOMAINS = "subdomains = true\nmax_pages = 40"

CASES: tuple[HostileCase, ...] = (
    _site("always-same", lambda r: html("<p>the same page<a href='/a'>a</a><a href=b>b</a>")),
    _site("always-same-robots", lambda r: html("<p>page"), robots=True, quick=True),
    _site(
        "always-deny-robots",
        lambda r: b"User-agent: *\nDisallow: /\n",
        robots=True,
        outcomes=_EITHER,
    ),
    _site("always-other", lambda r: html(f"<p>{r.serial}<a href='/{r.serial}'>x</a>")),
    _site("always-path", lambda r: html(f"<p>{r.path}<a href='{r.path[:99]}/x'>x</a>")),
    _site("always-empty", lambda r: b"", outcomes=STORED | frozenset({"failed:wrong_type"})),
    _site("always-title-404", lambda r: html("<h1>404 Not Found</h1><a href=/a>a</a>")),
    _site(
        "always-404-page",
        lambda r: _links("/a", "/b"),
        status=lambda r: 200 if r.path == "/" else 404,
    ),
    _site(
        "always-in-turn",
        lambda r: _links("/a", "/b"),
        status=lambda r: 404 if r.serial % 2 else 200,
        outcomes=STORED | frozenset({"missing", "gone", "failed:http_status"}),
    ),
    _site(
        "always-redirects-home",
        lambda r: _links("/a", "/b"),
        status=lambda r: 200 if r.path == "/" else 302,
        extra=lambda r: "Location: /\r\n",
    ),
    _site("always-etag", lambda r: html(f"<p>{r.serial}"), extra=lambda r: 'ETag: "same"\r\n'),
    _site("always-new-etag", lambda r: html("<p>same"), extra=lambda r: f'ETag: "{r.serial}"\r\n'),
    _site("calendar-of-months", _month, quick=True),
    _site(
        "calendar-query",
        lambda r: _links(*(f"/c?y={r.serial}&m={k}&d={_drawn(r)}" for k in range(12))),
    ),
    _site("calendar-relative", lambda r: _links("next/", "next/next/", "../", "?next=1")),
    _site("path-repeats", lambda r: _links(f"{r.path.rstrip('/')}/a/b/a/b/", f"{r.path}a/")),
    _site("path-encodings", lambda r: _links("/%61", "/a", "/%2561", "/%252561", "/A/%41")),
    _site(
        "query-permutations",
        lambda r: _links(*(f"/?a={k}&b={k}&c={j}" for k in range(20) for j in range(20))),
    ),
    _site(
        "query-sessions", lambda r: _links(*(f"/p{k}?PHPSESSID={_drawn(r)}{k}" for k in range(9)))
    ),
    _site(
        "path-parameters", lambda r: _links(*(f"/p;jsessionid={_drawn(r)}{k}" for k in range(9)))
    ),
    _site("fragment-routes", lambda r: _links(*(f"/#!/{k}/{_drawn(r)}" for k in range(300)))),
    _site("search-of-words", lambda r: _links(*(f"/search?q={_drawn(r)}+{k}" for k in range(30)))),
    _site(
        "pages-numbered",
        lambda r: _links(
            *(
                f"/page/{int(''.join(filter(str.isdigit, r.path))[:9] or 0) + k}"
                for k in range(1, 9)
            )
        ),
    ),
    _site("subdomains-endless", _sub, site=_SUBDOMAINS, resolve=_wild, quick=True),
    _site(
        "subdomains-deep",
        lambda r: _links(f"http://a.{r.host[:230]}/", f"http://b.a.{r.host[:230]}/"),
        site=_SUBDOMAINS,
        resolve=_wild,
    ),
    _site(
        "subdomains-to-vault",
        _sub,
        site=_SUBDOMAINS,
        resolve=lambda h, n, a: NameAnswer((a,) if h.count(".") == 2 else ("127.0.0.1",)),
    ),
    _site(
        "subdomains-absent",
        _sub,
        site=_SUBDOMAINS,
        resolve=lambda h, n, a: NameAnswer((a,) if h.count(".") == 2 else ()),
    ),
    _site(
        "subdomains-slow",
        _sub,
        site=_SUBDOMAINS,
        resolve=lambda h, n, a: NameAnswer((a,), delay_s=0.0 if h.count(".") == 2 else 6.0),
    ),
)
