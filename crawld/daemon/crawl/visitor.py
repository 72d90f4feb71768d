"""Visit a page in five steps: ask, read, judge, learn, record.

    ask      request the page with conditions, or without      `crawl/page_requests.py`
    read     compare the body with the copy held, conclude     `visit/change_detection.py`,
                                                               `visit/conclude.py`
    judge    check whether a page that seems gone is gone      `visit/soft_404.py`
    learn    update noise rules and trust in validators        `visit/feedback.py`
    record   rows for the file, and the page back to its queue `visit/record.py`

The turn ends with the response; the page returns to its queue when its visit is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import structlog
import trio

from crawld.core.content.search import searchable_text
from crawld.core.page import Outcome
from crawld.core.request_profiles import WALL_MAX_DELAY_S
from crawld.core.revisit.policies import VisitObservation
from crawld.core.url import target_of
from crawld.core.url_growth import file_pieces, text_pieces
from crawld.daemon.analyser import Analyser
from crawld.daemon.analysis_memory import AnalysisDroppedError
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.page_profiles import PageProfiles
from crawld.daemon.crawl.page_requests import PageRequests
from crawld.daemon.crawl.page_selection import PageTask
from crawld.daemon.crawl.replica_leases import ReplicaLeases
from crawld.daemon.crawl.state import FEW_PAGES, CrawlState
from crawld.daemon.fetch.request_form import RequestForm
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.quarantine import Quarantine
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.daemon.visit.conclude import Visit, begin_visit, conclude
from crawld.daemon.visit.content import HTML_TYPES
from crawld.daemon.visit.feedback import VisitLearning
from crawld.daemon.visit.record import VisitFeedback, observation_of, record_of
from crawld.daemon.visit.recorder import LongCallback, PendingVisit, Recorder
from crawld.daemon.visit.requisite import conclude_requisite
from crawld.daemon.visit.response_hooks import ResponseHooks
from crawld.daemon.visit.soft_404 import Soft404Check
from crawld.daemon.visit.validators import RequestMode
from crawld.memory import MemoryLease
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.sources.mediawiki_timing import latest_arrival
from crawld.store.engine.database import Database
from crawld.store.frontier import host as host_rows
from crawld.store.frontier.host import HostUpdate
from crawld.store.frontier.page import PageRecord
from crawld.store.frontier.quarantine import StepName
from crawld.store.visit import RecordResult, VisitRecord

log = structlog.get_logger(__name__)

_GONE = frozenset({Outcome.GONE, Outcome.SOFT_GONE, Outcome.MOVED})

KEPT_COPY_BYTES: Final = 128 * 1024
"""The text of a larger copy is read for the search apart from its visit."""

ONCE_TRIES: Final = 3
"""Most visits of a failing page in a one-off mirror."""


class Responder:
    """The host that answers a visit: the page's own host, or a replica (`StandIn`)."""

    __slots__ = ("_visitor", "host")

    def __init__(self, host: HostState, visitor: Visitor) -> None:
        self.host = host
        self._visitor = visitor

    def request_mode(self, page: PageRecord, *, covered: bool) -> RequestMode:
        """Return how to request a page; `covered`: hint sources report its changes."""
        return self._visitor.request_mode(page, self.host, covered=covered)

    def url(self, page: PageRecord) -> str:
        """Return the URL to request."""
        return page.url

    async def accepts(self, task: PageTask, visit: Visit, judged: Visit | None) -> bool:
        """Whether a visit may be recorded; if not, put the page back.

        Args:
            visit: the visit as it was read.
            judged: the visit after judgement; None: its origin must be probed first.
        """
        if judged is None:
            self._visitor.rest(self.host, visit)
            task.queue.visit_again(task.page.page_id)
        return judged is not None

    def adapt(self, record: VisitRecord) -> VisitRecord:
        """Return the record as it is stored for this host."""
        return record

    def recorded(self, page_id: int, outcome: Outcome) -> None:
        """Check copies of a page from replicas against its committed visit."""
        self._visitor.leases.visited(self.host, page_id, outcome)


class Visitor:
    """Visits pages.

    Attributes:
        counts: visits since the start by outcome.
        wire_bytes: body bytes received since the start.
        leases: checks replicas against visits.
    """

    def __init__(
        self,
        state: CrawlState,
        learning: VisitLearning,
        soft_404: Soft404Check,
        recorder: Recorder,
        leases: ReplicaLeases,
        connectivity: Connectivity,
        clock: Clock,
        database: Database,
        analyser: Analyser,
        quarantine: Quarantine,
        profiles: PageProfiles,
        requests: PageRequests,
        *,
        response_hooks: ResponseHooks | None = None,
    ) -> None:
        self.counts: dict[Outcome, int] = dict.fromkeys(Outcome, 0)
        self.new_pages = 0
        self.wire_bytes = 0
        self.leases = leases
        self._state = state
        self._learning = learning
        self._soft_404 = soft_404
        self._recorder = recorder
        self._connectivity = connectivity
        self._clock = clock
        self._database = database
        self._analyser = analyser
        self._quarantine = quarantine
        self._profiles = profiles
        self._requests = requests
        self._response_hooks = response_hooks

    async def visit(self, task: PageTask, responder: Responder) -> None:
        """Visit a page in the turn of a host, and queue the result for the file."""
        try:
            with self._analyser.memory.visit():
                pending = await self._visit(task, responder)
        except AnalysisDroppedError:
            task.queue.put_back(task.page.page_id)
            return
        except Exception as error:
            error.add_note(f"at the visit of {task.page.url}")
            raise
        if pending is not None:
            # The parsed page is released by now: while the disk is slow many visits wait here.
            await self._recorder.put(pending)
            if self._state.settings.once:
                await self._state.kept_texts.wait_for_room()

    async def _visit(self, task: PageTask, responder: Responder) -> PendingVisit | None:
        site = task.site
        # A replica answers as it answers everybody.
        own = responder.url(task.page) == task.page.url
        page = task.page
        form = self._requests.form(page, site)
        use = self._profiles.begin(page, site, form.shape) if own and site.profiles else None
        if use is not None:
            form = use.form
        sources = self._state.hint_sources.get((site.site_id, page.host_id))
        mode = responder.request_mode(page, covered=sources is not None)
        whole = page.page_id in self._state.audits or (use is not None and use.held is None)
        mode = self._requests.mode_of(mode, form, page, whole=whole)
        held = self._quarantine.step_of_page(page.page_id, page.url)
        url = responder.url(page)
        response = await self._requests.send(responder.host, page, site, mode, url, held, form)
        if self._is_our_fault(responder.host, response):
            task.queue.put_back(page.page_id)
            return None
        if use is not None and held is None and not mode.variant:
            compared = await self._profiles.of_same_form(use, page, response)
            if compared is None:
                mode = mode.as_variant()
            else:
                page = compared
        visit = await self._read(page, site, response, mode, held, form)
        wanted: Visit | None = None
        if not self._wants_spelling(page, responder, response):
            wanted = visit if use is None else await self._profiles.judge(use, visit)
        if wanted is None:
            await self.set_aside(responder.host, visit)
            self._state.admission.take_back(visit.admitted)
            task.queue.visit_again(page.page_id)
            return None
        visit = wanted
        judged = await self._soft_404.judge(visit, site)
        if not await responder.accepts(task, visit, judged):
            self._state.admission.take_back(visit.admitted)
            return None
        assert judged is not None
        self._observe(responder.host, site, judged)
        feedback = self._learning.learn(judged, responder.host.delay_s())
        return self._record(task, responder, judged, feedback, sources)

    def _is_our_fault(self, host: HostState, response: FetchResponse | FetchFailure) -> bool:
        """Whether a fetch says nothing about its host, whose delay begins nevertheless.

        Without it the host would be asked again at once, while a failed lookup is kept.
        """
        is_ours = self._connectivity.is_our_fault(response)
        if is_ours:
            host.rest_from(response.arrived_at)
        return is_ours

    def _wants_spelling(
        self, page: PageRecord, responder: Responder, response: FetchResponse | FetchFailure
    ) -> bool:
        """Whether the host wants a page to be asked for under another spelling of its URL."""
        if not isinstance(response, FetchResponse) or responder.url(page) != page.url:
            return False
        return self._state.spellings.learn(page.url, response)

    async def compare(
        self, host: HostState, page: PageRecord, site: ActiveSite, url: str, mode: RequestMode
    ) -> Visit | None:
        """Request a page and compare it with the copy held; record only the host's back-off.

        Returns:
            The visit; None where the network is down, or the daemon stops.
        """
        held = self._quarantine.step_of_page(page.page_id, page.url)
        form = self._requests.form_of_copy(page, site)
        mode = self._requests.mode_of(mode, form, page, whole=False)
        response = await self._requests.send(host, page, site, mode, url, held, form)
        if self._is_our_fault(host, response):
            return None
        try:
            with self._analyser.memory.visit():
                visit = await self._read(page, site, response, mode, held, form)
        except AnalysisDroppedError:
            return None
        await self.set_aside(host, visit)
        self._state.admission.take_back(visit.admitted)
        return visit

    def request_mode(self, page: PageRecord, host: HostState, *, covered: bool) -> RequestMode:
        """Return how to request a page from its own host."""
        return self._learning.request_mode(page, self._clock.now(), host.delay_s(), covered=covered)

    # --- read ----------------------------------------------------------------------------------

    async def _read(
        self,
        page: PageRecord,
        site: ActiveSite,
        response: FetchResponse | FetchFailure,
        mode: RequestMode,
        held: StepName | None,
        form: RequestForm,
    ) -> Visit:
        now = self._clock.now()
        # Also if it was released meanwhile: then another visit reads it.
        readable = held is None
        begin = partial(
            begin_visit,
            page,
            response,
            mode=mode,
            analyser=self._analyser,
            form=form.key(page.url),
            readable=readable,
            now=now,
        )
        if isinstance(response, FetchFailure) or response.status == 304:
            return await begin(comparison=None)
        # What was fetched is recorded, even when everything else is cancelled.
        with trio.CancelScope(shield=True):
            comparison = None
            if readable:
                comparison = await self._learning.compare(page, site, response, mode)
            visit = await begin(comparison=comparison)
            if visit.has_more:
                admission, analyser = self._state.admission, self._analyser
                if page.requisite:
                    visit = await conclude_requisite(
                        visit, site, admission=admission, analyser=analyser
                    )
                else:
                    visit = await conclude(
                        visit,
                        site,
                        admission=admission,
                        analyser=analyser,
                        hooks=self._response_hooks,
                    )
        return visit

    # --- what a visit means for its host -------------------------------------------------------

    def _observe(self, host: HostState, site: ActiveSite, visit: Visit) -> None:
        """Count a visit, report it to an audit, rest its host, and follow a seed that moved."""
        outcome = visit.judgement.outcome
        if outcome is Outcome.CHANGED and visit.variant:
            outcome = Outcome.UNCHANGED
        self.counts[outcome] += 1
        if outcome is Outcome.CHANGED and visit.first_copy and not visit.variant:
            self.new_pages += 1
            if not visit.page.requisite:
                self._count_growth(visit)
        if isinstance(visit.response, FetchResponse):
            self.wire_bytes += visit.response.wire_bytes
        if (on_audited := self._state.audits.pop(visit.page.page_id, None)) is not None:
            on_audited(outcome)
        self.rest(host, visit)
        if visit.vanishing is not None:
            self._state.set_vanishing(visit.page.host, visit.at if visit.vanishing else None)
        if outcome is Outcome.MOVED and visit.page.seed:
            target = visit.judgement.detail
            if site.admits_redirect(target, visit.page.url, seed=True):
                self._state.follow_seed(site, target)

    def _count_growth(self, visit: Visit) -> None:
        """Count the first copy of a page for the pattern of its URL."""
        page, body = visit.page, visit.fetched.body
        is_text = visit.readable and visit.content and visit.content.content_type in HTML_TYPES
        target = target_of(page.url)
        read = partial(text_pieces, body, target) if is_text else partial(file_pieces, body)
        self._state.growth.visited(page.host, target, read)

    def rest(self, host: HostState, visit: Visit) -> None:
        """Start the host's delay after a response; trouble increases its back-off."""
        if visit.judgement.of_host and host.delay_s() >= WALL_MAX_DELAY_S:
            pass  # neither more trouble nor a success
        elif visit.judgement.host_trouble:
            host.record_trouble(visit.at, visit.retry_after_s)
            if visit.retry_after_s is not None:
                log.info("host_retry_after", host=host.slot.host, rest_s=visit.retry_after_s)
        else:
            host.record_success(visit.at)
        host.rest_from(_arrived_at(visit.response))

    async def set_aside(self, host: HostState, visit: Visit) -> None:
        """Rest a host after a response that is not recorded as a visit."""
        self.rest(host, visit)
        await self._database.write(
            host_rows.record_request, host.host_id, _host_update(host, visit, None)
        )

    # --- record --------------------------------------------------------------------------------

    def _record(
        self,
        task: PageTask,
        responder: Responder,
        visit: Visit,
        feedback: VisitFeedback,
        sources: tuple[int, ...] | None,
    ) -> PendingVisit:
        """Return the record of a visit and the callback for its commit."""
        update = _host_update(responder.host, visit, feedback.validators.skew_s)
        record = responder.adapt(record_of(visit, feedback, update, self._state.caps, sources))
        self._keep_text(visit)
        model = record.model if task.queue.uses_models else None
        put_back = self._put_back_call(
            task.queue, visit, observation_of(visit, feedback, model), again=feedback.again
        )
        # Requisites of a page that has just changed go to the front of the queue.
        soon = visit.needs is not None and not visit.first_copy
        outcome = visit.judgement.outcome
        # Must not hold the visit, which may be large: a thousand may wait.
        on_recorded = partial(
            self._recorded, task.queue, task.page.page_id, responder, outcome, put_back, soon
        )
        return PendingVisit(record, on_recorded, _record_lease(visit, record))

    def _keep_text(self, visit: Visit) -> None:
        """Keep the text of a new copy for the search, if it was analysed."""
        settings, compared = self._state.settings, visit.comparison
        if not settings.search or visit.body is None or compared is None:
            return
        analysis, is_small = compared.analysis, len(visit.fetched.body) <= KEPT_COPY_BYTES
        # A PDF is stored as its bytes, and its text apart.
        if analysis is not None and is_small and compared.pdf is None and not visit.page.requisite:
            self._state.kept_texts.keep(compared.digest, searchable_text(analysis.blocks))

    def _put_back_call(
        self, queue: PageQueue, visit: Visit, observation: VisitObservation, *, again: bool
    ) -> Callable[[], None]:
        """Return the call that puts the page back into its queue."""
        page_id, judgement = visit.page.page_id, visit.judgement
        if again:
            return partial(queue.visit_again, page_id)
        if self._state.settings.once:
            if judgement.transient and visit.failure_count < ONCE_TRIES:
                return partial(queue.retry, page_id, visit.retry_at or visit.at)
            return partial(queue.drop, page_id)
        if visit.retry_at is not None:
            if judgement.outcome in _GONE or visit.page.requisite:
                return partial(queue.retry, page_id, visit.retry_at, gone_at=visit.asked_at)
            return partial(queue.retry, page_id, visit.retry_at)
        importance, asked_at = visit.page.importance, visit.asked_at
        return partial(queue.visited, page_id, visit.at, observation, importance, asked_at=asked_at)

    def _recorded(
        self,
        queue: PageQueue,
        page_id: int,
        responder: Responder,
        outcome: Outcome,
        put_back: Callable[[], None],
        soon: bool,
        recorded: RecordResult,
    ) -> LongCallback | None:
        # Only now may the page be taken again: its next visit starts from the committed state.
        queue.mark_recorded(page_id)
        if recorded.released:
            queue.visit_again(page_id)
        else:
            put_back()
        responder.recorded(page_id, outcome)
        self._state.schedule.wake(responder.host.slot)
        self.leases.wake_partners(responder.host)
        new = recorded.new_pages
        if len(new) > FEW_PAGES:
            return partial(self._state.enter_all, new, soon=soon)
        self._state.enter_pages(new, soon=soon)
        return None


def _arrived_at(response: FetchResponse | FetchFailure) -> float:
    """Return when the server had a request, at the latest: as observed, or as its page proves."""
    if isinstance(response, FetchFailure):
        return response.arrived_at
    proven_at = latest_arrival(response.body, response.header, response.sent_at, response.ended_at)
    return response.arrived_at if proven_at is None else min(response.arrived_at, proven_at)


def _record_lease(visit: Visit, record: VisitRecord) -> MemoryLease | None:
    """Return the lease of the response, for the copy that waits for its commit."""
    lease = visit.response.lease if isinstance(visit.response, FetchResponse) else None
    if lease is None or record.body is None:
        return None
    lease.shrink(len(record.body.data))
    return lease


def _host_update(host: HostState, visit: Visit, skew_s: float | None) -> HostUpdate:
    sent = visit.response.sent_at is not None
    response = visit.response
    names = response.certificate if isinstance(response, FetchResponse) else ()
    update = host.update(visit.at if sent else None, response.address, names)
    return update if skew_s is None else replace(update, clock_skew_s=skew_s)
