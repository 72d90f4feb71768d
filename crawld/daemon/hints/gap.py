"""What becomes of a gap: a time in which a source that tells of changes may have left some out.

Where the wiki can be probed, its probe asks for all pages at once (`crawld/daemon/hints/wikis.py`).
Elsewhere nobody can be asked but the pages themselves: each copy from before the end of the gap is
possibly stale, and says so to the policy as a hint of a source of its own. How often such a doubt
is true is learnt like the trust in any source; it begins low, so that few visits go to pages that
hardly ever change, and those that do are looked at first.

A gap of a host with many pages is told in parts, with the place in the source's cursor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import apsw

from crawld.core.change.reliability import Reliability, Share
from crawld.daemon.clock import Clock
from crawld.daemon.hints.source import Poll
from crawld.sources.mediawiki_changes import ProbeProgress
from crawld.store.changes import hint, hint_source
from crawld.store.changes.hint_source import SourceRow
from crawld.store.engine.database import Database

PART: Final = 1_000
"""Pages doubted at a time."""

IDLE_S: Final = 86_400.0
"""Pause of a source that is called by others."""

GAP_RELIABILITY: Final = Reliability(real=Share(1.0, 3.0))
"""Before any visit one copy in four is taken to have changed in a gap."""


@dataclass(frozen=True, slots=True)
class GapCursor:
    """A gap being told; stored as JSON.

    Attributes:
        first_at, last_at: the time that was left out, Unix seconds.
        after: URL hash of the last page doubted.
    """

    first_at: float
    last_at: float
    after: int = -(2**63)

    def to_json(self) -> str:
        """Return the stored form."""
        return json.dumps([self.first_at, self.last_at, self.after])

    @classmethod
    def from_json(cls, text: str | None) -> GapCursor | None:
        """Return what a stored form says, None where it says nothing."""
        try:
            first_at, last_at, after = json.loads(text or "")
            return cls(float(first_at), float(last_at), int(after))
        except (ValueError, TypeError):
            return None

    def merged_with(self, other: GapCursor | None) -> GapCursor:
        """Return the gap with an earlier one that is not told to its end yet."""
        return self if other is None else replace(self, first_at=min(self.first_at, other.first_at))


class GapSource:
    """Doubts in the pages that a site has on a host."""

    kind = "gap"
    is_free = True

    def __init__(self, row: SourceRow, database: Database, clock: Clock) -> None:
        self.row = row
        self.polite_host = row.host
        self._database = database
        self._clock = clock

    async def poll(self, row: SourceRow) -> Poll:
        """Doubt some more pages; that costs no request."""
        span, now = GapCursor.from_json(row.cursor), self._clock.now()
        if span is None:
            return Poll(at=now, cursor=row.cursor, requests=0, wait_s=IDLE_S)
        found = await self._database.read(
            hint.pages_visited_before,
            row.site_id,
            row.host_id,
            span.last_at,
            after=span.after,
            limit=PART,
        )
        pages = [hint.PageHint(each.page_id, span.first_at, span.last_at) for each in found]
        if len(found) < PART:
            return Poll(at=now, pages=pages, requests=0, wait_s=IDLE_S)
        rest = replace(span, after=found[-1].url_hash)
        return Poll(at=now, pages=pages, cursor=rest.to_json(), requests=0, more=True)


async def reconcile_gap(
    database: Database, rows: Iterable[SourceRow], first_at: float, last_at: float
) -> list[tuple[int, str | None]]:
    """Return the cursors that have what sources left out found: those of probes, else of doubts.

    Args:
        database: of the sources.
        rows: the sources that left something out; the doubts beside them bear their URL.
        first_at: when the time left out began, Unix seconds.
        last_at: when it ended.
    """
    sources = await database.read(hint_source.list_sources)
    probes = {(each.site_id, each.host_id): each for each in sources if each.kind == "probe"}
    cursor_updates: list[tuple[int, str | None]] = []
    for row in rows:
        probe = probes.get((row.site_id, row.host_id))
        if probe is not None:
            place = replace(ProbeProgress.from_json(probe.cursor), after=0, urgent=True)
            cursor_updates.append((probe.hint_source_id, place.to_json()))
        else:
            doubt = await database.write(_ensure_gap_source, row, last_at)
            span = GapCursor(first_at, last_at).merged_with(GapCursor.from_json(doubt.cursor))
            cursor_updates.append((doubt.hint_source_id, span.to_json()))
    return cursor_updates


def _ensure_gap_source(connection: apsw.Connection, row: SourceRow, at: float) -> SourceRow:
    key = (row.site_id, row.host_id, GapSource.kind, row.url)
    return hint_source.ensure(connection, *key, at, hint.dump_reliability(GAP_RELIABILITY))
