"""Shares the turns of every host among its pages: the price of each host, and who follows it.

Models are read in slices; then one allocation over all hosts (OPT_POLITE, `core/revisit`) in a
thread: a host gives a turn every P_h seconds at most, its delay as it is now, back-off included.
Stored is the price of each host; policies that follow frequencies get them from memory, the others
need none. How far the result is from optimal is part of what the job says (KKT residual).

Source: PUC-Rio dissertation, chapter 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import trio

from crawld.core.revisit.allocation import Allocation, Web, allocate, kkt_residual
from crawld.daemon.crawl import Crawl
from crawld.daemon.teaching import REST, Models, read_slice
from crawld.store import price
from crawld.store.database import Database
from crawld.store.model import FIRST

EVERY_S: Final = 3600.0

LEAST_DELAY_S: Final = 0.01
"""A host without a delay answers no faster than this."""

WRITTEN: Final = 1000
"""Prices stored in one transaction."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pages:
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
class Shared:
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


def share(pages: Pages, delay_s: dict[int, float]) -> Shared:
    """Return the politest best use of all turns of all hosts.

    Args:
        pages: ordered by host, at least one.
        delay_s: of each host.
    """
    hosts, starts = np.unique(pages.host, return_index=True)
    offsets = np.append(starts, len(pages.host)).astype(np.int64)
    ceiling = np.array([1.0 / max(delay_s[host], LEAST_DELAY_S) for host in hosts.tolist()])
    web = Web(pages.rate, offsets, ceiling, pages.weight)
    bandwidth = float(ceiling.sum())
    allocation = allocate(web, bandwidth)
    return Shared(hosts, offsets, allocation, kkt_residual(web, bandwidth, allocation))


class Allocate:
    """The job."""

    name = "allocate"
    every_s = EVERY_S

    def __init__(self, crawl: Crawl, database: Database) -> None:
        """Take the crawl whose turns are to be shared."""
        self._crawl = crawl
        self._database = database
        self._pages = self._hosts = 0

    async def run(self) -> str:
        """Share all turns, store the prices and hand out the frequencies."""
        pages = await self._read()
        if pages is None:
            return "no page has a model yet"
        delay_s = {host.host_id: host.delay_s() for host in self._crawl.hosts.values()}
        shared = await trio.to_thread.run_sync(share, pages, delay_s)
        prices = list(zip(shared.hosts.tolist(), shared.allocation.price.tolist(), strict=True))
        for start in range(0, len(prices), WRITTEN):
            await self._database.write(price.put, prices[start : start + WRITTEN])
        await self._hand_out(pages, shared)
        self._pages, self._hosts = len(pages.page), len(shared.hosts)
        spent = float(shared.allocation.spent.sum())
        return (
            f"{self._pages} pages, {self._hosts} hosts, {spent:.4g} visits a second,"
            f" KKT residual {shared.residual:.1e}"
        )

    async def progress(self) -> dict[str, int]:
        """Return what the last allocation covered."""
        return {"pages": self._pages, "hosts": self._hosts}

    async def _read(self) -> Pages | None:
        """Read the models of active sites, host by host."""
        known = {host.host_id for host in self._crawl.hosts.values()}
        slices: list[Pages] = []
        after: tuple[int, int] | None = FIRST
        while after is not None:
            began_s = trio.current_time()
            groups, after = await self._database.read(read_slice, after)
            wanted = (group for group in groups if group.site_id in self._crawl.sites)
            slices += [_pages_of(group) for group in wanted if group.host_id in known]
            await trio.sleep(REST * (trio.current_time() - began_s))
        return await trio.to_thread.run_sync(_joined, slices) if slices else None

    async def _hand_out(self, pages: Pages, shared: Shared) -> None:
        by_id = {host.host_id: host for host in self._crawl.hosts.values()}
        places = zip(shared.hosts.tolist(), shared.offsets[:-1], shared.offsets[1:], strict=True)
        for host_id, first, end in places:
            host = by_id.get(host_id)
            for site_id, of_site in list(host.pages.items()) if host else ():
                own = first + np.flatnonzero(pages.site[first:end] == site_id)
                of_site.allocated(pages.page[own], shared.allocation.frequency[own])
            await trio.lowlevel.checkpoint()
        self._crawl.schedule.wake_all()


def _pages_of(models: Models) -> Pages:
    count = len(models.pages)
    return Pages(
        models.pages,
        np.full(count, models.host_id, np.int64),
        np.full(count, models.site_id, np.int64),
        models.records["rate"].astype(np.float64),
        models.weights,
    )


def _joined(slices: list[Pages]) -> Pages:
    host = np.concatenate([each.host for each in slices])
    order = np.argsort(host, kind="stable")
    return Pages(
        np.concatenate([each.page for each in slices])[order],
        host[order],
        np.concatenate([each.site for each in slices])[order],
        np.concatenate([each.rate for each in slices])[order],
        np.concatenate([each.weight for each in slices])[order],
    )
