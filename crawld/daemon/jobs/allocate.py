"""The `allocate` job: share the requests of every host among its pages.

A host allows one request per delay (back-off included), and all of them are used, so hosts are
independent of each other, unless they share a rate (`crawl/shared_rates.py`): then all of them are
allocated together, and get turns in proportion to their visits. A host whose pages hardly changed
keeps its price (marginal value of a visit); only its recently visited pages get a new frequency,
from that price and their own model.
All other hosts are read in slices and allocated in a thread, some hosts at a time
(`core/revisit/host_allocation.py`, which the laboratory uses, too). A refit of the models makes
every host new.

The price of each host is stored. Policies that follow frequencies get them in parts, with a rest
after each; other policies need none, and where they are all, and no rate is shared, the job runs
only when it is asked for. The job's result states the distance from the optimum (KKT
residual).

Source: PUC-Rio dissertation, chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import trio

from crawld.core.revisit.host_allocation import (
    EVERY_S,
    KEEP_SHARE,
    AllocationPages,
    AllocationResult,
    HostLimit,
    allocate_hosts,
    frequency_at_price,
    least_frequency,
    most_visited,
)
from crawld.core.revisit.registry import FrequencyPolicy
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.policy_loader import ModelSlice, grouped
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.jobs.allocation_reader import AllocationReader, follows_frequencies
from crawld.daemon.pacing import Pace
from crawld.plugins import Estimator
from crawld.store.changes import allocation as allocation_rows

PAGES_AT_ONCE: Final = 250_000
"""Where no hosts share a rate, they are allocated in groups of about so many pages: 50 MB, while
the file may know ten millions."""

PRICES_AT_ONCE: Final = 1000
"""Prices stored in one transaction."""

FREQUENCIES_AT_ONCE: Final = 512
"""Frequencies handed to a policy in one step, about 2 ms of work."""

REST_FACTOR: Final = 1.0
"""Rest after each slice, as a multiple of its work."""

OVERLAP_S: Final = 60.0
"""Visits are committed a little late, so the time before the last run is read again."""

Floats = npt.NDArray[np.float64]

SitePolicy = tuple[int, str, float | None]
"""Number of a site, name of its policy, and longest time between two visits (seconds) if any."""


@dataclass(frozen=True, slots=True)
class HostAllocation:
    """The last allocation of a host.

    Attributes:
        at: Unix seconds.
        price: weighted seconds of freshness per visit.
        delay_s: delay of the host then.
        turns_per_s: visits to the host per second, of all its pages.
        policies: (site number, policy name, longest time between visits) of its sites then.
    """

    at: float
    price: float
    pages: int
    delay_s: float
    turns_per_s: float
    policies: tuple[SitePolicy, ...]


@dataclass(slots=True)
class _Done:
    """What a run has allocated so far.

    Attributes:
        spent: visits per second, by host number.
        residual: the greatest of all groups.
    """

    pages: int = 0
    spent: dict[int, float] = field(default_factory=dict)
    residual: float = 0.0

    def add(self, pages: AllocationPages, result: AllocationResult) -> None:
        """Add the hosts of a group."""
        self.pages += len(pages.page)
        spent = result.allocation.spent.tolist()
        self.spent.update(zip(result.hosts.tolist(), spent, strict=True))
        self.residual = max(self.residual, result.residual)


class AllocateJob(BackgroundWork):
    """The `allocate` job."""

    name = "allocate"
    every_s = EVERY_S

    def __init__(self, context: CrawlContext, estimator: Estimator | None = None) -> None:
        """Start without an allocation.

        Args:
            estimator: of a plug-in, for the rates of change; None: those of the models.
        """
        super().__init__(context)
        self._reader = AllocationReader(context, estimator)
        self._last: dict[int, HostAllocation] = {}
        self._limits: list[HostLimit] = []
        self._pages = self._hosts = self._kept = 0

    def reset(self) -> None:
        """Allocate every host again in the next run, after a refit of the models."""
        self._last.clear()

    def has_work(self) -> bool:
        """Whether an allocation is used: hosts share a rate, or a policy follows frequencies.

        In a mirror of ten million pages it takes minutes of CPU, every hour.
        """
        hosts = self._state.hosts.values()
        return any(
            host.slot.gates
            or follows_frequencies(host)
            or any(isinstance(queue.policy, FrequencyPolicy) for queue in host.pages.values())
            for host in hosts
        )

    async def run(self) -> str:
        """Allocate requests, store the prices and deliver the frequencies."""
        limits = self._state.rates.limits()
        if limits != self._limits:
            self.reset()
        self._limits = limits
        new, self._kept = [], 0
        for host in list(self._state.hosts.values()):
            if await self._keeps_price(host):
                self._kept += 1
            else:
                new.append(host.host_id)
        if limits and new:  # hosts that share a rate are not independent
            new, self._kept = [host.host_id for host in self._state.hosts.values()], 0
        kept = f"{self._kept} hosts keep their price" if self._kept else ""
        done = _Done()
        async with aclosing(
            self._reader.groups(new, at_once=math.inf if limits else PAGES_AT_ONCE)
        ) as groups:
            async for pages, read_at in groups:
                await self._allocate(pages, read_at, done)
        if not done.pages:
            return kept or "no page has a model yet"
        await self._state.schedule.wake_all()
        self._pages, self._hosts = done.pages, len(done.spent)
        summary = (
            f"{self._pages} pages, {self._hosts} hosts, {sum(done.spent.values()):.4g} visits a"
            f" second, KKT residual {done.residual:.1e}"
        )
        return f"{summary}; {kept}" if kept else summary

    async def _allocate(self, pages: AllocationPages, read_at: float, done: _Done) -> None:
        """Allocate the requests of some hosts, which share no rate with others."""
        delay_s = {host.host_id: host.delay_s() for host in self._state.hosts.values()}
        longest_s = {
            site_id: site.config.max_revisit_s
            for site_id, site in self._state.sites.items()
            if site.config.max_revisit_s is not None
        }
        result = await self._workers.run(
            allocate_hosts, pages, delay_s, self._limits, longest_s, abandon_on_cancel=True
        )
        await self._store(result, delay_s, read_at)
        done.add(pages, result)
        self._share(done.spent)
        await self._deliver(pages, result)

    async def progress(self) -> dict[str, int]:
        """Return the size of the last allocation."""
        return {"pages": self._pages, "hosts": self._hosts, "kept": self._kept}

    # --- hosts that keep their price -------------------------------------------------------------

    async def _keeps_price(self, host: HostState) -> bool:
        """Whether a host keeps its price; if so, its visited pages get new frequencies."""
        last, now = self._last.get(host.host_id), self._clock.now()
        if last is None or not last.at <= now or self._policies(host) != last.policies:
            return False
        most = most_visited(last.pages)
        if abs(host.delay_s() - last.delay_s) > KEEP_SHARE * last.delay_s or not most:
            return False
        rows = []
        for site_id in self._active_sites(host):
            rows += await self._database.read(
                allocation_rows.updated_since,
                host.host_id,
                site_id,
                last.at - OVERLAP_S,
                limit=most + 1,
            )
        if len(rows) > most:
            return False
        for models in grouped(rows):
            queue = host.pages.get(models.site_id)
            if queue is not None:
                await self._reader.estimate(models)
                await self._set_frequencies(queue, models.pages, self._at_price(host, models, last))
        return True

    def _at_price(self, host: HostState, models: ModelSlice, last: HostAllocation) -> Floats:
        site = self._state.sites[models.site_id]
        longest_s = site.config.max_revisit_s or math.inf
        least = least_frequency(models.weights, last.turns_per_s / last.pages, longest_s)
        return frequency_at_price(
            models.records, last.price, models.weights, least, follows=follows_frequencies(host)
        )

    def _active_sites(self, host: HostState) -> list[int]:
        return [site_id for site_id in host.pages if site_id in self._state.sites]

    # --- other hosts -----------------------------------------------------------------------------

    async def _store(self, result: AllocationResult, delay_s: dict[int, float], at: float) -> None:
        prices = list(zip(result.hosts.tolist(), result.allocation.price.tolist(), strict=True))
        for start in range(0, len(prices), PRICES_AT_ONCE):
            await self._database.write(
                allocation_rows.put_prices, prices[start : start + PRICES_AT_ONCE]
            )
        by_id = {host.host_id: host for host in self._state.hosts.values()}
        counts, turns = np.diff(result.offsets).tolist(), result.allocation.spent.tolist()
        for (host_id, own), pages, spent in zip(prices, counts, turns, strict=True):
            if host_id in by_id:
                policies = self._policies(by_id[host_id])
                self._last[host_id] = HostAllocation(
                    at, own, pages, delay_s[host_id], spent, policies
                )

    def _share(self, spent: Mapping[int, float]) -> None:
        """Give each host its part of the rates that it shares, relative to the mean."""
        mean = sum(spent.values()) / len(spent)
        for host in self._state.hosts.values():
            host.slot.share = spent.get(host.host_id, mean) / mean if mean else 1.0

    async def _deliver(self, pages: AllocationPages, result: AllocationResult) -> None:
        by_id = {host.host_id: host for host in self._state.hosts.values()}
        places = zip(result.hosts.tolist(), result.offsets[:-1], result.offsets[1:], strict=True)
        for host_id, first, end in places:
            host = by_id.get(host_id)
            for site_id, queue in list(host.pages.items()) if host else ():
                own = first + np.flatnonzero(pages.site[first:end] == site_id)
                await self._set_frequencies(
                    queue, pages.page[own], result.allocation.frequency[own]
                )
            await trio.lowlevel.checkpoint()

    def _policies(self, host: HostState) -> tuple[SitePolicy, ...]:
        found = []
        for site_id, queue in sorted(host.pages.items()):
            site = self._state.sites.get(site_id)
            longest_s = None if site is None else site.config.max_revisit_s
            found.append((site_id, queue.policy_name, longest_s))
        return tuple(found)

    async def _set_frequencies(
        self, queue: PageQueue, pages: npt.NDArray[np.int64], frequencies: Floats
    ) -> None:
        """Hand frequencies to a policy that follows them, in parts that delay no fetch slot."""
        pace = Pace(REST_FACTOR)
        for start in range(0, len(pages), FREQUENCIES_AT_ONCE):
            if not isinstance(queue.policy, FrequencyPolicy):
                return
            part = slice(start, start + FREQUENCIES_AT_ONCE)
            queue.set_frequencies(pages[part], frequencies[part])
            await pace.rest()
