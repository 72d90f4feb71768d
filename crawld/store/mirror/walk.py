"""The mirror page by page, for exports.

Each call is one short read, and the next continues after a key: no snapshot outlives a call, so
that the write-ahead log of a running daemon stays bounded however long an export takes. The price:
an export sees each page at a different time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.display import SHOWN_TITLE_CHARACTERS
from crawld.store.frontier.quarantine import COPY_TYPE
from crawld.store.frontier.removal import WITHHOLD
from crawld.store.mirror.selection import select_copy
from crawld.store.versions import body
from crawld.store.versions.response import StoredResponse

CHUNK: Final = 1000
"""Rows of one read: some milliseconds."""

_Rows = list[tuple[Any, ...]]


class PageOutline(NamedTuple):
    """The copy or redirect that is shown of a page.

    Attributes:
        version_id: the copy that is shown; None if there is none.
        redirect_url: target of its redirect, None if the page itself is shown.
    """

    page_id: int
    url_hash: int
    version_id: int | None
    redirect_url: str | None


class PageHead(NamedTuple):
    """A page without its copies; `title` is that of the newest, `seed` if the operator named it."""

    page_id: int
    url: str
    title: str | None
    state: str
    seed: bool


class ExportedCopy(NamedTuple):
    """A stored copy with its body and headers."""

    version_id: int
    page_id: int
    visited_at: float
    digest: bytes
    response: StoredResponse
    body: bytes


class PageEvent(NamedTuple):
    """A visit, or a copy without a stored visit (thinned out, or imported).

    Attributes:
        visit_id: 0: a copy without a visit.
        version_id: the stored copy, None if there is none.
        outcome: result of the visit, None for a copy without a visit.
        failure: a more specific word for a failed or blocked visit.
        detail: short text for a person.
        duration_s: duration of the whole fetch.
        body_bytes: decoded bytes received.
        digest: digest of these, None if there were none or it is not known.
        response: status line and headers, None if none came or the copy has them.
    """

    visited_at: float
    visit_id: int
    version_id: int | None
    outcome: str | None
    failure: str | None
    detail: str | None
    address: str | None
    duration_s: float | None
    body_bytes: int
    digest: bytes | None
    response: StoredResponse | None


def identity(connection: apsw.Connection) -> str | None:
    """Return a text that identifies this mirror, None while it has no site."""
    row = connection.execute("SELECT name, added_at FROM site ORDER BY site_id LIMIT 1").fetchone()
    return None if row is None else f"{row[0]}@{row[1]!r}"


def newest_page(connection: apsw.Connection) -> int:
    """Return the highest page_id, about the number of pages."""
    return int(connection.execute("SELECT ifnull(max(page_id), 0) FROM page").get)


# --- what is shown ---------------------------------------------------------------------------

_OUTLINE: Final = """
SELECT page_id, url_hash, page.version_id, redirect_url, site_id, pin.version_id IS NOT NULL
FROM page LEFT JOIN pin USING (page_id) WHERE page_id > ? ORDER BY page_id LIMIT ?
"""


def outlines(connection: apsw.Connection, now: float) -> Iterator[list[PageOutline]]:
    """Yield the shown copy or redirect of each page by page_id, a chunk at a time.

    Pages with neither a copy nor a redirect are left out; a chunk may be empty.

    Args:
        connection: not in a transaction.
        now: the newest text of a page is taken as current until this time.
    """
    settling = _settling_sites(connection)
    after = 0
    rows: _Rows
    while rows := connection.execute(_OUTLINE, (after, CHUNK)).fetchall():
        after = rows[-1][0]
        yield [one for row in rows if (one := _outline(connection, row, settling, now))]


def _settling_sites(connection: apsw.Connection) -> frozenset[int]:
    """Return the sites that may show another copy than the newest."""
    rows = connection.execute("SELECT site_id, definition FROM site WHERE definition IS NOT NULL")
    return frozenset(
        site_id
        for site_id, text in rows
        if (definition := json.loads(text)).get("settle_s")
        or definition.get("deleted_pages") == WITHHOLD
    )


def _outline(
    connection: apsw.Connection, row: tuple[Any, ...], settling: frozenset[int], now: float
) -> PageOutline | None:
    page_id, url_hash, version_id, redirect_url, site_id, pinned = row
    if pinned or site_id in settling:
        shown = select_copy(connection, page_id, now)
        if shown is None:
            return None
        version_id, redirect_url = shown.version_id, shown.redirect_url
    if version_id is None and redirect_url is None:
        return None
    return PageOutline(page_id, url_hash, version_id, redirect_url)


_TITLE: Final = f"substr(title, 1, {SHOWN_TITLE_CHARACTERS})"
_HEAD: Final = f"SELECT page_id, url, {_TITLE}, state, seed FROM page"


def _as_head(row: Sequence[Any]) -> PageHead:
    return PageHead(*(*row[:4], bool(row[4])))


def head(connection: apsw.Connection, page_id: int) -> PageHead | None:
    """Return a page without its copies, None if the page_id does not exist."""
    row = connection.execute(f"{_HEAD} WHERE page_id = ?", (page_id,)).fetchone()
    return None if row is None else _as_head(row)


def copy_type_and_time(
    connection: apsw.Connection, version_id: int
) -> tuple[str | None, float] | None:
    """Return media type and time of a copy, None if it was removed meanwhile."""
    row: tuple[str | None, float] | None = connection.execute(
        "SELECT content_type, visited_at FROM version WHERE version_id = ?", (version_id,)
    ).get
    return row


def shown_version(connection: apsw.Connection, page_id: int, now: float) -> int | None:
    """Return the copy of a page that is shown, None if there is none."""
    shown = select_copy(connection, page_id, now)
    return None if shown is None else shown.version_id


def hosts(connection: apsw.Connection) -> frozenset[str]:
    """Return the names of all known hosts."""
    return frozenset(str(host) for (host,) in connection.execute("SELECT host FROM host"))


def seeds(connection: apsw.Connection, limit: int) -> list[tuple[PageHead, int]]:
    """Return seeds with their url_hashes, at most `limit`."""
    rows = connection.execute(
        f"SELECT page_id, url, {_TITLE}, state, seed, url_hash FROM page WHERE seed = 1"
        " ORDER BY page_id LIMIT ?",
        (limit,),
    )
    return [(_as_head(row), int(row[5])) for row in rows]


_COPY: Final = f"""
SELECT version_id, page_id, visited_at, digest, body_id, status, http_version, headers, reason,
       {COPY_TYPE}, charset, truncated
FROM version JOIN body USING (body_id) WHERE version_id = ?
"""


def copy(connection: apsw.Connection, version_id: int) -> ExportedCopy | None:
    """Return a copy, None if it was removed meanwhile.

    Raises:
        CorruptDatabaseError: the stored bytes are damaged.
    """
    row: tuple[Any, ...] | None = connection.execute(_COPY, (version_id,)).fetchone()
    if row is None:
        return None
    content = body.read(connection, row[4])
    if content is None:
        return None
    return ExportedCopy(*(*row[:4], StoredResponse(*(*row[5:-1], bool(row[-1]))), content))


# --- visits and copies -----------------------------------------------------------------------


def pages_visited_since(connection: apsw.Connection, since: float) -> Iterator[list[PageHead]]:
    """Yield the pages with a visit or a copy since a time, a chunk at a time."""
    sql = (
        f"SELECT page_id, url, {_TITLE}, state, seed, last_visit_at >= ?1 OR EXISTS (SELECT 1"
        " FROM version WHERE version.page_id = page.page_id AND visited_at >= ?1)"
        " FROM page WHERE page_id > ?2 ORDER BY page_id LIMIT ?3"
    )
    after = 0
    rows: _Rows
    while rows := connection.execute(sql, (since, after, CHUNK)).fetchall():
        after = rows[-1][0]
        yield [_as_head(row) for row in rows if row[5]]


_EVENT: Final = """
SELECT visited_at, visit_id, version_id, outcome, failure, detail, address, duration_s, body_bytes,
       digest, status, http_version, headers, reason
FROM visit WHERE page_id = ?1 AND (visited_at, visit_id) > (?2, ?3)
UNION ALL
SELECT visited_at, 0, version_id, NULL, NULL, NULL, NULL, NULL, 0,
       NULL, NULL, NULL, NULL, NULL
FROM version WHERE page_id = ?1 AND (visited_at, 0) > (?2, ?3) AND NOT EXISTS (
    SELECT 1 FROM visit WHERE visit.page_id = ?1 AND visit.visited_at = version.visited_at
    AND visit.version_id = version.version_id)
ORDER BY visited_at, visit_id LIMIT ?4
"""


def events(
    connection: apsw.Connection, page_id: int, since: float = -math.inf
) -> Iterator[PageEvent]:
    """Yield visits and copies of a page since a time, in order of time."""
    after: tuple[float, int] = (since, -1)
    rows: _Rows
    while rows := connection.execute(_EVENT, (page_id, *after, CHUNK)).fetchall():
        yield from map(_event, rows)
        after = (rows[-1][0], rows[-1][1])
        if len(rows) < CHUNK:
            return


def _event(row: Sequence[Any]) -> PageEvent:
    status, _, block, _ = row[10:]
    has_answer = status is not None and block is not None
    return PageEvent(*(*row[:10], StoredResponse(*row[10:]) if has_answer else None))
