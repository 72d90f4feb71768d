"""A crawl of a simulated web without requests: what is visited when, and what is stored of it.

Every page is visited at fixed times, two days apart, unless it rests; what the job requests is
visited at the next step. All visits are counted. Stored are those that the job may learn from:
first visits, changed texts, requested pages, and all visits of hosts that are replicas or have
them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.bench.replica_rounds.page_visits import (
    START_AT,
    PageVisits,
    failed,
    linking_visit,
    unchanged,
)
from crawld.core.replica.hosts import Ids, Keys
from crawld.core.units import DAY_S
from crawld.simweb.lookalike.pages import Flags, SiteTexts
from crawld.simweb.lookalike.render import origin_of
from crawld.simweb.lookalike.web import LookalikeWeb
from crawld.store import visit
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.visit import VisitRecord

REVISIT_DAYS: Final = 2.0
NEVER_DAY: Final = -1e9

SOON_DAYS: Final = 1.0 / 24.0
"""Until a page is visited that does not wait, and the job looks at it."""

_FOUND_SHARE: Final = 0.03
"""Share of a host's unvisited pages that a step of the crawl visits."""

_WRITTEN: Final = 500
_MOST_LINKING: Final = 40


class SimulatedCrawl:
    """The pages of a web in a database, and their visits.

    Attributes:
        first_page: index of the first page of each host among all pages, and the end.
        page_ids: page_id of each page.
        index_of: index of each page_id.
        host_of: number of the host of each page.
        visited_day: day of the last visit of each page; `NEVER_DAY`: none.
        visits: number of visits of each page.
        step_days: time between two steps.
        day: now.
    """

    def __init__(self, web: LookalikeWeb, database: Database, *, step_days: float) -> None:
        self.web, self._database, self.step_days = web, database, step_days
        sizes = [len(host.pages) for host in web.hosts]
        self.first_page: Ids = np.concatenate(([0], np.cumsum(sizes)))
        self.host_of: Ids = np.repeat(np.arange(len(sizes)), sizes)
        self.page_ids: Ids = np.zeros(len(self.host_of), dtype=np.int64)
        self.index_of: dict[int, int] = {}
        self.visited_day: NDArray[np.float64] = np.full(len(self.host_of), NEVER_DAY)
        self.visits: Ids = np.zeros(len(self.host_of), dtype=np.int64)
        self.day = 0.0
        self.site_id = 0
        self._turn = 0
        self._shown: Keys = np.zeros(len(self.host_of), dtype=np.uint64)
        self._phase = np.arange(len(self.host_of)) % round(REVISIT_DAYS / step_days)
        self._rested: Flags = np.zeros(len(self.host_of), dtype=bool)
        self._visitor = PageVisits(web)
        self._texts = SiteTexts([host.pages for host in web.hosts])
        self._order = np.random.default_rng(5)

    # --- start -----------------------------------------------------------------------------------

    async def fill(self) -> None:
        """Store every page, and the visits made before day 0."""
        write = self._database.write
        self.site_id = await write(site.upsert, "web", "{}", source="config", at=START_AT)
        linking = await self._store_linking_pages()
        for host in self.web.hosts:
            first, at = self.first_page[host.number], START_AT + host.first_seen_day * DAY_S
            referrers = [linking[name] for name in host.linked_from[:_MOST_LINKING]]
            found = [
                replace(
                    self._discovery(f"{origin_of(host)}{path}", at, depth=path.count("/")),
                    referrer_id=referrers[number] if number < len(referrers) else None,
                )
                for number, path in enumerate(host.pages.paths)
            ]
            new = await write(frontier.discover, found)
            by_url = {page.url: page.page_id for page in new}
            ids = [by_url[one.url] for one in found]
            self.page_ids[first : first + len(ids)] = ids
            self.index_of |= {page_id: int(first) + at for at, page_id in enumerate(ids)}
        begun: list[VisitRecord] = []
        texts = self._texts.text_at(self.day)
        for host in self.web.hosts:
            template = self._visitor.learn(host.number, self.day)
            first = int(self.first_page[host.number])
            for number, at in enumerate(np.flatnonzero(host.visited).tolist()):
                record = self._visit(host.number, at, int(texts[first + at]))
                if number == 0 and record is not None and template is not None:
                    record = replace(record, template=template)
                begun += [record] if record is not None else []
        await self._store(begun)

    async def _store_linking_pages(self) -> dict[str, int]:
        names = list(
            dict.fromkeys(
                name for host in self.web.hosts for name in host.linked_from[:_MOST_LINKING]
            )
        )
        found: dict[str, int] = {}
        for begin in range(0, len(names), _WRITTEN):
            some = [
                self._discovery(f"http://{name}/about-{name}", START_AT, depth=0)
                for name in names[begin : begin + _WRITTEN]
            ]
            new = await self._database.write(frontier.discover, some)
            found |= {page.url.split("/")[2]: page.page_id for page in new}
        linked: dict[str, list[str]] = {}
        for host in self.web.hosts:
            for name in host.linked_from[:_MOST_LINKING]:
                linked.setdefault(name, []).append(f"{origin_of(host)}/")
        await self._store(
            [linking_visit(page_id, name, linked[name]) for name, page_id in found.items()]
        )
        return found

    def _discovery(self, url: str, at: float, *, depth: int) -> Discovery:
        return Discovery.of(url, site_id=self.site_id, at=at, depth=depth)

    # --- steps -----------------------------------------------------------------------------------

    async def step(
        self,
        resting: Collection[int],
        requested: Collection[int],
        watched: Collection[int],
        *,
        soon: bool = False,
    ) -> None:
        """Let time pass and make the visits that are due.

        Args:
            resting: page_ids that rest.
            requested: page_ids that the job wants to be visited soon.
            watched: numbers of the hosts of which every visit is stored.
            soon: only an hour passes, and only what does not wait is visited.
        """
        self._turn += not soon
        self.day = self.day + SOON_DAYS if soon else self._turn * self.step_days
        rests = np.zeros(len(self.host_of), dtype=bool)
        rests[self.indexes(resting)] = True
        wanted = np.zeros(len(self.host_of), dtype=bool)
        wanted[self.indexes(requested)] = True
        wanted |= self._rested & ~rests
        seen = self.visited_day > NEVER_DAY
        due = wanted
        if not soon:
            turn = self._turn % round(REVISIT_DAYS / self.step_days)
            due = (seen & (self._phase == turn)) | wanted | self._found(~seen & ~rests)
        due = due & ~rests
        self._rested = rests
        always = np.zeros(len(self.web.hosts), dtype=bool)
        always[list(watched)] = True
        records = []
        texts = self._texts.text_at(self.day)
        hosts = self.host_of[due]
        for number in np.unique(hosts).tolist():
            first, end = self.first_page[number], self.first_page[number + 1]
            record_all = bool(always[number])
            for at in np.flatnonzero(due[first:end]).tolist():
                index = int(first) + at
                store = record_all or bool(wanted[index])
                record = self._visit(number, at, int(texts[index]), store_unchanged=store)
                records += [record] if record is not None else []
        await self._store(records)

    def indexes(self, page_ids: Collection[int]) -> list[int]:
        """Return the indexes of pages of the web."""
        return [self.index_of[page_id] for page_id in page_ids if page_id in self.index_of]

    def _found(self, unvisited: Flags) -> Flags:
        """Return which of the pages that were never visited are visited in this step."""
        found: Flags = unvisited & (self._order.random(len(unvisited)) < _FOUND_SHARE)
        return found

    def _visit(
        self, number: int, at: int, shown: int, *, store_unchanged: bool = False
    ) -> VisitRecord | None:
        """Count a visit; return it if it is to be stored."""
        host, index = self.web.hosts[number], int(self.first_page[number]) + at
        to = int(host.pages.redirect_to[at])
        before = self.visited_day[index]
        self.visited_day[index] = self.day
        self.visits[index] += before > NEVER_DAY
        page_id = int(self.page_ids[index])
        if not shown and to < 0:
            return failed(page_id, self.day) if before == NEVER_DAY or store_unchanged else None
        if before == NEVER_DAY or shown != int(self._shown[index]):
            self._shown[index] = shown
            return self._visitor.changed(page_id, number, at, self.day, shown)
        if not store_unchanged:
            return None
        moved_to = None
        if to >= 0:
            moved_to = f"{origin_of(self.web.hosts[to])}{host.pages.paths[at]}"
        return unchanged(page_id, self.day, moved_to=moved_to)

    async def _store(self, records: list[VisitRecord]) -> None:
        for begin in range(0, len(records), _WRITTEN):
            await self._database.write(visit.record_all, records[begin : begin + _WRITTEN])
