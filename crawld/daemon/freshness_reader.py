"""Reads the recent freshness of the mirror at intervals; `status` shows what was read last.

A site may have audits of thousands of hosts and millions of copies: counting them takes seconds and
is not repeated at each request. The reads are short and rest between each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import trio

from crawld.core.audit import AuditResult, day_of, hour_of
from crawld.core.units import DAY_S, HOUR_S
from crawld.daemon.clock import Clock
from crawld.daemon.pacing import PacedReader, parts_of
from crawld.store.changes import audit
from crawld.store.engine.background import background_reads
from crawld.store.engine.database import Database
from crawld.store.mirror import selection

REFRESH_S: Final = 10.0
"""Pause between two rounds while somebody asks: as old may the figures be then, and the time that a
round takes."""

UNASKED_S, MAX_UNASKED_S = 300.0, 3_600.0
"""The same while nobody asks, doubled with each round up to the longest: an idle daemon wakes for
nothing, and figures of a day and a week change little in an hour."""

REST_FACTOR: Final = 19.0
"""Rest after each read, in times of its duration: the reads take a twentieth of one reader."""

DAYS: Final = 7
"""Days that the figures cover."""

MAX_SITE_HOSTS: Final = 100
MAX_HOSTS: Final = 1_000
"""Hosts whose figures are kept: of a site, and about in all."""


@dataclass(frozen=True, slots=True)
class SiteFreshness:
    """The audits of a site and the copies that it shows.

    Attributes:
        audited, last_day: the audits of the week and of the last day.
        hosts: the audits of some of its hosts, in the order of their names.
        outdated: share of its pages that show an older copy than their newest, [0, 1]; None: it has
            no copies.
    """

    audited: AuditResult
    last_day: AuditResult
    hosts: Mapping[str, AuditResult]
    outdated: float | None


@dataclass(frozen=True, slots=True)
class RecentFreshness:
    """The freshness by site_id, of a week and a day that began at `since` and `day_since`."""

    since: float
    day_since: float
    sites: Mapping[int, SiteFreshness] = field(default_factory=dict)


class FreshnessReader:
    """Keeps the figures.

    Who asks gets what was read last, and lets it be read again soon.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._recent = RecentFreshness(self._since(clock), self._hour(clock))
        self._asked = trio.Event()
        self._clock = clock
        self._reader = PacedReader(database, REST_FACTOR)

    @property
    def recent(self) -> RecentFreshness:
        """What was read last; without sites until the first round is over."""
        self._asked.set()
        return self._recent

    async def run(self) -> None:
        """Read until cancelled."""
        unasked_s = UNASKED_S
        with background_reads():
            while True:
                await self.read()
                self._asked = trio.Event()
                await trio.sleep(REFRESH_S)
                with trio.move_on_after(unasked_s - REFRESH_S):
                    await self._asked.wait()
                is_asked = self._asked.is_set()
                unasked_s = UNASKED_S if is_asked else min(2 * unasked_s, MAX_UNASKED_S)

    async def read(self) -> None:
        """Read the figures once."""
        since = self._since(self._clock)
        first = day_of(since)
        day_since = self._hour(self._clock)
        days = await self._reader.read(audit.sums_by_hour, hour_of(day_since))
        sites: dict[int, SiteFreshness] = {}
        hosts_left = MAX_HOSTS
        for site_id, audited in (await self._reader.read(audit.sums_by_site, first)).items():
            limit = min(MAX_SITE_HOSTS, hosts_left)
            hosts = await self._reader.read(audit.sums_by_host, site_id, first, limit)
            hosts_left -= len(hosts)
            last_day = days.get(site_id, AuditResult())
            outdated = await self._outdated(site_id)
            sites[site_id] = SiteFreshness(audited, last_day, hosts, outdated)
        self._recent = RecentFreshness(since, day_since, sites)

    async def _outdated(self, site_id: int) -> float | None:
        now = self._clock.now()
        held = await self._reader.read(selection.count_held, site_id)
        found = 0
        for part in parts_of(await self._reader.read(selection.list_held_back, site_id, now)):
            found += await self._reader.read(selection.count_outdated, part, now)
        return min(found / held, 1.0) if held else None

    @staticmethod
    def _since(clock: Clock) -> float:
        return (day_of(clock.now()) - DAYS + 1) * DAY_S

    @staticmethod
    def _hour(clock: Clock) -> float:
        return (hour_of(clock.now() - DAY_S) + 1) * HOUR_S
