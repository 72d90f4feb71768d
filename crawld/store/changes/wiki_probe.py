"""Pages of wikis for hint sources: which pages a change affects, and results of probes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import apsw

from crawld.store.changes.hint import PageHint
from crawld.store.changes.wiki_page import OF_ITS_SITES


class UrlChange(NamedTuple):
    """A change of a title.

    Attributes:
        url_hash: key of the title's URL; None: no URL can contain the title.
        number: the wiki's page id, None if not known.
        first_at, last_at: the time span of the change.
        of_text: whether only the text of the page, or of what it includes, changed: redirects to it
            still lead there.
    """

    url_hash: int | None
    number: int | None
    first_at: float
    last_at: float
    of_text: bool = False


_CONCERNED: Final = """
WITH told (url_hash, number, first_at, last_at, of_text) AS (
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?1)
), own (page_id, number, first_at, last_at, of_text) AS (
    SELECT page_id, number, first_at, last_at, of_text FROM told CROSS JOIN page
      ON page.host_id = ?2 AND page.url_hash = told.url_hash
), other (page_id, first_at, last_at, of_text) AS (
    SELECT wiki_page.page_id, first_at, last_at, of_text FROM told CROSS JOIN wiki_page
      ON wiki_page.wiki_id = ?3 AND wiki_page.wiki_page_number = told.number
    UNION ALL
    SELECT twin.page_id, first_at, last_at, of_text FROM own CROSS JOIN wiki_page USING (page_id)
    CROSS JOIN wiki_page AS twin ON twin.wiki_id = wiki_page.wiki_id
      AND twin.wiki_page_number = wiki_page.wiki_page_number AND twin.page_id <> own.page_id
    WHERE own.number IS NULL
)
SELECT json_group_array(json_array(page_id, first_at, last_at)) FROM (
    SELECT page_id, first_at, last_at FROM own
    UNION ALL
    SELECT page_id, first_at, last_at FROM other CROSS JOIN page USING (page_id)
    WHERE NOT (of_text AND last_outcome IS 'moved')
)
"""


def affected_pages(
    connection: apsw.Connection, wiki_id: int, host_id: int, changes: Sequence[UrlChange]
) -> list[PageHint]:
    """Return the pages that changes of titles affect: the titles' own, and redirects to them.

    The copy of a redirect names its target, not its text.

    A change without the wiki's page id (lost by a deletion) affects the page the title had before.
    """
    if not changes:
        return []
    found = connection.execute(_CONCERNED, (json.dumps(changes), host_id, wiki_id)).get
    return [PageHint(*row) for row in json.loads(found)]


def visited_within(
    connection: apsw.Connection, pages: Sequence[PageHint], *, limit: int
) -> dict[int, int | None]:
    """Return pages that were visited within the time spans of their hints, with their copies."""
    rows = connection.execute(
        "SELECT page_id, version_id FROM json_each(?) CROSS JOIN page ON page_id = value ->> 0"
        " WHERE last_visit_at BETWEEN value ->> 1 AND value ->> 2 LIMIT ?",
        (json.dumps(pages), limit),
    )
    return {int(page_id): version_id for page_id, version_id in rows}


class ProbePage(NamedTuple):
    """A page of a wiki, its last visit and copy, and the result of the last probe."""

    page_id: int
    version_id: int | None
    title: str
    last_visit_at: float
    last_outcome: str | None
    revision_id: int | None
    touched_at: float | None
    probed_at: float | None


_NEXT: Final = f"""
SELECT json_group_array(json_array(
    page_id, version_id, title, last_visit_at, last_outcome, revision_id, touched_at, probed_at
))
FROM (
    SELECT wiki_page.page_id, version_id, wiki_page.title, last_visit_at, last_outcome, revision_id,
        touched_at, probed_at
    FROM wiki_page CROSS JOIN page USING (page_id) LEFT JOIN probe USING (page_id)
    WHERE wiki_id = ? AND wiki_page.page_id > ? AND wiki_page.state <> 'refused'
      AND page.state IN ('visited', 'gone') AND last_visit_at IS NOT NULL AND {OF_ITS_SITES}
    ORDER BY wiki_page.page_id LIMIT ?
)
"""


def next_pages(
    connection: apsw.Connection, wiki_id: int, after: int, *, limit: int
) -> list[ProbePage]:
    """Return visited pages of a wiki's sites by page_id, after the one in `after`."""
    found = connection.execute(_NEXT, (wiki_id, after, limit)).get
    return [ProbePage(*row) for row in json.loads(found)]


class ProbeResult(NamedTuple):
    """The result of a probe for a page; without a revision the wiki has no such page."""

    page_id: int
    revision_id: int | None
    touched_at: float | None
    probed_at: float


def put(connection: apsw.Connection, results: Iterable[ProbeResult]) -> None:
    """Store results of a probe, for comparison with the next."""
    connection.execute(
        "INSERT INTO probe (page_id, revision_id, touched_at, probed_at)"
        " SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE true"
        " ON CONFLICT DO UPDATE SET revision_id = excluded.revision_id,"
        " touched_at = excluded.touched_at, probed_at = excluded.probed_at",
        (json.dumps(list(results)),),
    )
