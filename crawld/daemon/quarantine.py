"""Quarantine of pages and documents that froze or killed the process; see `store/frontier`.

`settle` reads what the last process left, at the start. Afterwards each visit and each request for
a document asks whether its bytes may be analysed; while nothing is held, that costs one comparison.
"""

from __future__ import annotations

from typing import Final

import structlog

from crawld.core.content.quarantine import ANALYSER_VERSION
from crawld.daemon.clock import Clock
from crawld.daemon.freeze_watch import STALL_BEATS
from crawld.marks import LeftMark, MarksFile, Step
from crawld.store.engine.database import Database
from crawld.store.frontier import quarantine as rows
from crawld.store.frontier.quarantine import StepName, UnderWay

log = structlog.get_logger(__name__)

STEP_NAMES: Final[dict[Step, StepName]] = {Step.DECODING: "decoding", Step.ANALYSIS: "analysis"}


class Quarantine:
    """What must not be analysed.

    Args:
        analyser_version: that of this program.
    """

    def __init__(
        self, database: Database, clock: Clock, analyser_version: int = ANALYSER_VERSION
    ) -> None:
        self._database = database
        self._clock = clock
        self._analyser_version = analyser_version
        self._held_count = 0

    async def settle(self, marks: MarksFile, stacks: str) -> None:
        """Record what was under way when the last process died, and begin the marks of this one.

        Args:
            stacks: what a stall or a crash of the last process wrote; empty without evidence.
        """
        version, now = self._analyser_version, self._clock.now()
        released = await self._database.write(rows.release_outdated, version)
        if released:
            log.info("quarantine_released", pages=released, why="the analyser has a new version")
        # An analyser of another version is no evidence against this one.
        left = [mark for mark in marks.left if mark.analyser_version == version]
        found = [_under_way(mark, stacks) for mark in left]
        if stacks:
            log.error("ended_uncleanly", stacks=stacks)
        for row in await self._database.write(rows.settle, found, version, now):
            event = "quarantined" if row.held else "quarantine_suspect"
            log.warning(event, url=row.url, step=row.step, hint="see: crawlctl quarantine")
        await self.refresh()
        marks.begin(version)

    async def refresh(self) -> None:
        """Notice that rows were added or released."""
        self._held_count = await self._database.read(rows.count)

    def step_of_page(self, page_id: int, url: str) -> StepName | None:
        """Return what must not be done with the bytes of a page; None: it is not held."""
        if not self._held_count:
            return None
        return self._database.look_up(rows.step_of_page, page_id, url)

    def holds_document(self, url: str) -> bool:
        """Whether a robots.txt, a sitemap, a feed or the answer of an API must not be read."""
        if not self._held_count:
            return False
        return self._database.look_up(rows.step_of_url, url) is not None


def _under_way(mark: LeftMark, stacks: str) -> UnderWay:
    """Judge a mark: a stall, a crash or a long step is evidence against its page."""
    evidence = bool(stacks) or mark.beats >= STALL_BEATS
    return UnderWay(mark.url, STEP_NAMES[mark.step], evidence)
