"""The `analyse` job: compute digest and sketch of first copies whose visit skipped the analysis.

It analyses versions in order of arrival, a few in one transaction, and rests three times as long as
it works. Copies that their visit analysed are skipped: those compared with an earlier
copy, and first copies of an idle crawl. So are copies that are too large for the memory for
analyses: the digest of a part is not the digest of the copy.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final, NamedTuple

import apsw
import structlog
import trio

from crawld.core.content.analysis import read_blocks
from crawld.core.content.media import media_type
from crawld.core.content.volatile import VolatileRules
from crawld.daemon.analyser import weight_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.pacing import Pace
from crawld.store.changes import volatile
from crawld.store.versions import unanalysed, version
from crawld.store.versions.unanalysed import ContentIdentity, UnanalysedCopy
from crawld.store.versions.version import StoredCopy

log = structlog.get_logger(__name__)

AGE_S: Final = 60.0
"""Younger copies wait, since their crawl may still be busy."""

SLICE: Final = 8
"""Copies analysed in one slice, about 10 ms of work."""

REST_FACTOR: Final = 3.0
"""Rest after each slice, as a multiple of its work."""


class AnalyseCopiesJob(BackgroundWork):
    """The `analyse` job."""

    name = "analyse"
    every_s = 600.0

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._analysed = self._damaged = 0
        self._seen, self._seen_at = -1, -math.inf
        self._is_done = False

    def has_work(self) -> bool:
        """Whether copies were stored since a run that found all of them old enough."""
        return not self._is_done or self._database.changes("version") != self._seen

    async def run(self) -> str:
        """Analyse every copy that is old enough; does nothing in a one-off mirror."""
        if self._state.settings.once:
            return "skipped in a one-off mirror"
        if not self._state.settings.analyse:
            return "off"
        analysed = self._analysed
        before, now = self._clock.now() - AGE_S, trio.current_time()
        changes = self._database.changes("version")
        if changes != self._seen:
            self._seen, self._seen_at = changes, now
        pace = Pace(REST_FACTOR)
        while await self._slice(before):
            await pace.rest()
        self._is_done = now >= self._seen_at + AGE_S
        return f"{self._analysed - analysed} copies analysed"

    async def progress(self) -> dict[str, int]:
        """Return counts since the start."""
        return {"analysed": self._analysed, "damaged": self._damaged}

    async def _slice(self, before: float) -> bool:
        copies, up_to = await self._database.read(
            unanalysed.next_copies, before=before, limit=SLICE
        )
        if up_to is None:
            return False
        damaged = self._damaged
        read = [found for copy in copies if (found := await self._analyse(copy)) is not None]
        await self._database.write(unanalysed.put, read, up_to=up_to)
        self._analysed += len(read)
        if self._damaged > damaged:
            log.error("copies_unreadable", up_to=up_to, hint="crawld doctor")
        return True

    async def _analyse(self, copy: UnanalysedCopy) -> ContentIdentity | None:
        """Analyse a copy; None if it cannot be read, or is too large."""
        size_bytes = self._database.look_up(version.body_bytes, copy.version_id)
        async with self._analyser.memory.copy(size_bytes) as memory:
            if memory is None:
                return None
            found = await self._database.read(_read, copy)
            if found is None:
                self._damaged += 1
                return None
            identify = partial(_identity, copy, found)
            return await self._analyser.read_copy(
                identify,
                found.copy.body,
                memory,
                url=copy.url,
                weight=weight_of(media_type(found.copy.content_type)),
            )


class _StoredCopy(NamedTuple):
    copy: StoredCopy
    rules: VolatileRules


def _read(connection: apsw.Connection, copy: UnanalysedCopy) -> _StoredCopy | None:
    kept = version.undamaged_copy(connection, copy.version_id)
    if kept is None:
        return None
    return _StoredCopy(kept, VolatileRules.union(volatile.rules_for(connection, copy.page_id)))


def _identity(copy: UnanalysedCopy, found: _StoredCopy, body: bytes) -> ContentIdentity | None:
    """Return the identity of a copy; None if there is memory for a part of its body only."""
    if len(body) < len(found.copy.body):
        return None
    return unanalysed.identity_of(copy.version_id, read_blocks(*found.copy), found.rules)
