"""The titles that the operator of a site listed, and what the wiki says about each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.store.changes.wiki_member import Part

PROBLEMS: Final = ("redirect", "missing", "invalid", "interwiki", "duplicate")
"""Outcomes that the operator is told about, besides another spelling."""

_PROBLEM: Final = (
    f"(outcome IN ({', '.join(map(repr, PROBLEMS))}) OR (outcome = 'page' AND title <> written))"
)


class ListedRow(NamedTuple):
    """A listed title.

    Attributes:
        position: its place in the list, from 0.
        title: in the wiki's spelling; None: no page of the wiki can have it.
        outcome: `unresolved`, `page`, `redirect`, `missing`, `invalid`, `interwiki`, `duplicate`.
        detail: target, reason or first text; else empty.
        resolved_at: when the wiki said so, Unix seconds; None: it was not asked.
    """

    position: int
    written: str
    title: str | None
    outcome: str
    detail: str
    resolved_at: float | None


_COLUMNS: Final = ", ".join(ListedRow._fields)
_ROWS: Final = f"SELECT {_COLUMNS} FROM wiki_title WHERE site_id = ? AND wiki_id = ?"


def replace(connection: apsw.Connection, part: Part, rows: Iterable[ListedRow]) -> None:
    """Store the list of a part instead of the one before."""
    connection.execute("DELETE FROM wiki_title WHERE site_id = ? AND wiki_id = ?", part)
    connection.executemany(
        f"INSERT INTO wiki_title (site_id, wiki_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        ((*part, *row) for row in rows),
    )


def list_titles(connection: apsw.Connection, part: Part) -> list[ListedRow]:
    """Return the list of a part in its order."""
    return [ListedRow(*row) for row in connection.execute(f"{_ROWS} ORDER BY position", part)]


def next_unresolved(
    connection: apsw.Connection, part: Part, before: float, limit: int
) -> list[ListedRow]:
    """Return titles that the wiki was not asked about since a time, in the order of the list."""
    rows = connection.execute(
        f"{_ROWS} AND title IS NOT NULL AND outcome <> 'duplicate'"
        " AND (outcome = 'unresolved' OR ifnull(resolved_at, 0) < ?) ORDER BY position LIMIT ?",
        (*part, before, limit),
    )
    return [ListedRow(*row) for row in rows]


def set_resolved(connection: apsw.Connection, part: Part, rows: Sequence[ListedRow]) -> None:
    """Store what the wiki said about some titles."""
    connection.executemany(
        "UPDATE wiki_title SET title = ?, outcome = ?, detail = ?, resolved_at = ?"
        " WHERE site_id = ? AND wiki_id = ? AND position = ?",
        [
            (row.title, row.outcome, row.detail, row.resolved_at, *part, row.position)
            for row in rows
        ],
    )


def resolve_again(connection: apsw.Connection, wiki_id: int) -> None:
    """Have the listed titles of all parts of a wiki resolved again: its changes were missed."""
    connection.execute(
        "UPDATE wiki_title SET resolved_at = 0 WHERE wiki_id = ? AND resolved_at IS NOT NULL",
        (wiki_id,),
    )


def by_title(connection: apsw.Connection, part: Part, titles: Sequence[str]) -> list[ListedRow]:
    """Return the listed titles, without repetitions, among some in the wiki's spelling."""
    rows = connection.execute(
        f"{_ROWS} AND title IN (SELECT value FROM json_each(?)) AND outcome <> 'duplicate'",
        (*part, json.dumps(list(titles))),
    )
    return [ListedRow(*row) for row in rows]


def has_rows(connection: apsw.Connection, part: Part) -> bool:
    """Return whether the list of a part is stored."""
    sql = "SELECT EXISTS (SELECT 1 FROM wiki_title WHERE site_id = ? AND wiki_id = ?)"
    return bool(connection.execute(sql, part).get)


def list_problems(connection: apsw.Connection, part: Part, limit: int) -> list[ListedRow]:
    """Return titles that the operator should know about, in the order of the list."""
    sql = f"{_ROWS} AND {_PROBLEM} ORDER BY position LIMIT ?"
    return [ListedRow(*row) for row in connection.execute(sql, (*part, limit))]


def count_unresolved(connection: apsw.Connection) -> int:
    """Return how many listed titles of the parts of all sites are unresolved."""
    sql = (
        "SELECT count(*) FROM wiki_site CROSS JOIN wiki_title USING (site_id, wiki_id)"
        " WHERE outcome = 'unresolved'"
    )
    return int(connection.execute(sql).get)


def count_outcomes(connection: apsw.Connection, part: Part) -> dict[str, int]:
    """Return how many listed titles have each outcome, and how many the wiki spells otherwise."""
    rows: list[Any] = connection.execute(
        "SELECT outcome, count(*), sum(ifnull(title <> written, 0)) FROM wiki_title"
        " WHERE site_id = ? AND wiki_id = ? GROUP BY outcome",
        part,
    ).fetchall()
    found = {outcome: count for outcome, count, _ in rows}
    spelt = sum(other for outcome, _, other in rows if outcome != "duplicate")
    return found | ({"normalized": spelt} if spelt else {})
