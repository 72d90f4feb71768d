"""Hint sources: services that report changes, with cursor and measured reliability.

A source belongs to one site, or to a wiki and all sites that use it, and reports changes of one
host's pages. `hint.accept` stores its hints, in the transaction that moves its cursor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import apsw

from crawld.store import changed


class SourceRow(NamedTuple):
    """A stored source; most columns are those of `hint_source`.

    Attributes:
        wiki_id: the wiki that it belongs to; None: it belongs to one site.
        site_ids: the sites whose pages it reports on.
    """

    hint_source_id: int
    wiki_id: int | None
    site_ids: tuple[int, ...]
    host_id: int
    host: str
    kind: str
    url: str
    found_at: float
    cursor: str | None
    told_until: float | None
    last_poll_at: float | None
    next_poll_at: float | None
    poll_count: int
    request_count: int
    hint_count: int
    real_count: int
    false_count: int
    missed_count: int
    explained_count: int
    lag_s: float
    lag_count: int
    evidence: str | None
    trouble: str | None
    trouble_detail: str | None
    trouble_count: int
    closed_until: float | None

    @property
    def site_id(self) -> int:
        """The site of a source that belongs to one."""
        [site_id] = self.site_ids
        return site_id


_SITES = """CASE WHEN wiki_id IS NULL THEN json_array(site_id) ELSE (
    SELECT json_group_array(wiki_site.site_id) FROM wiki_site
    WHERE wiki_site.wiki_id = hint_source.wiki_id
) END"""
_EXPRESSIONS = {"host": "host.host", "site_ids": _SITES}
_COLUMNS = ", ".join(_EXPRESSIONS.get(name, f"hint_source.{name}") for name in SourceRow._fields)
_SOURCE = f"SELECT {_COLUMNS} FROM hint_source JOIN host USING (host_id)"


def list_sources(connection: apsw.Connection) -> list[SourceRow]:
    """Return all sources in the order they were found."""
    return [_row(row) for row in connection.execute(f"{_SOURCE} ORDER BY hint_source_id")]


def get(connection: apsw.Connection, hint_source_id: int) -> SourceRow:
    """Return a source by its number."""
    sql = f"{_SOURCE} WHERE hint_source_id = ?"
    return _row(connection.execute(sql, (hint_source_id,)).get)


def _row(row: tuple[Any, ...]) -> SourceRow:
    return SourceRow._make((*row[:2], tuple(sorted(json.loads(row[2]))), *row[3:]))


def find(
    connection: apsw.Connection, site_id: int, host: str, kind: str, url: str
) -> SourceRow | None:
    """Return a source of a site for the pages of a host by key; None: there is none."""
    where = "hint_source.site_id = ? AND host.host = ? AND kind = ? AND url = ?"
    row = connection.execute(f"{_SOURCE} WHERE {where}", (site_id, host, kind, url)).fetchone()
    return None if row is None else _row(row)


def ensure(
    connection: apsw.Connection,
    site_id: int,
    host_id: int,
    kind: str,
    url: str,
    at: float,
    evidence: str | None = None,
) -> SourceRow:
    """Return a source of a site for the pages of a host; add it if it is new.

    Args:
        evidence: initial evidence of a new source, if its kind is known better than others.
    """
    key = (site_id, host_id, kind, url)
    connection.execute(
        "INSERT INTO hint_source (site_id, host_id, kind, url, found_at, evidence)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (*key, at, evidence),
    )
    changed.note(connection, "hint_source")
    where = "hint_source.site_id = ? AND hint_source.host_id = ? AND kind = ? AND url = ?"
    return _row(connection.execute(f"{_SOURCE} WHERE {where}", key).get)


def ensure_of_wiki(
    connection: apsw.Connection, wiki_id: int, host_id: int, kind: str, url: str, at: float
) -> SourceRow:
    """Return the source of a kind of a wiki, for all its sites; add it if it is new.

    The cursor stays if the API has moved to another URL.
    """
    connection.execute(
        "INSERT INTO hint_source (wiki_id, host_id, kind, url, found_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (wiki_id, host_id, kind, url, at),
    )
    changed.note(connection, "hint_source")
    key = (wiki_id, kind)
    connection.execute(
        "UPDATE hint_source SET url = ?3 WHERE wiki_id = ?1 AND kind = ?2 AND url <> ?3",
        (*key, url),
    )
    return _row(connection.execute(f"{_SOURCE} WHERE wiki_id = ? AND kind = ?", key).get)


def set_cursors(connection: apsw.Connection, cursors: Iterable[tuple[int, str | None]]) -> None:
    """Set cursors (hint_source_id, cursor) without a poll; their sources are due at once."""
    connection.executemany(
        "UPDATE hint_source SET cursor = ?, next_poll_at = NULL WHERE hint_source_id = ?",
        [(cursor, number) for number, cursor in cursors],
    )
    changed.note(connection, "hint_source")


class PollFailure(NamedTuple):
    """Why a poll failed at a time: `trouble` is one word, `detail` a text for a person.

    No poll is made before `closed_until`.
    """

    at: float
    trouble: str
    detail: str
    requests: int
    closed_until: float


def record_failure(connection: apsw.Connection, hint_source_id: int, failure: PollFailure) -> None:
    """Count a failed poll, and close the source until a time."""
    connection.execute(
        "UPDATE hint_source SET last_poll_at = ?1, trouble = ?2,"
        " trouble_detail = substr(?3, 1, 200), request_count = request_count + ?4,"
        " closed_until = ?5, next_poll_at = ?5,"
        " poll_count = poll_count + 1, trouble_count = trouble_count + 1 WHERE hint_source_id = ?6",
        (*failure, hint_source_id),
    )
    changed.note(connection, "hint_source")
