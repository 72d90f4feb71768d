"""Changes whose times are exactly known.

A change is one row, however often it is reported: its key is page, time, revision and source, so
that reading a history again, or twice at the same time, adds nothing. Rows are sorted by page and
time, so that a history of a million changes is one range of the table.

Two revisions may have the same time, and revision ids need not grow with time: the key has both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import apsw

Source = Literal["revision", "log"]
Kind = Literal["null", "revert", "deletion", "restoration", "move"]


class Change(NamedTuple):
    """One change of a page.

    Attributes:
        revision_id: the wiki's revision, or the entry of its log.
        source: `revision` or `log`.
        kind: None is an edit with a new text; `null` one without.
        size_bytes: size of the text.
        digest: the first 8 bytes of the SHA-1 of the text, signed; None if it is hidden.
    """

    changed_at: float
    revision_id: int
    source: Source = "revision"
    kind: Kind | None = None
    size_bytes: int | None = None
    digest: int | None = None


_COLUMNS = "changed_at, revision_id, source, kind, size_bytes, digest"


def insert(connection: apsw.Connection, page_id: int, changes: Iterable[Change]) -> int:
    """Add changes to a page; return how many were new."""
    before = connection.total_changes()
    connection.executemany(
        f"INSERT INTO change (page_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        ((page_id, *change) for change in changes),
    )
    return connection.total_changes() - before


def copy(connection: apsw.Connection, page_id: int, from_page_id: int) -> int:
    """Copy the revisions of another page with the same text; return how many were new."""
    before = connection.total_changes()
    connection.execute(
        f"INSERT INTO change (page_id, {_COLUMNS}) SELECT ?, {_COLUMNS} FROM change"
        " WHERE page_id = ? AND source = 'revision' ON CONFLICT DO NOTHING",
        (page_id, from_page_id),
    )
    return connection.total_changes() - before


def delete_revisions(connection: apsw.Connection, page_id: int) -> int:
    """Delete the revisions of a page, which belong to another page; return how many."""
    connection.execute("DELETE FROM change WHERE page_id = ? AND source = 'revision'", (page_id,))
    return connection.changes()


def delete_unlisted(
    connection: apsw.Connection,
    page_id: int,
    listed: Sequence[int],
    *,
    before: tuple[float | None, int | None],
    since: tuple[float, int] | None,
) -> int:
    """Delete the revisions of a time that are not among the listed ones; return how many.

    Args:
        listed: revision ids.
        before: time and number of the revision that ends the time.
        since: time and number of the revision that begins it; None: no beginning.
    """
    sql = (
        "DELETE FROM change WHERE page_id = ? AND source = 'revision'"
        " AND revision_id NOT IN (SELECT value FROM json_each(?))"
        " AND (changed_at, revision_id) < (?, ?)"
    )
    bindings: list[Any] = [page_id, json.dumps(list(listed)), *before]
    if since is not None:
        sql, bindings = f"{sql} AND (changed_at, revision_id) >= (?, ?)", [*bindings, *since]
    connection.execute(sql, bindings)
    return connection.changes()


def count(connection: apsw.Connection, page_id: int) -> int:
    """Return how many changes of a page are stored."""
    return int(connection.execute("SELECT count(*) FROM change WHERE page_id = ?", (page_id,)).get)


def list_changes(connection: apsw.Connection, page_id: int) -> list[Change]:
    """Return the changes of a page, the newest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM change WHERE page_id = ?"
        " ORDER BY changed_at DESC, revision_id DESC",
        (page_id,),
    )
    return [Change(*row) for row in rows]


def newest_times(connection: apsw.Connection, page_id: int, limit: int) -> list[float]:
    """Return the times of the newest changes that brought a new text, ascending."""
    rows: list[Any] = connection.execute(
        "SELECT DISTINCT changed_at FROM change WHERE page_id = ? AND kind IS NOT 'null'"
        " ORDER BY changed_at DESC LIMIT ?",
        (page_id, limit),
    ).fetchall()
    return [at for (at,) in reversed(rows)]


def set_kinds(
    connection: apsw.Connection, page_id: int, kinds: Sequence[tuple[Change, Kind | None]]
) -> None:
    """Set the kinds of some changes."""
    connection.executemany(
        "UPDATE change SET kind = ? WHERE page_id = ? AND changed_at = ? AND revision_id = ?"
        " AND source = ?",
        (
            (kind, page_id, change.changed_at, change.revision_id, change.source)
            for change, kind in kinds
        ),
    )
