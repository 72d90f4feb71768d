"""Hints: changes that sources report, until a visit confirms or refutes them.

Rule 1: the hints of a poll and the cursor after it are one transaction. Rule 2: a hint is one row
per page and source, however often the change is reported; the number of pages bounds the table.
Rule 3: the transaction of the visit that answers a hint deletes it and judges its source: the hint
was real or false (`hint_answer.py`); a change without a hint was missed, unless it is reported or
explained later (`untold.py`). Rule 4: pages that left their part of a wiki have no hints: no visit
would answer them, and a page that returns is visited. Rule 5: a page of a replica at rest is in no
policy: its hint is stored for the `replicas` job, which may compare it; wikis tell of no copies.

Many hints take few statements: rows are passed as one JSON text, since on a thread each step of a
statement would wait for the interpreter lock.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

import apsw

from crawld.core.change.reliability import Reliability
from crawld.core.units import DAY_S
from crawld.store import changed
from crawld.store.changes import freshness, hint_source, untold

FAN_OUT: Final = "fan_out"
"""Kind of the sources that report pages because something that they include was edited."""

GAP: Final = "gap"
"""Kind of the sources that report all pages of a time in which others may have missed changes."""

RENDER_S: Final = 45.0
"""A wiki renders the users of an edited template in the background. A visit so soon after the edit
that finds no change, or one of an edit before, says nothing: the page is visited again when this
time is over."""

SPAN_S: Final = 2.0
"""The latest time of a reported edit is so much later than the earliest."""

RENDERED_WITHIN_S: Final = 1.0
"""What `SPAN_S` allows for the time between the request of a page and its text."""

LONGEST_VISIT_S: Final = DAY_S
"""No visit takes longer."""


class PageHint(NamedTuple):
    """Reported changes of a page, by page_id: times of the first and the last, and how many."""

    page_id: int
    first_at: float
    last_at: float
    change_count: int = 1


class UrlHint(NamedTuple):
    """Reported changes of a page, by the key of its URL."""

    host_id: int
    url_hash: int
    first_at: float
    last_at: float
    change_count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PollResult:
    """The result of a poll.

    Attributes:
        at: time of the response, Unix seconds; no change is later.
        of_pages, of_urls: hints, at most one per page in each.
        cursor: where the source continues.
        cursor_before: where this poll started. If another source has moved the cursor meanwhile,
            the cursor stays as it is and the source is due at once.
        told_until: all changes up to this time have been reported; None: as before.
        settled_until: changes that visits found up to this time are missed if no cause is known
            by now; None: as `told_until`. A template that was edited and whose pages are not listed
            yet may explain later ones.
        cause: the edited template whose pages are the hints; None: the hints are edits of pages.
        next_poll_at: when to poll again.
        requests: what the poll cost; 0: the hints came from a stream.
        under_way: pages whose visits were under way, or not committed, at the response.
        cursor_updates: new cursors of other sources: (hint_source_id, cursor).
        also_write: more writes for the same transaction.
    """

    at: float
    of_pages: Sequence[PageHint] = ()
    of_urls: Sequence[UrlHint] = ()
    cursor: str | None = None
    cursor_before: str | None = None
    told_until: float | None = None
    settled_until: float | None = None
    cause: str | None = None
    next_poll_at: float | None = None
    requests: int = 1
    under_way: Sequence[int] = ()
    cursor_updates: Sequence[tuple[int, str | None]] = ()
    also_write: Callable[[apsw.Connection], None] | None = None


class AcceptedHint(NamedTuple):
    """A new hint: the page was visited, but not since the change, or its first visit is under way.

    Attributes:
        first_at, last_at: the earliest and the latest change reported.
        last_visit_at: 0 if there was none.
        retry_at: fixed time of the next visit, None: the policy decides.
    """

    page_id: int
    first_at: float
    last_at: float
    change_count: int
    last_visit_at: float
    retry_at: float | None
    last_outcome: str | None
    site_id: int


_DURATION: Final = """coalesce((
    SELECT duration_s FROM visit
    WHERE visit.page_id = page.page_id AND visit.visited_at = page.last_visit_at
), 0.0)"""

_SHOWN_AT: Final = (
    f"coalesce(page.last_visit_at - max({_DURATION} - {RENDERED_WITHIN_S}, 0.0), 0.0)"
)

# Of a sitemap that is read again, nearly all entries say what the last visit of their page has
# seen. They are left out here, unless a change was found that they may report at last; the time of
# a visit is read only where it may matter.
_HELD: Final = f"""
WITH told (page_id, first_at, last_at, told) AS (
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?1)
    UNION ALL
    SELECT page_id, value ->> 2, value ->> 3, value ->> 4
    FROM json_each(?2) CROSS JOIN page
      ON page.host_id = value ->> 0 AND page.url_hash = value ->> 1
), each (page_id, first_at, last_at, told) AS (
    SELECT page_id, min(first_at), min(max(last_at), ?5), sum(told) FROM told GROUP BY page_id
)
SELECT json_group_array(json_array(
    each.page_id, min(each.first_at, each.last_at), each.last_at, each.told,
    coalesce(page.last_visit_at, 0.0), page.retry_at, page.last_outcome, page.site_id,
    hint.last_at, {_SHOWN_AT},
    page.state = 'suspended'
))
FROM each CROSS JOIN page USING (page_id)
LEFT JOIN hint ON hint.page_id = each.page_id AND hint.hint_source_id = ?4
WHERE page.site_id IN (SELECT value FROM json_each(?3))
  AND (page.state IN ('visited', 'gone') AND page.last_visit_at IS NOT NULL
       AND page.left_at IS NULL
       OR page.state = 'suspended' AND page.last_visit_at IS NOT NULL AND ?7 AND EXISTS (
           SELECT 1 FROM page_twin WHERE page_twin.page_id = page.page_id)
       OR page.page_id IN (SELECT value FROM json_each(?6)))
  AND (?8
       OR each.last_at > coalesce(page.last_visit_at, 0.0) - {LONGEST_VISIT_S}
          AND each.last_at > {_SHOWN_AT}
       OR EXISTS (SELECT 1 FROM untold
           WHERE untold.page_id = each.page_id AND untold.hint_source_id = ?4))
"""

_INSERT: Final = """
INSERT INTO hint (page_id, hint_source_id, first_at, last_at, heard_at, told)
SELECT value ->> 0, ?2, value ->> 1, value ->> 2, ?3, value ->> 3 FROM json_each(?1) WHERE true
ON CONFLICT DO UPDATE SET first_at = min(first_at, excluded.first_at),
    last_at = max(last_at, excluded.last_at), told = told + excluded.told
"""

_POLLED: Final = """
UPDATE hint_source SET cursor = ?, told_until = coalesce(?, told_until),
    last_poll_at = ?, next_poll_at = ?, poll_count = poll_count + (? > 0),
    request_count = request_count + ?, hint_count = hint_count + ?, real_count = real_count + ?,
    missed_count = missed_count + ?, lag_s = lag_s + ?, lag_count = lag_count + ?, evidence = ?,
    trouble = NULL, trouble_detail = NULL, trouble_count = 0, closed_until = NULL
WHERE hint_source_id = ?
"""


def accept(
    connection: apsw.Connection, hint_source_id: int, result: PollResult
) -> list[AcceptedHint]:
    """Store the hints of a poll and move the cursor of its source, in one transaction.

    Returns:
        The new hints, for the policies of their pages; without those of pages at rest.
    """
    source = hint_source.get(connection, hint_source_id)
    found = _read_held(connection, source, result)
    new = [each for each in found if each.is_new]
    if new:
        hints = json.dumps([each.hint[:4] for each in new])
        connection.execute(_INSERT, (hints, hint_source_id, result.at))
    visited = [each.hint[:2] for each in found if each.hint.first_at <= each.shown_at]
    late = untold.remove_reported(connection, hint_source_id, visited, result.at)
    if source.kind == FAN_OUT:
        untold.remove_explained(connection, [each.hint[:2] for each in found])
    missed = 0
    if result.told_until is not None:
        settled_until = min(result.told_until, result.settled_until or math.inf)
        missed = untold.settle(connection, hint_source_id, settled_until)
        if source.told_until is None:
            freshness.forget_quiet_visits(connection, source.site_ids)
    evidence = load_reliability(source.evidence)
    for lag_s in late:
        evidence.learn_visit(1, changed=True)
        evidence.learn_lag(lag_s)
    evidence.missing.add(missed, 0.0)
    if result.cause is not None:
        evidence.arrivals.add(1.0, max(result.at - (source.last_poll_at or source.found_at), 0.0))
    elif source.kind != FAN_OUT and source.told_until is not None:
        # A page is newly stale if it was not reported already. The first report of a source has
        # the changes of a time that nobody knows.
        known = (each for each in found if each.is_later and not each.rests)
        new_pages = sum(each.told_at is None for each in known)
        told_s = (result.told_until or 0.0) - source.told_until
        evidence.arrivals.add(new_pages + len(late), max(told_s, 0.0))
    cursor, next_poll_at = result.cursor, result.next_poll_at
    if source.cursor != result.cursor_before:
        cursor, next_poll_at = source.cursor, None
    poll = (cursor, result.told_until, result.at, next_poll_at, result.requests, result.requests)
    counts = (len(new) + len(late), len(late), missed, sum(late), len(late))
    values = (*poll, *counts, dump_reliability(evidence), hint_source_id)
    connection.execute(_POLLED, values)
    changed.note(connection, "hint_source")
    hint_source.set_cursors(connection, result.cursor_updates)
    if result.also_write is not None:
        result.also_write(connection)
    return [each.hint for each in new if not each.rests]


class _HeldHint(NamedTuple):
    """A hint of a held page, new or not.

    Attributes:
        told_at: the latest change of it that the source has told before, None if there is none.
        shown_at: the last visit shows the page as of this time.
        rests: whether the page is one of a replica at rest.
    """

    hint: AcceptedHint
    told_at: float | None
    shown_at: float
    rests: bool

    @property
    def is_later(self) -> bool:
        return self.hint.last_at > self.shown_at

    @property
    def is_new(self) -> bool:
        return self.is_later and self.hint.last_at > (self.told_at or 0.0)


def _read_held(
    connection: apsw.Connection, source: hint_source.SourceRow, result: PollResult
) -> list[_HeldHint]:
    if not result.of_pages and not result.of_urls:
        return []
    hints = (json.dumps(result.of_pages), json.dumps(result.of_urls))
    key = (json.dumps(source.site_ids), source.hint_source_id, result.at)
    is_own = source.wiki_id is None
    values = (*hints, *key, json.dumps(result.under_way), is_own, source.kind == FAN_OUT)
    rows = json.loads(connection.execute(_HELD, values).get)
    return [
        _HeldHint(AcceptedHint(*row), told_at, shown_at, bool(rests))
        for *row, told_at, shown_at, rests in rows
    ]


# --- visits ---------------------------------------------------------------------------------------


_DUE_AGAIN: Final = """
SELECT page_id, first_at FROM hint
WHERE hint_source_id = ? AND first_at > heard_at AND last_at = first_at ORDER BY first_at LIMIT ?
"""


_HAS_HINTS: Final = "SELECT 1 FROM hint WHERE hint_source_id = ? LIMIT 1"


def due_again(
    connection: apsw.Connection, hint_source_id: int, now: float, *, limit: int
) -> tuple[list[PageHint], float | None]:
    """Return pages whose visits came too early, to be visited again now, and when to look again.

    While other hints of the source are outstanding, their visits may come too early, too.
    """
    rows: list[tuple[int, float]] = [
        (page_id, first_at)
        for page_id, first_at in connection.execute(_DUE_AGAIN, (hint_source_id, limit))
    ]
    due = [PageHint(page_id, first_at, now) for page_id, first_at in rows if first_at < now]
    next_at = next((first_at for _, first_at in rows if first_at >= now), None)
    if next_at is None and connection.execute(_HAS_HINTS, (hint_source_id,)).get is not None:
        next_at = now + RENDER_S
    return due, next_at


def load_reliability(evidence: str | None) -> Reliability:
    """Return the reliability of a source from its stored evidence."""
    if evidence is None:
        return Reliability()
    try:
        return Reliability.from_dict(json.loads(evidence))
    except ValueError:
        return Reliability()  # written by another version of crawld: start over


def dump_reliability(evidence: Reliability) -> str:
    """Return the stored form of a source's reliability."""
    return json.dumps(evidence.as_dict())


# --- outstanding hints ----------------------------------------------------------------------------


class OutstandingHint(NamedTuple):
    """A hint that no visit has answered yet, with the host and site of its page.

    Attributes:
        first_at, last_at: the earliest and the latest change reported.
        heard_at: when the first of them was reported.
        last_outcome, last_visit_at: of the last visit of the page; 0 if there was none.
        is_removed: whether its wiki reports it as deleted or moved away.
    """

    page_id: int
    host_id: int
    site_id: int
    hint_source_id: int
    first_at: float
    last_at: float
    heard_at: float
    change_count: int
    last_outcome: str | None = None
    is_removed: bool = False
    last_visit_at: float = 0.0


def list_outstanding(
    connection: apsw.Connection, *, after: tuple[int, int] = (0, 0), limit: int
) -> list[OutstandingHint]:
    """Return hints in the order of (page_id, hint_source_id), after the one in `after`.

    Those of pages at rest are left out.
    """
    rows = connection.execute(
        "SELECT page_id, host_id, site_id, hint_source_id, first_at, last_at, heard_at, told,"
        " last_outcome, EXISTS (SELECT 1 FROM removal WHERE removal.page_id = hint.page_id),"
        " coalesce(last_visit_at, 0.0)"
        " FROM hint CROSS JOIN page USING (page_id)"
        " WHERE (page_id, hint_source_id) > (?, ?) AND state <> 'suspended'"
        " ORDER BY page_id, hint_source_id LIMIT ?",
        (*after, limit),
    )
    return [OutstandingHint(*row) for row in rows]


def of_page(connection: apsw.Connection, page_id: int) -> list[tuple[str, float]]:
    """Return the hints of one page as (kind of source, time of the latest change)."""
    rows = connection.execute(
        "SELECT kind, last_at FROM hint JOIN hint_source USING (hint_source_id)"
        " WHERE page_id = ? ORDER BY last_at DESC",
        (page_id,),
    )
    return [(str(kind), float(at)) for kind, at in rows]


class HeldPage(NamedTuple):
    """A visited page, and its URL hash, which orders the pages of a host."""

    page_id: int
    url_hash: int


def pages_visited_before(
    connection: apsw.Connection,
    site_id: int,
    host_id: int,
    before_at: float,
    *,
    after: int,
    limit: int,
) -> list[HeldPage]:
    """Return the pages of a host last visited before a time, by URL hash."""
    rows = connection.execute(
        "SELECT page_id, url_hash FROM page WHERE host_id = ? AND url_hash > ? AND site_id = ?"
        " AND last_visit_at < ? AND state IN ('visited', 'gone') ORDER BY url_hash LIMIT ?",
        (host_id, after, site_id, before_at, limit),
    )
    return [HeldPage(*row) for row in rows]


class Reporter(Enum):
    """Who reports a change of a page since its last visit."""

    SOURCE = "source"
    WIKI = "wiki"


def reporter_of(connection: apsw.Connection, page_id: int) -> Reporter | None:
    """Return who reports a change of a page since its last visit, a wiki before other sources."""
    by_wiki = connection.execute(
        "SELECT max(wiki_id IS NOT NULL) FROM hint JOIN hint_source USING (hint_source_id)"
        " WHERE page_id = ?",
        (page_id,),
    ).get
    if by_wiki is None:
        return None
    return Reporter.WIKI if by_wiki else Reporter.SOURCE


def count_by_source(connection: apsw.Connection) -> dict[int, int]:
    """Return how many pages have a hint of each source, by hint_source_id."""
    rows = connection.execute("SELECT hint_source_id, count(*) FROM hint GROUP BY hint_source_id")
    return {int(number): int(pages) for number, pages in rows}
