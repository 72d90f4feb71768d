"""The titles of sites that are parts of a wiki."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import apsw


class Part(NamedTuple):
    """A part of a wiki: the titles that belong to one site."""

    site_id: int
    wiki_id: int


def put_titles(connection: apsw.Connection, part: Part, titles: Sequence[str], at: float) -> None:
    """Store titles that the wiki lists as part of a site at a time (Unix seconds)."""
    connection.execute(
        "INSERT INTO wiki_member (site_id, wiki_id, title, named_at)"
        " SELECT ?1, ?2, value, ?4 FROM json_each(?3) WHERE true"
        " ON CONFLICT DO UPDATE SET named_at = excluded.named_at",
        (*part, json.dumps(titles), at),
    )


def delete_before(connection: apsw.Connection, part: Part, before: float) -> int:
    """Delete titles that were last listed before a time; return how many."""
    connection.execute(
        "DELETE FROM wiki_member WHERE site_id = ? AND wiki_id = ? AND named_at < ?",
        (*part, before),
    )
    return connection.changes()


def list_titles(connection: apsw.Connection, part: Part) -> list[str]:
    """Return all titles of a part."""
    sql = "SELECT title FROM wiki_member WHERE site_id = ? AND wiki_id = ?"
    return [str(title) for (title,) in connection.execute(sql, part)]
