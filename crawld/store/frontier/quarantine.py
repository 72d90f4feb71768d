"""Quarantine: pages and documents that froze or killed the process while they were analysed.

A start reads the marks of a process that did not end cleanly (`crawld/marks.py`). Evidence decides
what becomes of a mark: a step that had lasted long, or during which the event loop stood still or C
code crashed, was the cause or would have been soon, and its page is *held*: not analysed any more.
A mark without evidence is likely that of an innocent page that a kill or a power cut met: its page
is a *suspect*, analysed once more, and held if the next end is unclean and meets it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

import apsw

from crawld.core.content.quarantine import UNANALYSED
from crawld.store.frontier import page as page_rows

StepName = Literal["decoding", "analysis"]
"""What was under way: removing the content coding, or reading the bytes without it."""


class UnderWay(NamedTuple):
    """A step that was under way at an unclean end.

    Attributes:
        evidence: whether it was the cause.
    """

    url: str
    step: StepName
    evidence: bool


class QuarantineRow(NamedTuple):
    """A page or document in quarantine.

    Attributes:
        held: whether it is not analysed; False: a suspect.
        found_at: time of the start that found it, Unix seconds.
    """

    url: str
    step: StepName
    held: bool
    found_at: float


COPY_TYPE: Final = (
    f"iif(version.page_id IN (SELECT page_id FROM quarantine WHERE held), '{UNANALYSED}',"
    " content_type)"
)
"""SQL: the content type of a row of `version`, for all that analyse stored copies."""

_PUT: Final = """
INSERT INTO quarantine (url, page_id, step, held, analyser_version, found_at)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (url) DO UPDATE SET step = excluded.step, held = max(held, excluded.held),
    analyser_version = excluded.analyser_version, found_at = excluded.found_at
"""

_ROW: Final = """
SELECT ifnull(page.url, quarantine.url), step, held, found_at
FROM quarantine LEFT JOIN page USING (page_id)
"""


def settle(
    connection: apsw.Connection, found: Iterable[UnderWay], analyser_version: int, now: float
) -> list[QuarantineRow]:
    """Record what was under way at the last end; forget suspects that this end did not meet.

    Args:
        found: empty after a clean end.

    Returns:
        The rows of `found`.
    """
    suspects = {
        str(url) for (url,) in connection.execute("SELECT url FROM quarantine WHERE NOT held")
    }
    connection.execute("DELETE FROM quarantine WHERE NOT held")
    _find_pages(connection)
    urls = []
    for url, step, evidence in found:
        held = evidence or url in suspects
        page_id = _page_id(connection, url)
        connection.execute(_PUT, (url, page_id, step, int(held), analyser_version, now))
        urls.append(url)
    return [row for row in list_rows(connection) if row.url in urls]


def release_outdated(connection: apsw.Connection, analyser_version: int) -> int:
    """Release what an analyser of another version could not read; return how many."""
    urls = connection.execute(
        "SELECT url FROM quarantine WHERE analyser_version <> ?", (analyser_version,)
    ).fetchall()
    for (url,) in urls:
        _release(connection, str(url))
    return len(urls)


def release(connection: apsw.Connection, url: str) -> bool:
    """Let a URL be analysed again from its next visit on; return False if it was not held.

    Its next visit takes place at once and fetches the whole page.
    """
    found: str | None = connection.execute(
        "SELECT quarantine.url FROM quarantine LEFT JOIN page USING (page_id)"
        " WHERE ifnull(page.url, quarantine.url) = ?",
        (url,),
    ).get
    if found is None:
        return False
    _release(connection, found)
    return True


def _release(connection: apsw.Connection, url: str) -> None:
    page_id = connection.execute("SELECT page_id FROM quarantine WHERE url = ?", (url,)).get
    if page_id is not None:
        read_whole(connection, page_id)
    connection.execute("DELETE FROM quarantine WHERE url = ?", (url,))


def read_whole(connection: apsw.Connection, page_id: int) -> None:
    """Let the next visit of a page, at once, fetch all of it and read it."""
    # Without validators and digest there is nothing to compare it with.
    connection.execute(
        "UPDATE page SET etag = NULL, last_modified = NULL, digest = NULL,"
        " retry_at = iif(state IN ('visited', 'gone'), ifnull(last_visit_at, 0.0), retry_at)"
        " WHERE page_id = ?",
        (page_id,),
    )


def holds_page(connection: apsw.Connection, page_id: int) -> bool:
    """Whether a page is held."""
    found = connection.execute(
        "SELECT 1 FROM quarantine WHERE held"
        " AND (page_id = ?1 OR url = (SELECT url FROM page WHERE page_id = ?1))",
        (page_id,),
    )
    return found.get is not None


def count(connection: apsw.Connection) -> int:
    """Return how many pages and documents are held."""
    held: int = connection.execute("SELECT count(*) FROM quarantine WHERE held").get
    return held


def list_rows(connection: apsw.Connection, *, limit: int = 1000) -> list[QuarantineRow]:
    """Return what is in quarantine, suspects too, the newest first."""
    rows = connection.execute(f"{_ROW} ORDER BY found_at DESC, 1 LIMIT ?", (limit,))
    return [QuarantineRow(url, step, bool(held), at) for url, step, held, at in rows]


def step_of_page(connection: apsw.Connection, page_id: int, url: str) -> StepName | None:
    """Return what must not be done with the bytes of a page; None: it is not held."""
    step: StepName | None = connection.execute(
        "SELECT step FROM quarantine WHERE (page_id = ? OR url = ?) AND held ORDER BY step DESC",
        (page_id, url),
    ).get
    return step


def step_of_url(connection: apsw.Connection, url: str) -> StepName | None:
    """Return what must not be done with the bytes of a URL; None: it is not held."""
    step: StepName | None = connection.execute(
        "SELECT step FROM quarantine WHERE url = ? AND held", (url,)
    ).get
    return step


def _find_pages(connection: apsw.Connection) -> None:
    """Find the pages of URLs that had none when they were held."""
    rows = connection.execute("SELECT url FROM quarantine WHERE page_id IS NULL").fetchall()
    for (url,) in rows:
        connection.execute(
            "UPDATE quarantine SET page_id = ? WHERE url = ?", (_page_id(connection, str(url)), url)
        )


def _page_id(connection: apsw.Connection, url: str) -> int | None:
    try:
        return page_rows.id_of(connection, url)
    except (KeyError, ValueError, IndexError):
        return None  # the name of a document, or the mark is damaged
