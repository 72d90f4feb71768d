"""Header fields with hostile values: cookies, validators, dates, links, types."""

from __future__ import annotations

from crawld.simweb.hostile.case import (
    BROKEN,
    STORED,
    HostileCase,
    failed,
    html,
    page,
)

_PAGE = html("<p>with odd fields" * 30)
_ANY = STORED | BROKEN


def _field(
    name: str,
    line: str,
    outcomes: frozenset[str] = STORED,
    *,
    status: int = 200,
    quick: bool = False,
) -> HostileCase:
    return page(
        name, lambda: _PAGE, extra=line + "\r\n", outcomes=outcomes, status=status, quick=quick
    )


def _typed(name: str, content_type: str, outcomes: frozenset[str]) -> HostileCase:
    return page(name, lambda: _PAGE, content_type=content_type, outcomes=outcomes)


_BUSY = frozenset({"blocked:unavailable", "failed:unavailable"})
_LIMITED = frozenset({"blocked:rate_limited"})
_WRONG_TYPE = failed("wrong_type")

CASES: tuple[HostileCase, ...] = (
    _field("cookie-control", "Set-Cookie: a=\x01\x02\x1b[2J", _ANY, quick=True),
    _field("cookie-50kb", "Set-Cookie: a=" + "x" * 50_000),
    _field("cookies-600", "\r\n".join(f"Set-Cookie: c{k}=v; Path=/" for k in range(600)), _ANY),
    _field("etag-control", 'ETag: "\x01\x7f"', _ANY),
    _field("etag-50kb", f'ETag: "{"e" * 50_000}"'),
    _field("etag-quotes", "ETag: " + '"' * 20_000),
    _field("etag-star", "ETag: *"),
    _field("etag-latin", 'ETag: W/"ÿþ"'),
    _field("modified-year-99999", "Last-Modified: Fri, 31 Dec 99999 23:59:59 GMT"),
    _field("modified-digits", "Last-Modified: " + "9" * 20_000),
    _field("modified-letters", "Last-Modified: " + "Jan " * 10_000),
    _field("modified-zone", "Last-Modified: Thu, 01 Jan 1970 00:00:00 +999999999"),
    _field("modified-negative", "Last-Modified: Thu, 01 Jan -9999 00:00:00 GMT"),
    _field("date-odd", "Date: " + "1" * 5_000),
    _field("date-future", "Date: Fri, 31 Dec 9999 23:59:59 GMT"),
    _field("expires-odd", "Expires: 0\r\nCache-Control: max-age=" + "9" * 40_000),
    _field("cache-control", "Cache-Control: " + 'a=",' * 12_000),
    _field("age-odd", "Age: -" + "9" * 40_000),
    _field("vary-list", "Vary: " + "*," * 25_000),
    _field("link-list", "Link: " + "</a>; rel=canonical, " * 2_500),
    _field("link-brackets", "Link: " + "<" * 50_000),
    _field("link-canonical-vault", "Link: <http://127.66.255.1/>; rel=canonical"),
    _field("link-parameters", "Link: </a>" + "; rel" * 10_000),
    _field("refresh-field", "Refresh: 0;" + " " * 30_000 + "url='a'b'", quick=True),
    _field("robots-field", "X-Robots-Tag: " + "a:b," * 12_000),
    _field("robots-field-none", "X-Robots-Tag: none, noindex, nofollow"),
    _field("disposition", "Content-Disposition: attachment; filename*=" + "%FF" * 15_000),
    _field("disposition-path", "Content-Disposition: inline; filename=../../../etc/passwd"),
    _field("language", "Content-Language: " + "a-" * 25_000),
    _field("content-location", "Content-Location: http://127.66.255.1/x"),
    _field("base-field", "Content-Base: " + "../" * 15_000),
    _field("retry-after-digits", "Retry-After: " + "9" * 400, _BUSY, status=503, quick=True),
    _field("retry-after-40000", "Retry-After: " + "9" * 40_000, _BUSY, status=503),
    _field("retry-after-negative", "Retry-After: -5", _BUSY, status=503),
    _field("retry-after-nan", "Retry-After: nan", _LIMITED, status=429),
    _field("retry-after-inf", "Retry-After: 1e999", _LIMITED, status=429),
    _field("retry-after-date", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", _LIMITED, status=429),
    _field(
        "authenticate",
        "WWW-Authenticate: " + 'Digest a="\\' * 4_000,
        frozenset({"blocked:unauthorized"}),
        status=401,
    ),
    _field("keep-alive", "Keep-Alive: timeout=" + "9" * 30_000 + ", max=-1"),
    _field("connection-list", "Connection: " + "close, " * 7_000),
    _field("upgrade", "Upgrade: h2c, websocket\r\nConnection: Upgrade"),
    _field("alt-svc", 'Alt-Svc: h3=":1"; ma=' + "9" * 9_000),
    _field("hsts", "Strict-Transport-Security: max-age=" + "9" * 9_000 + "; includeSubDomains"),
    _field("ansi-in-server", "Server: \x1b]0;owned\x07", _ANY),
    _typed("type-50kb", "text/html; " + "a=b; " * 10_000, STORED),
    _typed("type-slashes", "/" * 40_000, STORED | _WRONG_TYPE),
    _typed("type-control", "text/html\x01", _ANY | _WRONG_TYPE),
    _typed("type-empty", "", STORED | _WRONG_TYPE),
    _typed("type-list", "text/html, image/png, " * 2_000, STORED | _WRONG_TYPE),
    _typed("type-multipart", "multipart/mixed; boundary=" + "-" * 30_000, _WRONG_TYPE),
)
