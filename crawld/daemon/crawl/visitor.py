"""What a turn with a page does: ask, read, judge, hand to the recorder, and put the page back.

The turn ends with the answer; the page comes back to its host's pages when its visit is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import structlog
import trio

from crawld.core.page import Outcome
from crawld.core.revisit.policies import VisitObservation
from crawld.core.url import parse
from crawld.daemon.clock import Clock
from crawld.daemon.fetch.request import request_for
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.daemon.schedule.schedule import Schedule
from crawld.daemon.visit.conclude import Visit, conclude
from crawld.daemon.visit.feedback import VisitLearning
from crawld.daemon.visit.record import observation_of, record_of
from crawld.daemon.visit.recorder import PendingVisit, Recorder
from crawld.daemon.visit.requisite import conclude_requisite, request_for_requisite
from crawld.daemon.visit.validators import NO_VALIDATORS, RequestMode
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.store.engine.database import Database
from crawld.store.frontier import host as host_rows
from crawld.store.frontier.host import HostUpdate
from crawld.store.frontier.page import PageRecord
from crawld.store.replica.sample import STAND_IN_PREFIX
from crawld.store.visit import RecordResult, VisitRecord

if TYPE_CHECKING:
    from crawld.daemon.crawl.loop import Crawl

log = structlog.get_logger(__name__)

_ELSEWHERE = RequestMode(elsewhere=True)

ONCE_TRIES = 3
"""Visits a failing page is given by a one-off mirror."""


class Visitor:
    """Visits pages on behalf of the crawl.

    Attributes:
        counts: visits since the start by outcome.
        wire_bytes: body bytes received since the start.
    """

    def __init__(
        self, crawl: Crawl, network: Connectivity, clock: Clock, database: Database
    ) -> None:
        self.counts: dict[Outcome, int] = dict.fromkeys(Outcome, 0)
        self.wire_bytes = 0
        self._crawl = crawl
        self._schedule: Schedule = crawl.schedule
        self._learning: VisitLearning = crawl.learning
        self._recorder: Recorder = crawl.recorder
        self._network = network
        self._clock = clock
        self._database = database

    async def visit(
        self,
        host: HostState,
        pages: PageQueue,
        page: PageRecord,
        site: ActiveSite,
        *,
        url: str | None = None,
    ) -> None:
        """Ask for a page in the turn of a host, and hand what came to the recorder.

        Args:
            host: the host whose turn it is.
            pages: where the page was taken from.
            page: the page.
            site: its site.
            url: where a host has it that stands in for the page's own; None: it is the own.
        """
        entry = await self._made(host, pages, page, site, url)
        if entry is not None:
            # By now the page read is given up: while the disk is slow many visits wait here.
            await self._recorder.put(entry)

    async def _made(
        self,
        host: HostState,
        pages: PageQueue,
        page: PageRecord,
        site: ActiveSite,
        url: str | None,
    ) -> PendingVisit | None:
        """Make a visit; return what is to be recorded of it."""
        sources = self._crawl.hint_sources.get((site.site_id, page.host_id))
        if url is None:
            asked = self._learning.ask(
                page, self._clock.now(), host.delay_s(), covered=sources is not None
            )
            if page.page_id in self._crawl.audited:
                asked = replace(asked, sent=NO_VALIDATORS)
        else:
            asked = _ELSEWHERE
        answer = await self._ask(host, page, site, asked, url)
        if isinstance(answer, FetchFailure) and answer.local_fault and self._network.down:
            pages.returned(page.page_id)
            return None
        visit = await self._find(page, site, answer, asked)
        judged = self._crawl.absence.judge(visit, site)
        if url is not None and (judged is None or not self._crawl.capacity.vouches(judged)):
            pages.returned(page.page_id)
            await self._set_aside(host, visit)
            await self._crawl.capacity.end(host, f"{visit.judgement.outcome}: {url}")
            self._crawl.capacity.wake_partners(host)
            return None
        if judged is None:
            self._rest(host, visit)
            pages.again(page.page_id)
            return None
        visit = judged
        self._count(visit)
        if (told := self._crawl.audited.pop(page.page_id, None)) is not None:
            told(visit.judgement.outcome)
        self._rest(host, visit)
        self._follow_seed(site, visit)
        learnt = self._learning.learn(visit)
        update = _host_update(host, visit, learnt.told.skew_s)
        record = record_of(visit, learnt, update, self._crawl.caps, sources)
        if url is not None:
            record = _stood_in(record, host)
        observation = observation_of(visit, learnt, record.model if pages.learns else None)
        put_back = self._way_back(pages, visit, observation, again=learnt.again)
        # A page that has just changed is shown whole soon, ahead of what was found before.
        soon = visit.needs is not None and not visit.first_copy
        shown = visit.judgement.outcome if url is None else None
        on_recorded = partial(self._recorded, host, pages, page.page_id, put_back, soon, shown)
        return PendingVisit(record, on_recorded)

    async def compare(self, host: HostState, page: PageRecord, site: ActiveSite, url: str) -> None:
        """Ask a replica for a page that its own host has just shown otherwise than the replica.

        The leave of a replica ends that still does not show the same. Nothing is recorded: the own
        host has said how the page is.
        """
        answer = await self._ask(host, page, site, _ELSEWHERE, url)
        if isinstance(answer, FetchFailure) and answer.local_fault and self._network.down:
            return
        visit = await self._find(page, site, answer, _ELSEWHERE)
        await self._set_aside(host, visit)
        if visit.judgement.outcome is not Outcome.UNCHANGED:
            await self._crawl.capacity.end(host, f"{visit.judgement.outcome}: {url}")

    async def _ask(
        self,
        host: HostState,
        page: PageRecord,
        site: ActiveSite,
        asked: RequestMode,
        url: str | None,
    ) -> FetchResponse | FetchFailure:
        ask = request_for_requisite if page.requisite else request_for
        named = page if url is None else page._replace(url=url)
        request = ask(named, site, asked.sent, host=host.slot.host, delay_s=host.delay_s())
        if host.group is not None and host.group.bytes_per_s is not None:
            request = replace(request, max_bytes_per_s=host.group.bytes_per_s)
        answer = await self._crawl.line.fetch(site, request)
        if answer.sent_at is not None:
            self._schedule.lateness.add(answer.sent_at - host.slot.planned_at)
        self._network.observed(host.slot.host, answer)
        return answer

    async def _find(
        self,
        page: PageRecord,
        site: ActiveSite,
        answer: FetchResponse | FetchFailure,
        asked: RequestMode,
    ) -> Visit:
        now = self._clock.now()
        # What was fetched is recorded, whatever else is given up meanwhile.
        with trio.CancelScope(shield=True):
            finding = await self._learning.examine(page, site, answer, asked)
        find = conclude_requisite if page.requisite else conclude
        return find(
            page,
            site,
            answer,
            asked=asked,
            finding=finding,
            admission=self._crawl.admission,
            now=now,
        )

    async def _set_aside(self, host: HostState, visit: Visit) -> None:
        """Note what an answer cost that says nothing of its page."""
        self._rest(host, visit)
        await self._database.write(
            host_rows.record_request, host.host_id, _host_update(host, visit, None)
        )

    def _count(self, visit: Visit) -> None:
        self.counts[visit.judgement.outcome] += 1
        if isinstance(visit.answer, FetchResponse):
            self.wire_bytes += visit.answer.wire_bytes

    def _rest(self, host: HostState, visit: Visit) -> None:
        if visit.judgement.host_trouble:
            host.troubled(visit.at, visit.retry_after_s)
            if visit.retry_after_s is not None:
                log.info("host_asks_for_rest", host=host.slot.host, rest_s=visit.retry_after_s)
        else:
            host.answered(visit.at)
        answer = visit.answer
        host.spaced(answer.answered_at if isinstance(answer, FetchResponse) else answer.at)

    def _way_back(
        self, pages: PageQueue, visit: Visit, observation: VisitObservation, *, again: bool
    ) -> Callable[[], None]:
        """Return how the page is put back; holds nothing of the visit, which may be large."""
        page_id, judgement = visit.page.page_id, visit.judgement
        if again:
            return partial(pages.again, page_id)
        if self._crawl.settings.once:
            if judgement.transient and visit.failure_count < ONCE_TRIES:
                return partial(pages.failed, page_id, visit.retry_at or visit.at)
            return partial(pages.forgotten, page_id)
        if visit.retry_at is not None:
            return partial(pages.failed, page_id, visit.retry_at)
        return partial(pages.visited, page_id, visit.at, observation, visit.page.importance)

    def _follow_seed(self, site: ActiveSite, visit: Visit) -> None:
        """A seed that moved within its domain takes the site along."""
        if visit.judgement.outcome is not Outcome.MOVED or not visit.page.seed:
            return
        target = visit.judgement.detail
        if site.admits_redirect(target, visit.page.url, seed=True):
            self._crawl.sites[site.site_id] = site.with_host(parse(target).host)

    def _recorded(
        self,
        host: HostState,
        pages: PageQueue,
        page_id: int,
        put_back: Callable[[], None],
        soon: bool,
        shown: Outcome | None,
        recorded: RecordResult,
    ) -> None:
        # Only now may the page come again: its next visit starts from what the file says.
        pages.recorded(page_id)
        put_back()
        if shown is not None:
            self._crawl.capacity.visited(host, page_id, shown)
        self._crawl.enter_pages(recorded.new_pages, soon=soon)
        self._schedule.wake(host.slot)
        self._crawl.capacity.wake_partners(host)


def _stood_in(record: VisitRecord, host: HostState) -> VisitRecord:
    """Return the record of a visit that a replica answered: its validators are of its own."""
    return replace(
        record,
        asked_host_id=host.host_id,
        detail=f"{STAND_IN_PREFIX}{host.slot.host}",
        etag=None,
        last_modified=None,
    )


def _host_update(host: HostState, visit: Visit, skew_s: float | None) -> HostUpdate:
    sent = visit.answer.sent_at is not None
    answer = visit.answer
    names = answer.certificate if isinstance(answer, FetchResponse) else ()
    update = host.update(visit.at if sent else None, answer.address, names)
    return update if skew_s is None else replace(update, clock_skew_s=skew_s)
