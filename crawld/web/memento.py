"""Memento (RFC 7089): old versions by date, for programs.

The address of a page in the mirror is also its TimeGate: `Accept-Datetime` redirects to the version
of that time (pattern 2.1, 302). `/timegate/URL` does the same; `/timemap/link/URL` lists all
versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Final

import apsw

from crawld.store.mirror.lookup import PageLookup
from crawld.store.versions import version
from crawld.store.versions.version import VersionRow
from crawld.web import security
from crawld.web.address import mirror_path
from crawld.web.reply import Reply, header, headers, http_date

MAX_MEMENTOS: Final = 10_000

TIMEGATE_PREFIX: Final = "/timegate/"
TIMEMAP_PREFIX: Final = "/timemap/link/"


def parse_accept_datetime(accept_datetime: str) -> float | None:
    """Return the time of an Accept-Datetime header, None if it is invalid."""
    try:
        return parsedate_to_datetime(accept_datetime).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def time_gate(
    connection: apsw.Connection, page: PageLookup, accept_datetime: str | None, base: str
) -> Reply | None:
    """Return the redirect to the version of a time; None if the page has no version.

    Without the header `accept_datetime` it is the newest version. `base` is scheme, host and port
    of the listener.
    """
    at = float("inf") if accept_datetime is None else parse_accept_datetime(accept_datetime)
    if at is None:
        return Reply(400, b"Accept-Datetime is not an HTTP date\n", _headers("text/plain"))
    rows = version.list_versions(connection, page.page_id, limit=MAX_MEMENTOS)
    if not rows:
        return None
    chosen = next((row for row in rows if int(row.visited_at) <= at), rows[-1])
    lines = [
        header("location", mirror_path(page.url, f"v{chosen.version_id}")),
        header("vary", "accept-datetime"),
        header("link", f'<{page.url}>; rel="original", {_map_link(base, page.url)}'),
        *security.OWN_PAGE,
    ]
    return Reply(302, b"", lines)


def time_map(connection: apsw.Connection, page: PageLookup, base: str) -> Reply:
    """Return the list of all versions of a page in the link format (RFC 6690)."""
    rows = version.list_versions(connection, page.page_id, limit=MAX_MEMENTOS)
    body = ",\n".join(_links(page, rows[::-1], base)) + "\n"
    return Reply(200, body.encode(), _headers("application/link-format"))


def _links(page: PageLookup, rows: list[VersionRow], base: str) -> Iterator[str]:
    yield f'<{page.url}>; rel="original"'
    yield f'<{base}{TIMEGATE_PREFIX}{page.url}>; rel="timegate"'
    yield f'<{base}{TIMEMAP_PREFIX}{page.url}>; rel="self"; type="application/link-format"'
    for number, row in enumerate(rows):
        rels = [rel for rel, here in (("first", 0), ("last", len(rows) - 1)) if number == here]
        rel = " ".join((*rels, "memento"))
        path = mirror_path(page.url, f"v{row.version_id}")
        yield f'<{base}{path}>; rel="{rel}"; datetime="{http_date(row.visited_at)}"'


def _map_link(base: str, url: str) -> str:
    return f'<{base}{TIMEMAP_PREFIX}{url}>; rel="timemap"; type="application/link-format"'


def _headers(content_type: str) -> list[tuple[bytes, bytes]]:
    return [
        *headers(("content-type", content_type), ("cache-control", "no-cache")),
        *security.OWN_PAGE,
    ]
