"""Client of wiki APIs: sends requests in the turns of their hosts.

Permission is checked before each request: one of the wiki's sites says `api = true` and is not
paused, the host is not paused and is open (back-off, Retry-After, quiet hours), and no robots.txt
rule that names crawld forbids it. Rules for every robot do not count here: many wikis close their
API to robots and invite programs to use it.

Each request takes a turn of its host, followed by the host's full delay. While pages are due
too, API requests use at most a share of its turns: the next one waits `delay / share`. Otherwise
they use all turns. Requests for what no reader misses, such as histories, take idle turns only:
while copies of the host are known to be stale, one turn in `1 / IDLE_FLOOR`, and their share of the
turns until `CALM_S` after the last hint. Edited pages come before requests; each has a time for
which it gives way, the shortest for polls of the recent changes, which report such pages.

Remote faults are values; only bugs and cancellation raise.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial

import structlog
import trio

from crawld.core.url import split_url
from crawld.daemon.crawl.api_shared import Urgency, WaitingQuestion, WaitingQuestions
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.loop import Crawl
from crawld.daemon.fetch.request import stays_open
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.daemon.waiting import wait_any
from crawld.net.exchange import FetchFailure, FetchRequest, FetchResponse
from crawld.sources.mediawiki_api import (
    MAX_RESPONSE_BYTES,
    REFUSALS,
    ApiResponse,
    ApiTrouble,
    Parameters,
    TroubleKind,
    query_url,
    read_response,
)
from crawld.store.changes.wiki import WikiRow

log = structlog.get_logger(__name__)

AT_ONCE = 3
"""API requests under way over all hosts: Wikimedia's limit for one client, used for all wikis."""

IDLE_FLOOR = 0.02
"""Share of the turns of a host for requests that wait for idle ones, while copies are stale: the
histories do not starve in a storm of edits that never ends."""

CALM_S = 20.0
"""Time without a hint before the histories take all idle turns: in a storm they keep to their
share, so that a wiki is asked for pages rather than by its API."""

PATIENCE_S = 20.0
"""How long edited pages come before a request, which no budget granted."""

POLL_PATIENCE_TURNS = 3.0
"""How many turns edited pages come before a poll: what it reports would wait for them, too, and
later it reports more. Deletions, which readers see by the poll, are still seen in time."""

LOOK_S = 1.0
"""Shortest pause before a busy host is checked again."""

MAX_WARNED = 1_000
"""Warnings remembered, so that each is logged once."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API, and the sites that permit its use."""

    site_ids: tuple[int, ...]
    url: str


def api_of(row: WikiRow, sites: Mapping[int, ActiveSite]) -> Api | None:
    """Return the API of a wiki, asked for those of its sites that trust it; None: it has none."""
    if row.api_url is None:
        return None
    trusting = (
        site_id
        for site_id in row.site_ids
        if site_id in sites and sites[site_id].trusts(row.api_url, f"{row.origin}/")
    )
    return Api(tuple(trusting), row.api_url)


class ApiClient(BackgroundWork):
    """Sends requests to the APIs of all wikis."""

    def __init__(self, context: CrawlContext, crawl: Crawl, connectivity: Connectivity) -> None:
        super().__init__(context)
        self._crawl = crawl
        self._connectivity = connectivity
        self._at_once = trio.CapacityLimiter(AT_ONCE)
        self._asked_at: dict[str, float] = {}
        self._warned: set[tuple[str, str]] = set()
        self._questions = WaitingQuestions()

    async def ask(
        self,
        api: Api,
        parameters: Parameters,
        *,
        due: bool = False,
        idle: bool = False,
        patience_s: float | None = None,
        waits_s: float | None = None,
        urgency: Urgency = Urgency.DOUBTED,
        takes_along: bool = False,
        due_for_s: float = 0.0,
        unless: trio.Event | None = None,
    ) -> ApiResponse | ApiTrouble:
        """Send one API request, as soon as politeness and the share of the host's turns allow.

        Args:
            parameters: of the query.
            due: a budget already granted the turn; do not wait for the share.
            idle: wait while copies of the host are known to be stale, except for a floor; a poll of
                the recent changes takes it along.
            patience_s: how long edited pages come first; None: `PATIENCE_S`, or not at all if due.
            waits_s: how long it waits for a request that takes it along, while edited pages wait,
                or while copies are stale and a poll comes in that time. 0: it goes along only if
                such a request comes before its own turn; None: never.
            urgency: which of the questions that wait goes first.
            takes_along: whether it takes them along, as polls do: these come before other requests,
                and edited pages before them for `POLL_PATIENCE_TURNS`.
            due_for_s: how long such a poll has been due.
            unless: ends the wait of a request that was not sent; the result is `HELD`.

        Returns:
            The response, or the reason why there is none. `HELD` and `FORBIDDEN` cost no request.
        """
        rules_of = next(iter(api.site_ids), 0)  # for a host that has no pages
        host = await self._state.ensure_host(split_url(api.url).host, rules_of)
        first = takes_along or (due and not patience_s)
        if takes_along:
            turn_s = self._state.rates.turn_every_s(host)
            patience_s = max(POLL_PATIENCE_TURNS * turn_s - due_for_s, 0.0)
        elif patience_s is None:
            patience_s = 0.0 if due else PATIENCE_S
        rank = Urgency.UNMISSED if idle else urgency
        question = WaitingQuestion(parameters, rank, trio.current_time())
        unless = trio.Event() if unless is None else unless
        if waits_s:
            await self._wait_shared(api, host, question, waits_s, unless)
        while question.response is None:
            if (held := self._held(api, host)) is not None:
                return held
            if unless.is_set():
                return ApiTrouble(TroubleKind.HELD, "it is asked for with something newer")
            if not due:
                await self._wait_turn(api, host, question)
            goes_along = (idle or waits_s is not None) and not question.ended.is_set()
            if question.response is None:
                lend = partial(
                    self._crawl.schedule.borrow,
                    host.slot,
                    first=first,
                    patience_s=patience_s,
                    unless=(question.ended, unless) if goes_along else (unless,),
                )
                ask = partial(self._ask_in_turn, api, host, parameters, takes_along)
                response = await self._ask_or_wait(api, question, lend, ask, goes_along=goes_along)
                if response is not None:
                    return response
                takes_along = False
        return question.response

    async def _ask_or_wait(
        self,
        api: Api,
        question: WaitingQuestion,
        lend: Callable[[], AbstractAsyncContextManager[bool]],
        ask: Callable[[], Awaitable[ApiResponse | ApiTrouble | None]],
        *,
        goes_along: bool,
    ) -> ApiResponse | ApiTrouble | None:
        """Send a request in the next turn, unless a poll takes it along before that.

        None: it was taken along, or has to be asked in another turn.
        """
        if goes_along:
            self._questions.put(api.url, question)
        waited = goes_along
        try:
            async with lend() as holds:
                waited = self._questions.withdraw(api.url, question)
                if holds and waited == goes_along:
                    return await ask()
        finally:
            self._questions.withdraw(api.url, question)
        if goes_along and not waited:
            await question.ended.wait()
        return None

    async def _ask_in_turn(
        self, api: Api, host: HostState, parameters: Parameters, takes_along: bool
    ) -> ApiResponse | ApiTrouble | None:
        """Send a request in a turn of its host; None: it has to be asked in another turn."""
        site = self._site(api)
        if site is None or self._held(api, host) is not None:
            return None
        origin = split_url(api.url).origin
        robots = await self._crawl.robots.fresh(origin)
        if robots is None:
            await self._crawl.robots_fetch.fetch(host, site, origin)
            return None
        if robots.names_agent and not robots.allowed(self._url(api, parameters)):
            return ApiTrouble(TroubleKind.FORBIDDEN, "robots.txt names crawld and forbids it")
        # Rules for crawld are checked for each request, so none takes others along.
        takes_along = takes_along and not robots.names_agent
        return await self._send(api, host, site, parameters, takes_along=takes_along)

    def _url(self, api: Api, parameters: Parameters) -> str:
        return query_url(api.url, parameters, maxlag_s=self._config().jobs.api_maxlag_s)

    # --- permission ----------------------------------------------------------------------------

    def _site(self, api: Api) -> ActiveSite | None:
        """Return the site for which a request may be sent now: first, one with headers for it."""
        permitted = [
            site
            for site_id in api.site_ids
            if (site := self._state.sites.get(site_id)) is not None
            and site.config.api
            and not site.paused
            and not self._state.traffic.is_over_quota(site)
        ]
        return min(permitted, key=lambda site: not site.headers_for(api.url), default=None)

    def _held(self, api: Api, host: HostState) -> ApiTrouble | None:
        """Return why no request may be sent to this host now; None: one may."""
        if self._site(api) is None:
            return ApiTrouble(
                TroubleKind.HELD,
                "no site permits it: they are paused, over quota, or say api = false",
            )
        if host.paused:
            return ApiTrouble(TroubleKind.HELD, "the host is paused")
        opens_in_s = host.open_at(self._clock) - trio.current_time()
        if opens_in_s > 0:
            return ApiTrouble(TroubleKind.HELD, "the host is closed for a time", opens_in_s)
        return None

    async def _wait_turn(self, api: Api, host: HostState, question: WaitingQuestion) -> None:
        """Wait until a request may be sent, or another one has taken an idle question along."""
        if question.rank is not Urgency.UNMISSED:
            await self._wait_share(host)
            return
        self._questions.put(api.url, question)
        try:
            await self._wait_share(host, idle=True, until=question.ended)
        finally:
            self._questions.withdraw(api.url, question)

    async def _wait_share(
        self, host: HostState, *, idle: bool = False, until: trio.Event | None = None
    ) -> None:
        """Wait until the share of the host's turns allows a request, or no page wants them.

        Args:
            until: ends the wait.
        """
        until = trio.Event() if until is None else until
        asked_at = self._asked_at.get(host.slot.host)
        if asked_at is None and idle:  # after a start, as after a request
            asked_at = trio.current_time()
        while asked_at is not None:
            share = self._config().jobs.backfill_share
            now, delay_s = trio.current_time(), self._state.rates.turn_every_s(host)
            stale = idle and host.has_stale(self._state.active)
            if stale:
                share = min(share, IDLE_FLOOR)
            busy = stale or (idle and now < host.hinted_at + CALM_S)
            fair_at = asked_at + delay_s / share if share else now + delay_s + LOOK_S
            wanted_at = self._crawl.wanted_at(host.slot)
            # Pages that are due before the turn after next keep those turns.
            free = wanted_at is None or wanted_at > max(now, host.slot.next_at) + delay_s
            if (free and not busy) or now >= fair_at:
                return
            with trio.move_on_after(min(fair_at - now, max(delay_s, LOOK_S))):
                await until.wait()
            if until.is_set():
                return

    # --- several queries in one request ----------------------------------------------------------

    async def _wait_shared(
        self,
        api: Api,
        host: HostState,
        question: WaitingQuestion,
        waits_s: float,
        unless: trio.Event,
    ) -> None:
        """Wait for a request that takes a question along, while pages want all turns."""
        until = trio.current_time() + waits_s
        self._questions.put(api.url, question)
        try:
            while not (question.ended.is_set() or unless.is_set()):
                left_s = until - trio.current_time()
                comes = -math.inf < host.poll_at <= until
                costs = comes and host.has_unshown(self._state.active)
                if left_s <= 0.0 or not (costs or self._crawl.is_urgent(host.slot)):
                    break
                with trio.move_on_after(min(left_s, LOOK_S)):
                    await wait_any(question.ended, unless)
        finally:
            waited = self._questions.withdraw(api.url, question)
        if not waited:
            await question.ended.wait()

    async def _send(
        self,
        api: Api,
        host: HostState,
        site: ActiveSite,
        parameters: Parameters,
        *,
        takes_along: bool,
    ) -> ApiResponse | ApiTrouble | None:
        """Send a request, which may take questions along; return its response.

        None: the wiki refused it, perhaps because of a question; they are now asked alone.
        """
        joined = self._questions.join(api.url, parameters) if takes_along else None
        if joined is None or not joined.questions:
            return await self._ask_now(api, host, site, self._url(api, parameters))
        try:
            response = await self._ask_now(api, host, site, self._url(api, joined.parameters))
            if isinstance(response, ApiResponse):
                return joined.answer(response)
            return None if response.trouble in REFUSALS else response
        finally:
            joined.end()

    # --- one request ---------------------------------------------------------------------------

    async def _ask_now(
        self, api: Api, host: HostState, site: ActiveSite, url: str
    ) -> ApiResponse | ApiTrouble:
        async with self._at_once:
            fetched = await self._crawl.fetcher.fetch_document(site, self._request(host, site, url))
        self._asked_at[host.slot.host] = trio.current_time()
        self._connectivity.observe_response(host.slot.host, fetched)
        try:
            return await self._judge(api, host, fetched, url)
        finally:
            # A success lowers the back-off first: the delay that begins now is that after it.
            host.rest_from(fetched.arrived_at)

    async def _judge(
        self, api: Api, host: HostState, fetched: FetchResponse | FetchFailure, url: str
    ) -> ApiResponse | ApiTrouble:
        """Read a response, and let it raise or lower the back-off of the host."""
        response = await self._parse(fetched, url)
        if isinstance(response, ApiTrouble):
            log.warning(
                "api_trouble", api=api.url, why=str(response.trouble), detail=response.detail
            )
            local = isinstance(fetched, FetchFailure) and fetched.local_fault
            if response.is_host_trouble and not local:
                await self._state.back_off(host, response.retry_after_s, fetched.address)
        else:
            host.record_success(self._clock.now())
            self._warn(api, response)
        return response

    def _request(self, host: HostState, site: ActiveSite, url: str) -> FetchRequest:
        limits = replace(
            site.limits,
            max_wire_bytes=min(site.limits.max_wire_bytes, MAX_RESPONSE_BYTES),
            max_body_bytes=min(site.limits.max_body_bytes, MAX_RESPONSE_BYTES),
        )
        return FetchRequest(
            url=url,
            headers=(*site.headers_for(url), ("Accept", "application/json")),
            limits=limits,
            permits_private=site.permits_private,
            proxy=site.config.proxy,
            keep_alive=stays_open(url, host.delay_s()),
        )

    async def _parse(
        self, fetched: FetchResponse | FetchFailure, url: str
    ) -> ApiResponse | ApiTrouble:
        if isinstance(fetched, FetchFailure):
            return ApiTrouble(TroubleKind.UNREACHABLE, f"{fetched.failure}: {fetched.detail}"[:200])
        now = self._clock.now()

        def parse_response() -> ApiResponse | ApiTrouble:
            return read_response(
                fetched.status,
                fetched.header("retry-after"),
                fetched.body,
                now=now,
                sent=fetched.header("date"),
                location=fetched.header("location"),
            )

        return await self._analyser.run(parse_response, url=url, size_bytes=len(fetched.body))

    def _warn(self, api: Api, response: ApiResponse) -> None:
        for text in response.warnings:
            if (api.url, text) not in self._warned and len(self._warned) < MAX_WARNED:
                self._warned.add((api.url, text))
                log.warning("api_warning", api=api.url, text=text)
