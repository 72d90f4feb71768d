"""The `analyse` job: compute digest and sketch of first copies whose visit skipped the analysis.

It analyses versions in order of arrival, a few in one transaction, and rests three times as long as
it works. Copies that their visit analysed are skipped: those compared with an earlier
copy, and first copies of an idle crawl.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import apsw
import structlog

from crawld.core.content.analysis import read_blocks
from crawld.core.content.fingerprint import cleaned_digest, sketch
from crawld.core.content.volatile import VolatileRules, cleaned
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.pacing import Pace
from crawld.errors import CorruptDatabaseError
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

    async def run(self) -> str:
        """Analyse every copy that is old enough; does nothing in a one-off mirror."""
        if self._state.settings.once:
            return "skipped in a one-off mirror"
        analysed = self._analysed
        before = self._clock.now() - AGE_S
        pace = Pace(REST_FACTOR)
        while await self._slice(before):
            await pace.rest()
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
        read = [found for copy in copies if (found := await self._analyse(copy)) is not None]
        await self._database.write(unanalysed.put, read, up_to=up_to)
        self._analysed += len(read)
        if len(read) < len(copies):
            self._damaged += len(copies) - len(read)
            log.error("copies_unreadable", up_to=up_to, hint="crawld doctor")
        return True

    async def _analyse(self, copy: UnanalysedCopy) -> ContentIdentity | None:
        """Analyse a copy; None if it cannot be read."""
        found = await self._database.read(_read, copy)
        if found is None:
            return None
        return await self._analyser.read(
            _identity, copy, found, url=copy.url, bodies=(found.copy.body,)
        )


class _StoredCopy(NamedTuple):
    copy: StoredCopy
    rules: VolatileRules


def _read(connection: apsw.Connection, copy: UnanalysedCopy) -> _StoredCopy | None:
    try:
        kept = version.read_copy(connection, copy.version_id)
    except CorruptDatabaseError:
        return None
    if kept is None:
        return None
    rules = VolatileRules.from_bytes(volatile.of_page(connection, copy.page_id))
    template = VolatileRules.from_bytes(volatile.of_host(connection, copy.host_id).rules)
    return _StoredCopy(kept, rules | template)


def _identity(copy: UnanalysedCopy, found: _StoredCopy) -> ContentIdentity:
    blocks = read_blocks(*found.copy)
    steady = cleaned(blocks, found.rules)
    return ContentIdentity(copy.version_id, cleaned_digest(steady), sketch(blocks.visible_text()))
