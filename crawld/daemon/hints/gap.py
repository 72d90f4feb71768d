"""Reconcile a gap: a time in which a source may have missed changes.

If the wiki can be probed, the probe checks all pages at once (`crawld/daemon/hints/wikis.py`).
Otherwise every copy made before the end of the gap is possibly stale, and a source of kind `gap`
reports these pages as hints. The trust in such hints is learned as for any source. It starts low,
so that pages that hardly ever change get few visits and pages that change often come first.

A gap with many pages is reported in parts; the cursor holds the position.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import apsw

from crawld.core.change.reliability import Reliability, Share
from crawld.core.units import DAY_S
from crawld.daemon.clock import Clock
from crawld.daemon.hints.source import CursorUpdates, Poll
from crawld.sources.mediawiki_changes import ProbeProgress
from crawld.store.changes import hint, hint_source
from crawld.store.changes.hint_source import SourceRow
from crawld.store.engine.database import Database

PAGES_AT_ONCE: Final = 1_000
"""Pages reported by one poll."""

IDLE_S: Final = DAY_S
"""Pause of a source without work; another source wakes it."""

GAP_RELIABILITY: Final = Reliability(real=Share(1.0, 3.0))
"""Prior of the trust: before any visit, one copy in four is taken to have changed in a gap."""


@dataclass(frozen=True, slots=True)
class GapCursor:
    """A gap and the position in its pages; stored as JSON.

    Attributes:
        first_at, last_at: start and end of the gap, Unix seconds.
        after: URL hash of the last page reported.
    """

    first_at: float
    last_at: float
    after: int = -(2**63)

    def to_json(self) -> str:
        """Return the stored form."""
        return json.dumps([self.first_at, self.last_at, self.after])

    @classmethod
    def from_json(cls, text: str | None) -> GapCursor | None:
        """Parse the stored form; None if it is empty or unreadable."""
        try:
            first_at, last_at, after = json.loads(text or "")
            return cls(float(first_at), float(last_at), int(after))
        except (ValueError, TypeError):
            return None

    def merged_with(self, other: GapCursor | None) -> GapCursor:
        """Extend the gap back to the start of an earlier one that is not finished."""
        return self if other is None else replace(self, first_at=min(self.first_at, other.first_at))


class GapSource:
    """Reports the possibly stale pages of a site on a host after a gap."""

    kind = hint.GAP
    is_free = True

    def __init__(self, row: SourceRow, database: Database, clock: Clock) -> None:
        self.row = row
        self.polite_host = row.host
        self._database = database
        self._clock = clock

    def is_waiting(self, row: SourceRow) -> bool:
        """Whether a gap is not reported to its end."""
        return GapCursor.from_json(row.cursor) is not None

    async def poll(self, row: SourceRow) -> Poll:
        """Report the next pages; this needs no request."""
        span, now = GapCursor.from_json(row.cursor), self._clock.now()
        if span is None:
            return Poll(at=now, cursor=row.cursor, requests=0, wait_s=IDLE_S)
        found = await self._database.read(
            hint.pages_visited_before,
            row.site_id,
            row.host_id,
            span.last_at,
            after=span.after,
            limit=PAGES_AT_ONCE,
        )
        pages = [hint.PageHint(each.page_id, span.first_at, span.last_at) for each in found]
        if len(found) < PAGES_AT_ONCE:
            return Poll(at=now, pages=pages, requests=0, wait_s=IDLE_S)
        rest = replace(span, after=found[-1].url_hash)
        return Poll(at=now, pages=pages, cursor=rest.to_json(), requests=0, more=True)


async def reconcile_gap(
    database: Database, rows: Iterable[SourceRow], first_at: float, last_at: float
) -> CursorUpdates:
    """Return the cursor updates that start a reconciliation: of a probe, else of a gap source.

    Args:
        rows: the sources that missed changes; their gap sources have the same URL.
        first_at: start of the gap, Unix seconds.
    """
    sources = await database.read(hint_source.list_sources)
    probes = {
        (site_id, each.host_id): each
        for each in sources
        if each.kind == "probe"
        for site_id in each.site_ids
    }
    cursor_updates: dict[int, str | None] = {}
    for row in rows:
        probe = probes.get((row.site_id, row.host_id))
        if probe is not None:
            progress = replace(ProbeProgress.from_json(probe.cursor), after=0, urgent=True)
            cursor_updates[probe.hint_source_id] = progress.to_json()
        else:
            gap_source = await database.write(_ensure_gap_source, row, last_at)
            span = GapCursor(first_at, last_at).merged_with(GapCursor.from_json(gap_source.cursor))
            cursor_updates[gap_source.hint_source_id] = span.to_json()
    return list(cursor_updates.items())


def _ensure_gap_source(connection: apsw.Connection, row: SourceRow, at: float) -> SourceRow:
    key = (row.site_id, row.host_id, GapSource.kind, row.url)
    return hint_source.ensure(connection, *key, at, hint.dump_reliability(GAP_RELIABILITY))
