"""How many pages of a wiki use its templates and files, by the wiki's own count."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import apsw


class Survey(NamedTuple):
    """What a wiki said once.

    Attributes:
        articles: content pages of the wiki; 0: not known.
        uses: number of pages by title, of the templates and files that most pages use.
    """

    at: float
    articles: int
    uses: Mapping[str, int]


def put(connection: apsw.Connection, *, hint_source_id: int, survey: Survey) -> None:
    """Store what the wiki of a source says, instead of what it said before."""
    connection.execute(
        "INSERT INTO template_use (hint_source_id, surveyed_at, articles, uses)"
        " VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET surveyed_at = excluded.surveyed_at,"
        " articles = excluded.articles, uses = excluded.uses",
        (hint_source_id, survey.at, survey.articles, json.dumps(survey.uses)),
    )


def get(connection: apsw.Connection, hint_source_id: int) -> Survey | None:
    """Return what the wiki of a source said last; None: it was never asked."""
    row = connection.execute(
        "SELECT surveyed_at, articles, uses FROM template_use WHERE hint_source_id = ?",
        (hint_source_id,),
    ).fetchone()
    return Survey(row[0], row[1], json.loads(row[2])) if row else None


def surveyed_at(connection: apsw.Connection, hint_source_id: int) -> float | None:
    """Return when the wiki of a source was asked last; None: never."""
    found: float | None = connection.execute(
        "SELECT surveyed_at FROM template_use WHERE hint_source_id = ?", (hint_source_id,)
    ).get
    return found
