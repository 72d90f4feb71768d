"""Shares the turns of every host among its pages: the price of each host, and who follows it.

A host gives a turn every P_h seconds at most, its delay as it is now, back-off included, and all
its turns are used. So hosts are independent of each other, and one whose pages have hardly changed
since the last time keeps its price: only the pages that visits brought up to date get another
frequency, which follows from that price and their own model. All other hosts are read in slices
and allocated together (OPT_POLITE, `core/revisit`) in a thread. A refit makes every host new.

Stored is the price of each host; policies that follow frequencies get them from memory, in parts
with a rest after each, the others need none. How far the result is from optimal is part of what the
job says (KKT residual).

Source: PUC-Rio dissertation, chapter 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import trio

from crawld.core.revisit.allocation import Allocation, allocate, kkt_residual
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.price import revisit_frequency
from crawld.core.revisit.registry import FrequencyPolicy
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.policy_loader import ModelSlice, grouped, read_slice
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.pacing import Pace
from crawld.store.changes import allocation as price
from crawld.store.engine.database import Database
from crawld.workers import Workers

EVERY_S: Final = 3600.0

LEAST_DELAY_S: Final = 0.01
"""A host without a delay answers no faster than this."""

WRITTEN: Final = 1000
"""Prices stored in one transaction."""

HANDED: Final = 512
"""Frequencies handed to a policy at one go, some 2 ms of work."""

REST_FACTOR: Final = 1.0
"""Rest after each slice, as a multiple of its work."""

FEW: Final = 0.02
"""While fewer than this share of its pages were visited, a host keeps its price."""

LATE_S: Final = 60.0
"""Visits are committed a little after their instant: so much is looked at twice."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AllocationPages:
    """The pages of an allocation, ordered by host: one line of each array a page.

    Attributes:
        page: page numbers. host: host numbers. site: site numbers.
        rate: changes per second.
        weight: importance.
    """

    page: npt.NDArray[np.int64]
    host: npt.NDArray[np.int64]
    site: npt.NDArray[np.int64]
    rate: Floats
    weight: Floats


@dataclass(frozen=True, slots=True)
class AllocationResult:
    """What an allocation came to.

    Attributes:
        hosts: host numbers, in the order of `allocation.price`.
        offsets: first page of each host and, last, the number of pages.
        allocation: frequencies and prices.
        residual: distance from the conditions that prove it optimal.
    """

    hosts: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    allocation: Allocation
    residual: float


def allocate_hosts(pages: AllocationPages, delay_s: dict[int, float]) -> AllocationResult:
    """Return the politest best use of all turns of all hosts.

    Args:
        pages: ordered by host, at least one.
        delay_s: of each host.
    """
    hosts, starts = np.unique(pages.host, return_index=True)
    offsets = np.append(starts, len(pages.host)).astype(np.int64)
    ceiling = np.array([1.0 / max(delay_s[host], LEAST_DELAY_S) for host in hosts.tolist()])
    web = PagesByHost(pages.rate, offsets, ceiling, pages.weight)
    bandwidth = float(ceiling.sum())
    allocation = allocate(web, bandwidth)
    return AllocationResult(hosts, offsets, allocation, kkt_residual(web, bandwidth, allocation))


@dataclass(frozen=True, slots=True)
class HostAllocation:
    """What the last allocation of a host rests on.

    Attributes:
        at: Unix seconds.
        price: weighted fresh seconds a visit.
        pages: how many it covered.
        delay_s: of the host then.
        policies: of its sites then, (site, name).
    """

    at: float
    price: float
    pages: int
    delay_s: float
    policies: tuple[tuple[int, str], ...]


class AllocateJob:
    """The job."""

    name = "allocate"
    every_s = EVERY_S

    def __init__(
        self, crawl: CrawlState, database: Database, clock: Clock, *, workers: Workers
    ) -> None:
        """Take the crawl whose turns are to be shared."""
        self._crawl = crawl
        self._database = database
        self._clock = clock
        self._workers = workers
        self._done: dict[int, HostAllocation] = {}
        self._pages = self._hosts = self._kept = 0

    def reset(self) -> None:
        """Allocate every host anew the next time: models were refitted."""
        self._done.clear()

    async def run(self) -> str:
        """Share all turns, store the prices and hand out the frequencies."""
        new, self._kept = [], 0
        for host in list(self._crawl.hosts.values()):
            if await self._keeps_price(host):
                self._kept += 1
            else:
                new.append(host.host_id)
        kept = f"{self._kept} hosts keep their price" if self._kept else ""
        began_at = self._clock.now()
        pages = await self._read(new)
        if pages is None:
            return kept or "no page has a model yet"
        delay_s = {host.host_id: host.delay_s() for host in self._crawl.hosts.values()}
        shared = await self._workers.run(allocate_hosts, pages, delay_s)
        await self._store(shared, delay_s, began_at)
        await self._hand_out(pages, shared)
        self._pages, self._hosts = len(pages.page), len(shared.hosts)
        spent = float(shared.allocation.spent.sum())
        said = (
            f"{self._pages} pages, {self._hosts} hosts, {spent:.4g} visits a second,"
            f" KKT residual {shared.residual:.1e}"
        )
        return f"{said}; {kept}" if kept else said

    async def progress(self) -> dict[str, int]:
        """Return what the last allocation covered."""
        return {"pages": self._pages, "hosts": self._hosts, "kept": self._kept}

    # --- hosts that hardly changed -------------------------------------------------------------

    async def _keeps_price(self, host: HostState) -> bool:
        """Whether the last price of a host still holds; its visited pages then follow it anew."""
        done, now = self._done.get(host.host_id), self._clock.now()
        if done is None or not done.at <= now or _policies(host) != done.policies:
            return False
        most = int(FEW * done.pages)
        if abs(host.delay_s() - done.delay_s) > FEW * done.delay_s or not most:
            return False
        rows = []
        for site_id in self._active(host):
            rows += await self._database.read(
                price.updated_since, host.host_id, site_id, done.at - LATE_S, limit=most + 1
            )
        if len(rows) > most:
            return False
        for models in grouped(rows):
            of_site = host.pages.get(models.site_id)
            if of_site is not None:
                rate = models.records["rate"].astype(np.float64)
                frequency = revisit_frequency(rate, done.price, models.weights)
                await self._hand(of_site, models.pages, frequency)
        return True

    def _active(self, host: HostState) -> list[int]:
        return [site_id for site_id in host.pages if site_id in self._crawl.sites]

    # --- all others ----------------------------------------------------------------------------

    async def _read(self, hosts: Iterable[int]) -> AllocationPages | None:
        """Read the models of active sites, host by host."""
        wanted_hosts, slices = set(hosts), []
        known = sorted(host.host_id for host in self._crawl.hosts.values())
        for first, last in _runs(known, wanted_hosts):
            after: tuple[int, int] | None = (first - 1, 2**63 - 1)
            pace = Pace(REST_FACTOR)
            while after is not None:
                groups, after = await self._database.read(read_slice, after, last)
                wanted = (group for group in groups if group.site_id in self._crawl.sites)
                slices += [_pages_of(group) for group in wanted if group.host_id in wanted_hosts]
                await pace.rest()
        return await self._workers.run(_concatenate, slices) if slices else None

    async def _store(self, shared: AllocationResult, delay_s: dict[int, float], at: float) -> None:
        prices = list(zip(shared.hosts.tolist(), shared.allocation.price.tolist(), strict=True))
        for start in range(0, len(prices), WRITTEN):
            await self._database.write(price.put_prices, prices[start : start + WRITTEN])
        by_id = {host.host_id: host for host in self._crawl.hosts.values()}
        for (host_id, own), pages in zip(prices, np.diff(shared.offsets).tolist(), strict=True):
            if host_id in by_id:
                policies = _policies(by_id[host_id])
                self._done[host_id] = HostAllocation(at, own, pages, delay_s[host_id], policies)

    async def _hand_out(self, pages: AllocationPages, shared: AllocationResult) -> None:
        by_id = {host.host_id: host for host in self._crawl.hosts.values()}
        places = zip(shared.hosts.tolist(), shared.offsets[:-1], shared.offsets[1:], strict=True)
        for host_id, first, end in places:
            host = by_id.get(host_id)
            for site_id, of_site in list(host.pages.items()) if host else ():
                own = first + np.flatnonzero(pages.site[first:end] == site_id)
                await self._hand(of_site, pages.page[own], shared.allocation.frequency[own])
            await trio.lowlevel.checkpoint()
        self._crawl.schedule.wake_all()

    async def _hand(self, of_site: PageQueue, pages: npt.NDArray[np.int64], given: Floats) -> None:
        """Hand frequencies to a policy that follows them, in parts: no slot waits for all."""
        pace = Pace(REST_FACTOR)
        for start in range(0, len(pages), HANDED):
            if not isinstance(of_site.policy, FrequencyPolicy):
                return
            part = slice(start, start + HANDED)
            of_site.set_frequencies(pages[part], given[part])
            await pace.rest()


def _policies(host: HostState) -> tuple[tuple[int, str], ...]:
    return tuple((site_id, pages.policy_name) for site_id, pages in sorted(host.pages.items()))


def _runs(known: Iterable[int], wanted: set[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each row of wanted numbers without another known one between."""
    first = last = None
    for number in [*known, None]:
        if number is not None and number in wanted:
            first, last = (number if first is None else first), number
        elif first is not None and last is not None:
            yield first, last
            first = last = None


def _pages_of(models: ModelSlice) -> AllocationPages:
    count = len(models.pages)
    return AllocationPages(
        models.pages,
        np.full(count, models.host_id, np.int64),
        np.full(count, models.site_id, np.int64),
        models.records["rate"].astype(np.float64),
        models.weights,
    )


def _concatenate(slices: list[AllocationPages]) -> AllocationPages:
    host = np.concatenate([each.host for each in slices])
    order = np.argsort(host, kind="stable")
    return AllocationPages(
        np.concatenate([each.page for each in slices])[order],
        host[order],
        np.concatenate([each.site for each in slices])[order],
        np.concatenate([each.rate for each in slices])[order],
        np.concatenate([each.weight for each in slices])[order],
    )
