"""Load weights and change models into the policies, in the background after the start.

The start reads last visits only, so that a million pages load in a second. Weights and models
follow here, host by host in slices, with a rest after each; until then a policy learns from
visits only. The same task replaces the policies that a reload has changed.

Invariant: at most one slice of models is in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from itertools import groupby
from typing import Final

import apsw
import numpy as np
import numpy.typing as npt
import structlog
import trio

from crawld.core.change.record import Records, is_current, records_of
from crawld.core.change.site_model import SiteModel, default_site_model
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.revisit_queue import VisitedPages
from crawld.daemon.pacing import Pace
from crawld.daemon.site_models import read_site_model
from crawld.store.changes import allocation
from crawld.store.changes.allocation import WeightedModel
from crawld.store.changes.model import BEFORE_FIRST
from crawld.store.engine.background import background_reads

log = structlog.get_logger(__name__)

SLICE: Final = 4_096
"""Pages per slice: about two milliseconds of work for a policy."""

REST_FACTOR: Final = 1.0
"""Rest after each slice, as a multiple of its work."""


class ModelSlice:
    """Some models of one site on one host.

    Attributes:
        pages: (n,) int64, page numbers.
        weights: (n,) float64, importance.
        records: (n,), in the same order.
    """

    __slots__ = ("host_id", "pages", "records", "site_id", "weights")

    def __init__(self, rows: list[WeightedModel]) -> None:
        self.host_id, self.site_id = rows[0].host_id, rows[0].site_id
        self.pages: npt.NDArray[np.int64] = np.array([row.page_id for row in rows], np.int64)
        self.weights: npt.NDArray[np.float64] = np.array([row.importance for row in rows])
        self.records: Records = records_of(row.record for row in rows)


def read_slice(
    connection: apsw.Connection, after: tuple[int, int], last_host: int = 2**63 - 1
) -> tuple[list[ModelSlice], tuple[int, int] | None]:
    """Return the next models, on a reader's thread.

    Returns:
        The models by host and site, and the key to continue after; None: these were the last.
    """
    rows, end = allocation.batch(connection, after=after, last_host=last_host, limit=SLICE)
    return grouped(rows), end


def grouped(rows: Iterable[WeightedModel]) -> list[ModelSlice]:
    """Return models by host and site."""
    held = sorted((row for row in rows if is_current(row.record)), key=_host_and_site)
    return [ModelSlice(list(group)) for _, group in groupby(held, key=_host_and_site)]


def _host_and_site(row: WeightedModel) -> tuple[int, int]:
    return row.host_id, row.site_id


class PolicyLoader(BackgroundWork):
    """The background task that loads and replaces policies."""

    def __init__(
        self,
        context: CrawlContext,
        *,
        on_switched: Callable[[Collection[tuple[int, int]]], Awaitable[object]],
    ) -> None:
        """Start with all policies due.

        Args:
            on_switched: gets the (host_id, site_id) of replaced policies, which have no hints yet.
        """
        super().__init__(context)
        self._on_switched = on_switched
        self._due = True

    def reload(self) -> None:
        """Load weights and models again, after a refit."""
        self._due = True
        self._state.policies_changed.set()

    async def run(self) -> None:
        """Load all policies, again after each refit; replace policies that a reload changed."""
        with background_reads():
            while True:
                self._state.policies_changed = trio.Event()
                if switched := await self._switch():
                    log.info("policies_switched", hosts=len(switched))
                if switched or self._due:
                    self._due = False
                    await self.load()
                if switched:
                    await self._on_switched(switched)
                await self._state.policies_changed.wait()

    def _all(self) -> Iterator[PageQueue]:
        for host in list(self._state.hosts.values()):
            yield from list(host.pages.values())

    async def _switch(self) -> set[tuple[int, int]]:
        switched = set()
        for pages in self._all():
            if not pages.switching:
                continue
            known = await self._database.read(
                allocation.revisit_pages, pages.host_id, pages.site_id
            )
            pages.switch(VisitedPages(*known))
            switched.add((pages.host_id, pages.site_id))
        if switched:
            await self._state.schedule.wake_all()
        return switched

    async def load(self) -> None:
        """Give every policy the weights and change models of its pages."""
        hosts = {host.host_id: host for host in self._state.hosts.values()}
        sites = await self._site_models()
        after: tuple[int, int] | None = BEFORE_FIRST
        pace = Pace(REST_FACTOR)
        while after is not None:
            groups, after = await self._database.read(read_slice, after)
            for group in groups:
                host = hosts.get(group.host_id)
                pages = host.pages.get(group.site_id) if host else None
                if pages is not None:
                    _load(pages, group, sites.get(group.site_id, default_site_model()))
                    await trio.lowlevel.checkpoint()
            await pace.rest()

    async def _site_models(self) -> dict[int, SiteModel]:
        """Return the fitted models of each site, one object a site: its tables are shared."""
        return {
            site_id: await read_site_model(self._database, site_id)
            for site_id in list(self._state.sites)
        }


def _load(pages: PageQueue, models: ModelSlice, site: SiteModel) -> None:
    for index in np.flatnonzero(models.weights != 1.0).tolist():
        pages.set_weight(int(models.pages[index]), float(models.weights[index]))
    pages.set_models(models.pages, models.records, site)
