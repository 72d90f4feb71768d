"""The `allocate` job: share the requests of every host among its pages.

A host allows one request per delay (back-off included), and all of them are used, so hosts are
independent of each other, unless they share a rate (`crawl/shared_rates.py`): then all of them are
allocated together, and get turns in proportion to their visits. A host whose pages hardly changed
keeps its price (marginal value of a visit); only its recently visited pages get a new frequency,
from that price and their own model.
All other hosts are read in slices and allocated together (OPT_POLITE, `core/revisit`) in a thread.
A refit of the models makes every host new.

The price of each host is stored. Policies that follow frequencies get them in parts, with a rest
after each; other policies need none. The job's result states the distance from the optimum (KKT
residual).

Source: PUC-Rio dissertation, chapter 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import trio

from crawld.core.revisit.allocation import (
    Allocation,
    allocate,
    ceilings_within,
    kkt_residual,
)
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.price import revisit_frequency
from crawld.core.revisit.registry import FrequencyPolicy
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.policy_loader import ModelSlice, grouped, read_slice
from crawld.daemon.crawl.shared_rates import HostLimit
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.pacing import Pace
from crawld.store.changes import allocation as allocation_rows

MIN_DELAY_S: Final = 0.01
"""Smallest delay assumed, for hosts without a delay."""

PRICES_AT_ONCE: Final = 1000
"""Prices stored in one transaction."""

FREQUENCIES_AT_ONCE: Final = 512
"""Frequencies handed to a policy in one step, about 2 ms of work."""

REST_FACTOR: Final = 1.0
"""Rest after each slice, as a multiple of its work."""

KEEP_SHARE: Final = 0.02
"""A host keeps its price while a smaller share of its pages was visited since."""

OVERLAP_S: Final = 60.0
"""Visits are committed a little late, so the time before the last run is read again."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AllocationPages:
    """The pages of an allocation, ordered by host; one element of each array per page.

    `rate` is in changes per second.
    """

    page: npt.NDArray[np.int64]
    host: npt.NDArray[np.int64]
    site: npt.NDArray[np.int64]
    rate: Floats
    weight: Floats


@dataclass(frozen=True, slots=True)
class AllocationResult:
    """The result of an allocation.

    Attributes:
        hosts: host numbers, in the order of `allocation.price`.
        offsets: index of the first page of each host, then the number of pages.
        residual: KKT residual, the distance from optimality.
    """

    hosts: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    allocation: Allocation
    residual: float


def allocate_hosts(
    pages: AllocationPages, delay_s: dict[int, float], limits: Sequence[HostLimit] = ()
) -> AllocationResult:
    """Return the optimal allocation that uses every request of every host.

    Args:
        pages: at least one.
        delay_s: delay by host number.
        limits: what hosts share, the narrower ones first.
    """
    hosts, starts = np.unique(pages.host, return_index=True)
    offsets = np.append(starts, len(pages.host)).astype(np.int64)
    ceiling = np.array([1.0 / max(delay_s[host], MIN_DELAY_S) for host in hosts.tolist()])
    web = PagesByHost(pages.rate, offsets, ceiling, pages.weight)
    shared = [(np.isin(hosts, list(each.hosts)), each.visits_per_s) for each in limits]
    ceiling = ceilings_within(web, shared)
    web = replace(web, ceiling=ceiling)
    bandwidth = float(ceiling.sum())
    allocation = allocate(web, bandwidth)
    return AllocationResult(hosts, offsets, allocation, kkt_residual(web, bandwidth, allocation))


@dataclass(frozen=True, slots=True)
class HostAllocation:
    """The last allocation of a host.

    Attributes:
        at: Unix seconds.
        price: weighted seconds of freshness per visit.
        delay_s: delay of the host then.
        policies: (site number, policy name) of its sites then.
    """

    at: float
    price: float
    pages: int
    delay_s: float
    policies: tuple[tuple[int, str], ...]


class AllocateJob(BackgroundWork):
    """The `allocate` job."""

    name = "allocate"
    every_s = 3600.0

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._last: dict[int, HostAllocation] = {}
        self._limits: list[HostLimit] = []
        self._pages = self._hosts = self._kept = 0

    def reset(self) -> None:
        """Allocate every host again in the next run, after a refit of the models."""
        self._last.clear()

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
        began_at = self._clock.now()
        pages = await self._read(new)
        if pages is None:
            return kept or "no page has a model yet"
        delay_s = {host.host_id: host.delay_s() for host in self._state.hosts.values()}
        result = await self._workers.run(
            allocate_hosts, pages, delay_s, limits, abandon_on_cancel=True
        )
        await self._store(result, delay_s, began_at)
        self._share(result)
        await self._deliver(pages, result)
        self._pages, self._hosts = len(pages.page), len(result.hosts)
        spent = float(result.allocation.spent.sum())
        summary = (
            f"{self._pages} pages, {self._hosts} hosts, {spent:.4g} visits a second,"
            f" KKT residual {result.residual:.1e}"
        )
        return f"{summary}; {kept}" if kept else summary

    async def progress(self) -> dict[str, int]:
        """Return the size of the last allocation."""
        return {"pages": self._pages, "hosts": self._hosts, "kept": self._kept}

    # --- hosts that keep their price -------------------------------------------------------------

    async def _keeps_price(self, host: HostState) -> bool:
        """Whether a host keeps its price; if so, its visited pages get new frequencies."""
        last, now = self._last.get(host.host_id), self._clock.now()
        if last is None or not last.at <= now or _policies(host) != last.policies:
            return False
        most = int(KEEP_SHARE * last.pages)
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
                rate = models.records["rate"].astype(np.float64)
                frequency = revisit_frequency(rate, last.price, models.weights)
                await self._set_frequencies(queue, models.pages, frequency)
        return True

    def _active_sites(self, host: HostState) -> list[int]:
        return [site_id for site_id in host.pages if site_id in self._state.sites]

    # --- other hosts -----------------------------------------------------------------------------

    async def _read(self, hosts: Iterable[int]) -> AllocationPages | None:
        """Read the models of active sites on these hosts."""
        wanted_hosts, slices = set(hosts), []
        known = sorted(host.host_id for host in self._state.hosts.values())
        for first, last in _runs(known, wanted_hosts):
            after: tuple[int, int] | None = (first - 1, 2**63 - 1)
            pace = Pace(REST_FACTOR)
            while after is not None:
                groups, after = await self._database.read(read_slice, after, last)
                wanted = (group for group in groups if group.site_id in self._state.sites)
                slices += [_pages_of(group) for group in wanted if group.host_id in wanted_hosts]
                await pace.rest()
        if not slices:
            return None
        return await self._workers.run(_concatenate, slices, abandon_on_cancel=True)

    async def _store(self, result: AllocationResult, delay_s: dict[int, float], at: float) -> None:
        prices = list(zip(result.hosts.tolist(), result.allocation.price.tolist(), strict=True))
        for start in range(0, len(prices), PRICES_AT_ONCE):
            await self._database.write(
                allocation_rows.put_prices, prices[start : start + PRICES_AT_ONCE]
            )
        by_id = {host.host_id: host for host in self._state.hosts.values()}
        for (host_id, own), pages in zip(prices, np.diff(result.offsets).tolist(), strict=True):
            if host_id in by_id:
                policies = _policies(by_id[host_id])
                self._last[host_id] = HostAllocation(at, own, pages, delay_s[host_id], policies)

    def _share(self, result: AllocationResult) -> None:
        """Give each host its part of the rates that it shares, relative to the mean."""
        spent = result.allocation.spent
        mean = float(spent.mean())
        share_of = (
            dict(zip(result.hosts.tolist(), (spent / mean).tolist(), strict=True)) if mean else {}
        )
        for host in self._state.hosts.values():
            host.slot.share = share_of.get(host.host_id, 1.0)

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
        await self._state.schedule.wake_all()

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


def _policies(host: HostState) -> tuple[tuple[int, str], ...]:
    return tuple((site_id, pages.policy_name) for site_id, pages in sorted(host.pages.items()))


def _runs(known: Iterable[int], wanted: set[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of wanted numbers with no other known number between."""
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
