"""The `allocate` job: share the requests of every host among its pages.

A host allows one request per delay (back-off included), and all of them are used, so hosts are
independent of each other, unless they share a rate (`crawl/shared_rates.py`): then all of them are
allocated together, and get turns in proportion to their visits. A host whose pages hardly changed
keeps its price (marginal value of a visit); only its recently visited pages get a new frequency,
from that price and their own model.
All other hosts are read in slices and allocated together in a thread
(`core/revisit/host_allocation.py`, which the laboratory uses, too). A refit of the models makes
every host new.

The price of each host is stored. Policies that follow frequencies get them in parts, with a rest
after each; other policies need none. The job's result states the distance from the optimum (KKT
residual).

Source: PUC-Rio dissertation, chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import trio

from crawld.core.change.model import PageModel
from crawld.core.change.record import Records
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
from crawld.core.revisit.registry import FOLLOW_FREQUENCIES, FrequencyPolicy
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.policy_loader import ModelSlice, grouped, read_slice
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.pacing import Pace
from crawld.plugins import Estimator
from crawld.store.changes import allocation as allocation_rows

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
        self._estimator = estimator
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
        longest_s = {
            site_id: site.config.max_revisit_s
            for site_id, site in self._state.sites.items()
            if site.config.max_revisit_s is not None
        }
        result = await self._workers.run(
            allocate_hosts, pages, delay_s, limits, longest_s, abandon_on_cancel=True
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
                await self._estimate(models)
                await self._set_frequencies(queue, models.pages, self._at_price(host, models, last))
        return True

    def _at_price(self, host: HostState, models: ModelSlice, last: HostAllocation) -> Floats:
        site = self._state.sites[models.site_id]
        longest_s = site.config.max_revisit_s or math.inf
        least = least_frequency(models.weights, last.turns_per_s / last.pages, longest_s)
        return frequency_at_price(
            models.records, last.price, models.weights, least, follows=_follows(host)
        )

    def _active_sites(self, host: HostState) -> list[int]:
        return [site_id for site_id in host.pages if site_id in self._state.sites]

    # --- other hosts -----------------------------------------------------------------------------

    async def _read(self, hosts: Iterable[int]) -> AllocationPages | None:
        """Read the models of active sites on these hosts."""
        wanted_hosts, slices = set(hosts), []
        by_id = {host.host_id: host for host in self._state.hosts.values()}
        known = sorted(by_id)
        for first, last in _runs(known, wanted_hosts):
            after: tuple[int, int] | None = (first - 1, 2**63 - 1)
            pace = Pace(REST_FACTOR)
            while after is not None:
                groups, after = await self._database.read(read_slice, after, last)
                for models in groups:
                    host = by_id.get(models.host_id)
                    if (
                        models.site_id not in self._state.sites
                        or models.host_id not in wanted_hosts
                    ):
                        continue
                    await self._estimate(models)
                    if host is not None and _follows(host):  # a millisecond for 500 pages
                        slices.append(await self._workers.run(_pages_of, models, True))
                    else:
                        slices.append(_pages_of(models, False))
                await pace.rest()
        if not slices:
            return None
        return await self._workers.run(AllocationPages.joined, slices, abandon_on_cancel=True)

    async def _estimate(self, models: ModelSlice) -> None:
        """Give models the rates of the estimator, if a plug-in supplies one."""
        if self._estimator is not None:
            models.records = await self._workers.run(
                _with_rates, models.records, self._estimator, abandon_on_cancel=True
            )

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


def _follows(host: HostState) -> bool:
    """Whether some policy of a host follows frequencies."""
    return any(queue.policy_name in FOLLOW_FREQUENCIES for queue in host.pages.values())


def _with_rates(records: Records, estimator: Estimator) -> Records:
    """Return models with the rates of an estimator, per second."""
    models = [PageModel.from_bytes(record.tobytes()) for record in records]
    found = records.copy()
    found["rate"] = [estimator(model) for model in models]
    return found


def _pages_of(models: ModelSlice, follows: bool) -> AllocationPages:
    return AllocationPages.of_models(
        models.pages,
        models.records,
        models.weights,
        host=models.host_id,
        site=models.site_id,
        follows=follows,
    )


def _runs(known: Iterable[int], wanted: set[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of wanted numbers with no other known number between."""
    first = last = None
    for number in [*known, None]:
        if number is not None and number in wanted:
            first, last = (number if first is None else first), number
        elif first is not None and last is not None:
            yield first, last
            first = last = None
