"""The titles of sites that are parts of a wiki, and why each belongs there.

A title may belong for several reasons; it leaves the part with the last of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import apsw


class Part(NamedTuple):
    """A part of a wiki: the titles that belong to one site."""

    site_id: int
    wiki_id: int


MemberKey = tuple[str, str, str]
"""(title, reason, via) of a reason for which a title belongs to a part."""


class MemberRow(NamedTuple):
    """One reason for which a title belongs to a part of a wiki.

    Attributes:
        reason: `title`, `category`, `prefix`, `redirect`, `move` or `former`.
        via: the category, prefix, redirect, former or new title.
        since: when it began to belong, Unix seconds.
    """

    title: str
    reason: str
    via: str
    since: float


_PUT: Final = (
    "INSERT INTO wiki_member (site_id, wiki_id, title, reason, via, since, named_at)"
    " SELECT ?1, ?2, value ->> 0, value ->> 1, value ->> 2, ?4, ?5 FROM json_each(?3) WHERE true"
    " ON CONFLICT DO UPDATE SET named_at = max(named_at, excluded.named_at)"
)


def put(
    connection: apsw.Connection,
    part: Part,
    members: Sequence[MemberKey],
    since: float,
    named_at: float | None = None,
) -> None:
    """Store that titles belong to a part, and why.

    Args:
        since: from when they belong to it, Unix seconds.
        named_at: when the wiki said so; None: `since`.
    """
    keys = json.dumps([list(each) for each in members])
    connection.execute(_PUT, (*part, keys, since, since if named_at is None else named_at))


def remove(connection: apsw.Connection, part: Part, members: Iterable[MemberKey]) -> None:
    """Store that some reasons no longer hold."""
    connection.executemany(
        "DELETE FROM wiki_member WHERE site_id = ? AND wiki_id = ?"
        " AND title = ? AND reason = ? AND via = ?",
        [(*part, *each) for each in members],
    )


def delete_before(
    connection: apsw.Connection, part: Part, before: float, reasons: Sequence[str]
) -> int:
    """Delete the reasons of some kinds that were last seen before a time; return how many."""
    connection.execute(
        "DELETE FROM wiki_member WHERE site_id = ? AND wiki_id = ? AND named_at < ?"
        " AND reason IN (SELECT value FROM json_each(?))",
        (*part, before, json.dumps(list(reasons))),
    )
    return connection.changes()


def list_titles(connection: apsw.Connection, part: Part) -> list[str]:
    """Return all titles of a part."""
    sql = "SELECT DISTINCT title FROM wiki_member WHERE site_id = ? AND wiki_id = ?"
    return [str(title) for (title,) in connection.execute(sql, part)]


def list_spaced(connection: apsw.Connection, part: Part) -> list[str]:
    """Return the titles that the operator listed and that have a colon, as with a namespace."""
    rows = connection.execute(
        "SELECT title FROM wiki_member WHERE site_id = ? AND wiki_id = ? AND reason = 'title'"
        " AND instr(title, ':')",
        part,
    )
    return [str(title) for (title,) in rows]


def count_titles(connection: apsw.Connection) -> int:
    """Return the number of titles of the parts of all sites; one of two parts counts twice."""
    sql = (
        "SELECT count(*) FROM (SELECT DISTINCT site_id, wiki_id, title"
        " FROM wiki_site CROSS JOIN wiki_member USING (site_id, wiki_id))"
    )
    return int(connection.execute(sql).get)


def list_redirects(connection: apsw.Connection, part: Part) -> list[str]:
    """Return the titles of a part that lead to other titles."""
    rows = connection.execute(
        "SELECT DISTINCT via FROM wiki_member"
        " WHERE site_id = ? AND wiki_id = ? AND reason = 'redirect'",
        part,
    )
    return [str(title) for (title,) in rows]


def reasons_of(connection: apsw.Connection, part: Part, title: str) -> list[MemberRow]:
    """Return why a title belongs to a part, the oldest reason first."""
    rows = connection.execute(
        "SELECT title, reason, via, since FROM wiki_member"
        " WHERE site_id = ? AND wiki_id = ? AND title = ? ORDER BY since, reason, via",
        (*part, title),
    )
    return [MemberRow(*row) for row in rows]


def list_by_reason(
    connection: apsw.Connection, part: Part, reason: str, *, before: float | None = None
) -> list[MemberRow]:
    """Return the titles that belong to a part for one kind of reason.

    Args:
        before: only those that the wiki last named before this time, Unix seconds; None: all.
    """
    rows = connection.execute(
        "SELECT title, reason, via, since FROM wiki_member"
        " WHERE site_id = ? AND wiki_id = ? AND reason = ? AND (?4 IS NULL OR named_at < ?4)",
        (*part, reason, before),
    )
    return [MemberRow(*row) for row in rows]


def set_redirects(
    connection: apsw.Connection, part: Part, targets: Mapping[str, Sequence[str]], at: float
) -> set[str]:
    """Store where redirects of a part lead to, instead of what was known of each before.

    Args:
        targets: titles that each redirect leads to; empty: it is no redirect.

    Returns:
        The titles to which they lead no more.
    """
    ended = connection.execute(
        "DELETE FROM wiki_member WHERE site_id = ?1 AND wiki_id = ?2 AND reason = 'redirect'"
        " AND via IN (SELECT key FROM json_each(?3)) AND NOT EXISTS (SELECT 1 FROM"
        " json_each(?3) AS source, json_each(source.value) AS target"
        " WHERE source.key = via AND target.value = title) RETURNING title",
        (*part, json.dumps({source: list(titles) for source, titles in targets.items()})),
    ).fetchall()
    members = [(title, "redirect", source) for source in targets for title in targets[source]]
    put(connection, part, members, at)
    return {str(title) for (title,) in ended}


def sync_listed(connection: apsw.Connection, part: Part, at: float) -> int:
    """Let the listed titles belong to a part, and no others for that reason; return how many left.

    Titles that no page can have do not belong to it; those that are missing do.
    """
    listed = (
        "SELECT title FROM wiki_title WHERE site_id = ?1 AND wiki_id = ?2 AND title IS NOT NULL"
        " AND outcome NOT IN ('invalid', 'interwiki')"
    )
    connection.execute(
        "INSERT INTO wiki_member (site_id, wiki_id, title, reason, via, since, named_at)"
        f" SELECT ?1, ?2, title, 'title', '', ?3, ?3 FROM ({listed}) WHERE true"
        " ON CONFLICT DO NOTHING",
        (*part, at),
    )
    connection.execute(
        "DELETE FROM wiki_member WHERE site_id = ?1 AND wiki_id = ?2 AND reason = 'title'"
        f" AND title NOT IN ({listed})",
        part,
    )
    return connection.changes()


def remove_unfounded(
    connection: apsw.Connection, part: Part, left: Collection[str] | None = None
) -> set[str]:
    """Delete redirects and former titles whose other title left; return these titles.

    Args:
        left: other titles that may have left; None: any.
    """
    rows = connection.execute(
        "DELETE FROM wiki_member WHERE site_id = ?1 AND wiki_id = ?2"
        " AND reason IN ('redirect', 'former') AND via NOT IN ("
        " SELECT title FROM wiki_member WHERE site_id = ?1 AND wiki_id = ?2"
        " AND (?3 IS NULL OR title IN (SELECT value FROM json_each(?3))))"
        " AND (?3 IS NULL OR via IN (SELECT value FROM json_each(?3))) RETURNING title",
        (*part, None if left is None else json.dumps(list(left))),
    ).fetchall()
    return {str(title) for (title,) in rows}


def count_by_reason(connection: apsw.Connection, part: Part) -> dict[str, int]:
    """Return how many titles belong to a part, by kind of reason."""
    rows = connection.execute(
        "SELECT reason, count(DISTINCT title) FROM wiki_member"
        " WHERE site_id = ? AND wiki_id = ? GROUP BY reason",
        part,
    )
    return {str(reason): int(count) for reason, count in rows}


def count_by_category(connection: apsw.Connection, part: Part) -> dict[str, int]:
    """Return how many titles belong to a part by each category."""
    rows = connection.execute(
        "SELECT via, count(*) FROM wiki_member"
        " WHERE site_id = ? AND wiki_id = ? AND reason = 'category' GROUP BY via",
        part,
    )
    return {str(via): int(count) for via, count in rows}


def without_category(
    connection: apsw.Connection, part: Part, category: str, titles: Sequence[str]
) -> list[str]:
    """Return those of some titles that do not belong to a part by a category."""
    rows = connection.execute(
        "SELECT value FROM json_each(?4) WHERE NOT EXISTS (SELECT 1 FROM wiki_member"
        " WHERE site_id = ?1 AND wiki_id = ?2 AND title = value AND reason = 'category'"
        " AND via = ?3)",
        (*part, category, json.dumps(list(titles))),
    )
    return [str(title) for (title,) in rows]


# --- followed categories --------------------------------------------------------------------------


def set_categories(connection: apsw.Connection, part: Part, categories: Iterable[str]) -> None:
    """Store the categories whose pages belong to a part."""
    connection.execute("DELETE FROM wiki_category WHERE site_id = ? AND wiki_id = ?", part)
    connection.executemany(
        "INSERT INTO wiki_category (site_id, wiki_id, category) VALUES (?, ?, ?)",
        [(*part, category) for category in categories],
    )


def list_categories(connection: apsw.Connection, part: Part) -> list[str]:
    """Return the categories whose pages belong to a part; empty before the first listing."""
    sql = "SELECT category FROM wiki_category WHERE site_id = ? AND wiki_id = ?"
    return [str(category) for (category,) in connection.execute(sql, part)]
