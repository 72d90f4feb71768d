"""The titles of a site that is a part of a wiki."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw


def put_titles(connection: apsw.Connection, wiki_id: int, titles: Sequence[str], at: float) -> None:
    """Store titles that the wiki lists as part of the site at a time (Unix seconds)."""
    connection.execute(
        "INSERT INTO wiki_member (wiki_id, title, named_at)"
        " SELECT ?1, value, ?3 FROM json_each(?2) WHERE true"
        " ON CONFLICT DO UPDATE SET named_at = excluded.named_at",
        (wiki_id, json.dumps(titles), at),
    )


def delete_before(connection: apsw.Connection, wiki_id: int, before: float) -> int:
    """Delete titles that were last listed before a time; return how many."""
    connection.execute(
        "DELETE FROM wiki_member WHERE wiki_id = ? AND named_at < ?", (wiki_id, before)
    )
    return connection.changes()


def list_titles(connection: apsw.Connection, wiki_id: int) -> list[str]:
    """Return all titles of a site that is a part of a wiki."""
    rows = connection.execute("SELECT title FROM wiki_member WHERE wiki_id = ?", (wiki_id,))
    return [str(title) for (title,) in rows]
