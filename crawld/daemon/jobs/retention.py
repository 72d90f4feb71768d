"""Keeps the past small: superseded bodies become deltas, old copies go as the sites' rules say.

Both change what bodies rest on, therefore they are one job. It works in slices: read and encode on
a reader's thread, then one short write; after each it rests as long as it worked, so that it never
takes more than half of a core from the crawl.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

import apsw
import structlog
import trio

from crawld.daemon.clock import Clock
from crawld.daemon.crawl import Crawl
from crawld.store import delta, retention
from crawld.store.database import Database
from crawld.store.retention import Rule

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger(__name__)

EVERY_S: Final = 300.0
"""How long a superseded body stays whole: the space of some minutes of crawling."""

THIN_EVERY_S: Final = 3600.0
"""How often all pages are looked at for copies to give up, unless a rule has changed."""


class Retention:
    """The job."""

    name = "retention"
    every_s = EVERY_S

    def __init__(self, crawl: Crawl, database: Database, clock: Clock) -> None:
        """Take the crawl whose sites have the rules."""
        self._crawl = crawl
        self._database = database
        self._clock = clock
        self._thinned: dict[int, Rule] = {}
        self._thinned_at = 0.0
        self._deltas = self._saved_bytes = self._given_up = 0

    async def run(self) -> str:
        """Catch up with the crawl, and give up what the rules do not keep."""
        deltas, given_up = self._deltas, self._given_up
        await self._compact()
        rules, now = self._rules(), self._clock.now()
        if rules and (rules != self._thinned or now - self._thinned_at >= THIN_EVERY_S):
            await self._thin(rules, now)
            self._thinned, self._thinned_at = rules, now
        return f"{self._deltas - deltas} deltas, {self._given_up - given_up} copies given up"

    async def progress(self) -> dict[str, int]:
        """Return what was done since the start, and how many versions wait to be looked at."""
        return {
            "deltas": self._deltas,
            "saved_bytes": self._saved_bytes,
            "given_up": self._given_up,
            "waiting": await self._database.read(delta.waiting),
        }

    def _rules(self) -> dict[int, Rule]:
        rules = {
            site.site_id: Rule(site.config.keep_versions, site.config.keep_days)
            for site in self._crawl.sites.values()
        }
        return {site_id: rule for site_id, rule in rules.items() if rule != Rule()}

    async def _compact(self) -> None:
        while (slice_ := await self._planned(delta.plan)) is not None:
            for version_id in slice_.unreadable:
                log.error("body_damaged", version=version_id, hint="crawld doctor")
            await self._database.write(delta.apply, slice_)
            self._deltas += len(slice_.deltas)
            self._saved_bytes += slice_.saved_bytes

    async def _thin(self, rules: dict[int, Rule], now: float) -> None:
        after = 0
        while (slice_ := await self._planned(retention.plan, rules, now, after=after)) is not None:
            if slice_.versions:
                await self._database.write(retention.apply, slice_)
            after = slice_.up_to
            self._given_up += len(slice_.versions)

    async def _planned(
        self, plan: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Plan a slice, and rest as long as that took."""
        began_s = trio.current_time()
        slice_ = await self._database.read(plan, *args, **kwargs)
        await trio.sleep(trio.current_time() - began_s)
        return slice_
