"""Pages that name a MediaWiki API, and APIs that answer with hostile JSON."""

from __future__ import annotations

from collections.abc import Callable

from crawld.simweb.fault import Fault, Handler
from crawld.simweb.hostile.case import HostileCase, Place, failed, html, page
from crawld.simweb.message import SimRequest, SimResponse, build_response

_JSON = "application/json"
_WRONG_TYPE = failed("wrong_type")


def _api(name: str, answer: Callable[[Place], str], *, quick: bool = False) -> HostileCase:
    """Return a case whose API gives the same answer to every request."""

    def respond(place: Place) -> Fault:
        body = answer(place).encode()
        head = (
            '<meta name="generator" content="MediaWiki 1.39.0">'
            f'<link rel="EditURI" type="application/rsd+xml" href="{place.origin}/api.php'
            '?action=rsd">'
        )
        links = "".join(f"<a href='/wiki/{k}'>x</a>" for k in range(5))
        article = html(links, head)

        def handler(request: SimRequest, _: Handler) -> SimResponse:
            if request.path == "/robots.txt":
                return build_response(request, 404)
            if request.path == "/api.php":
                return build_response(request, 200, body, content_type=_JSON)
            return build_response(request, 200, article)

        return handler

    return HostileCase(
        name=name,
        family="",
        respond=respond,
        site="api = true\nmax_pages = 20",
        owns=True,
        quick=quick,
    )


def _query(inner: str, more: str = "") -> str:
    return f'{{"batchcomplete":true,{more}"query":{{{inner}}}}}'


_GENERAL = '"general":{"generator":"MediaWiki 1.39.0","articlepath":"/wiki/$1","wikiid":"w"}'

CASES: tuple[HostileCase, ...] = (
    _api("json-deep", lambda p: "[" * 200_000, quick=True),
    _api("json-deep-objects", lambda p: '{"query":' * 100_000),
    _api("json-deep-closed", lambda p: "[" * 100_000 + "]" * 100_000),
    _api("json-integer", lambda p: '{"query":' + "9" * 1_000_000 + "}", quick=True),
    _api("json-integers", lambda p: "[" + ",".join(["9" * 4_299] * 2_000) + "]"),
    _api("json-exponent", lambda p: '{"query":1e999999999,"continue":{"rccontinue":-1e400}}'),
    _api("json-nan", lambda p: '{"query":NaN,"batchcomplete":Infinity}'),
    _api("json-keys-equal", lambda p: "{" + '"query":{},' * 300_000 + '"a":1}'),
    _api("json-keys", lambda p: _query(",".join(f'"k{k}":{k}' for k in range(300_000)))),
    _api("json-string-9mb", lambda p: _query(f'"general":{{"generator":"{"x" * 9_000_000}"}}')),
    _api("json-escapes", lambda p: '{"query":"' + "\\ud800" * 300_000 + '"}'),
    _api("json-types", lambda p: '{"query":[],"error":5,"continue":"x","warnings":null}'),
    _api("json-null", lambda p: "null"),
    _api("json-empty", lambda p: ""),
    _api("json-error", lambda p: '{"error":{"code":"' + "m" * 90_000 + '","info":7,"lag":"x"}}'),
    _api("json-continue", lambda p: _query(_GENERAL, '"continue":{"continue":"-||"},')),
    _api("json-changes", lambda p: _query(_changes(60_000))),
    _api("json-times", lambda p: _query(_changes(50, "9" * 5_000))),
    _api("json-article-path", lambda p: _query(f'"general":{{"articlepath":"{"$1" * 90_000}"}}')),
    _api("json-namespaces", lambda p: _query(_GENERAL + f',"namespaces":{_namespaces(90_000)}')),
    _api("json-siteinfo-vault", lambda p: _query(f'"general":{{"server":"{p.vault}"}}')),
    _api("json-ids", lambda p: _query(f'"recentchanges":[{{"pageid":{10**30},"revid":-1}}]')),
    page("page-of-json", lambda: "[" * 900_000, content_type=_JSON, outcomes=_WRONG_TYPE),
    page("page-of-xml", lambda: "<a>" * 900_000, content_type="text/xml", outcomes=_WRONG_TYPE),
    page("page-of-xhtml", lambda: "<a>" * 90_000, content_type="application/xhtml+xml"),
)


def _changes(count: int, time: str = "2026-01-01T00:00:00Z") -> str:
    rows = (f'{{"title":"T{k}","revid":{k},"timestamp":"{time}"}}' for k in range(count))
    return f'"recentchanges":[{",".join(rows)}]'


def _namespaces(count: int) -> str:
    rows = (f'"{k}":{{"id":{k},"name":"N{k}","canonical":"N"}}' for k in range(count))
    return "{" + ",".join(rows) + "}"
