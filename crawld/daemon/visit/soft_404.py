"""Detect pages that are gone despite status 200, and confirm those that the server calls gone.

A page that changed beyond recognition, redirects to the front page or calls itself an error is
compared with the response of its origin for a path that never existed (the probe): the same
response makes the page `soft_gone`. Until the probe is known nothing is recorded: the host's next
turn makes the probe, and the page is visited again after it. A page that would be retired is kept
while its host loses too many pages at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import structlog
import trio

from crawld.core.content.analysis import analyse
from crawld.core.outcome import REDIRECT_STATUSES, Judgement
from crawld.core.page import Outcome, PageState
from crawld.core.robots import Robots
from crawld.core.soft_404 import (
    DOUBTED_PROBES,
    DOUBTED_S,
    PROBE_MAX_AGE_S,
    Soft404Probe,
    is_doubtful_page,
    is_suspect_page,
    is_suspect_redirect,
    matches_probe,
    probe_url,
)
from crawld.core.url import canonicalize, split_url
from crawld.daemon.analyser import Analyser
from crawld.daemon.clock import Clock
from crawld.daemon.fetch.metered_fetcher import MeteredFetcher
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.daemon.visit.conclude import Visit
from crawld.errors import InvalidUrlError
from crawld.net.exchange import FetchFailure, FetchRequest, FetchResponse, retry_after_s
from crawld.store.engine.database import Database
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import redirect
from crawld.store.frontier import soft_404 as probe_rows
from crawld.store.frontier.page import PageRecord

log = structlog.get_logger(__name__)

MAX_SUSPECTS: Final = 1000
"""Origins that may wait for a probe; pages of further ones are not suspected."""

MAX_PROBES: Final = 4_096
"""Origins whose last probe, or that there was none, is in memory: 0.3 KB each."""

GONE: Final = (Outcome.GONE, Outcome.SOFT_GONE)


class Soft404Check:
    """Judges visits to pages that may be gone."""

    def __init__(
        self,
        database: Database,
        fetcher: MeteredFetcher,
        connectivity: Connectivity,
        clock: Clock,
        analyser: Analyser,
    ) -> None:
        self._database = database
        self._fetcher = fetcher
        self._connectivity = connectivity
        self._clock = clock
        self._analyser = analyser
        self._suspects: dict[str, str] = {}
        self._probed: dict[str, list[float]] = {}  # when the last probes of an origin were made
        self._probes: dict[int, Soft404Probe | None] = {}

    async def judge(self, visit: Visit, site: ActiveSite) -> Visit | None:
        """Judge a visit again by the probe of its origin and the state of its host.

        Returns:
            The visit; None if the origin must be probed first and the page visited again.
        """
        page, outcome = visit.page, visit.judgement.outcome
        if not page.requisite and outcome in (Outcome.CHANGED, Outcome.MOVED):
            judged = await self._compare_with_probe(visit)
            if judged is None:
                return None
            visit = judged
        return self._check_host(visit, site)

    async def _compare_with_probe(self, visit: Visit) -> Visit | None:
        probe, doubtful = self._probe_before(visit.page.origin_id), self._is_doubtful(visit)
        suspect = doubtful or _is_suspect(visit)
        if probe is None or (suspect and visit.at - probe.at > PROBE_MAX_AGE_S):
            return self._ask(visit) if suspect else visit
        if await self._matches(probe, visit, suspect=suspect):
            judgement = Judgement(
                Outcome.SOFT_GONE, detail="same answer as for a path that never existed"
            )
            return replace(visit, judgement=judgement, needs=None, digest=None, body=None)
        return self._ask(visit) if doubtful and self._wants_more(visit) else visit

    def _is_doubtful(self, visit: Visit) -> bool:
        page = visit.page
        if not visit.readable or visit.judgement.outcome is Outcome.MOVED:
            return False
        doubtful = is_doubtful_page(
            was_gone=page.last_outcome in GONE,
            retitled=page.title is not None and _title(visit) != page.title,
            difference=_difference(visit),
        )
        # A wiki vouches for the text that it reports, unless it reports that the page is gone.
        return doubtful and (not visit.mode.certain or self._is_deleted(page))

    def _is_deleted(self, page: PageRecord) -> bool:
        """Whether the wiki of a page says that it is gone since its last copy."""
        since = page.last_change_at or 0.0
        return self._database.look_up(redirect.is_deleted_from_wiki, page.page_id, since)

    def _wants_more(self, visit: Visit) -> bool:
        """Whether too few probes were made lately to believe a doubtful page."""
        probed = self._probed.get(visit.page.origin, ())
        return sum(abs(visit.at - at) <= DOUBTED_S for at in probed) < DOUBTED_PROBES

    def _ask(self, visit: Visit) -> Visit | None:
        """Want a probe before a page is visited again; return the visit if too many wait."""
        page = visit.page
        if len(self._suspects) >= MAX_SUSPECTS:
            return visit
        self._suspects[page.origin] = page.url
        log.debug("probe_wanted", url=page.url)
        return None

    async def _matches(self, probe: Soft404Probe, visit: Visit, *, suspect: bool) -> bool:
        """Whether the answer of a page equals that of its origin for missing pages."""
        if probe.sketch is None and probe.redirect_url is None:
            return False
        sketch = await self._sketch(visit)
        return matches_probe(probe, sketch=sketch, target=_target(visit), suspect=suspect)

    def _probe_before(self, origin_id: int) -> Soft404Probe | None:
        """Return the last probe of an origin, None if there was none."""
        if origin_id not in self._probes:
            if len(self._probes) >= MAX_PROBES:
                self._probes.clear()
            self._probes[origin_id] = self._database.look_up(probe_rows.get, origin_id)
        return self._probes[origin_id]

    async def _keep(self, origin: str, probe: Soft404Probe, status: int | None) -> None:
        await self._database.write(probe_rows.put, origin, probe, status)
        self._probes.clear()
        if len(self._probed) >= MAX_PROBES:
            self._probed.clear()
        self._probed[origin] = [*self._probed.get(origin, ()), probe.at][-DOUBTED_PROBES:]

    def _check_host(self, visit: Visit, site: ActiveSite) -> Visit:
        """Confirm a gone page by its wiki's deletion log; keep it if its host loses too many."""
        page = visit.page
        if visit.judgement.outcome not in GONE or page.state is PageState.GONE:
            return visit
        if self._is_deleted(page):
            return replace(visit, deleted=True)
        if visit.state is not PageState.GONE:
            return visit
        share = site.config.max_vanish_share
        vanishing = self._database.look_up(redirect.is_mass_vanish, page.host_id, visit.at, share)
        if vanishing:
            log.warning(
                "pages_vanish", host=page.host, hint="the pages are kept: see crawlctl hosts"
            )
        return replace(visit, vanishing=vanishing)

    # --- the probe -----------------------------------------------------------------------------

    def probe_wanted(self, origin: str) -> str | None:
        """Return the URL to probe before the next page of an origin; None: no probe is due."""
        url = self._suspects.get(origin)
        return None if url is None else probe_url(url, self._clock.now())

    async def probe(self, host: HostState, site: ActiveSite, robots: Robots, url: str) -> None:
        """Request a path that never existed, in the turn of the host.

        If robots.txt forbids the path, no page of the origin is suspected.
        """
        origin = split_url(url).origin
        if not robots.allowed(url):
            self._suspects.pop(origin, None)
            await self._keep(origin, Soft404Probe(self._clock.now()), None)
            return
        request = FetchRequest(
            url=url,
            headers=site.headers_for(url),
            limits=site.limits,
            permits_private=site.permits_private,
            cut=True,
            proxy=site.config.proxy,
        )
        response = await self._fetcher.fetch_document(site, request)
        self._connectivity.observe_response(host.slot.host, response)
        now, is_ours = self._clock.now(), self._connectivity.is_our_fault(response)
        if not is_ours:
            _back_off(host, response, now)
        host.rest_from(response.arrived_at)
        if is_ours:
            return
        self._suspects.pop(origin, None)
        update = host.update(None if response.sent_at is None else now, response.address)
        await self._database.write(host_rows.record_request, host.host_id, update)
        probe = await self._probe_of(response, url, now)
        await self._keep(origin, probe, response.status)
        log.info("soft_404_probed", origin=origin, status=response.status)

    async def _probe_of(
        self, response: FetchResponse | FetchFailure, url: str, now: float
    ) -> Soft404Probe:
        if isinstance(response, FetchFailure):
            return Soft404Probe(now)
        if response.status in (200, 203):
            return Soft404Probe(now, sketch=await self._sketch_of(response, url))
        location = response.header("location")
        if response.status in REDIRECT_STATUSES and location:
            try:
                return Soft404Probe(now, redirect_url=canonicalize(location, url))
            except InvalidUrlError:
                return Soft404Probe(now)
        return Soft404Probe(now)

    async def _sketch(self, visit: Visit) -> bytes | None:
        if visit.judgement.outcome is Outcome.MOVED or isinstance(visit.response, FetchFailure):
            return None
        if not visit.readable:
            return None
        if visit.comparison is not None and visit.comparison.analysis is not None:
            return visit.comparison.analysis.sketch
        return await self._sketch_of(visit.response, visit.page.url)

    async def _sketch_of(self, response: FetchResponse, url: str) -> bytes:
        body, content_type = response.body, response.header("content-type")
        with trio.CancelScope(shield=True):  # an analysis on a thread cannot be ended
            analysis = await self._analyser.read(
                analyse, body, content_type, url=url, bodies=(body,)
            )
        return analysis.sketch


def _back_off(host: HostState, response: FetchResponse | FetchFailure, now: float) -> None:
    """Slow a host down, or close it, that is in trouble or asks for it: as after a page."""
    failed = isinstance(response, FetchFailure) and not response.local_fault
    if failed or response.status in (429, 503):
        host.record_trouble(now, retry_after_s(response, now))


def _is_suspect(visit: Visit) -> bool:
    page = visit.page
    if not visit.readable:
        return False
    if visit.judgement.outcome is Outcome.MOVED:
        held = page.version_id is not None
        return is_suspect_redirect(page.url, visit.judgement.detail, has_copy=held)
    return is_suspect_page(_title(visit), _difference(visit))


def _title(visit: Visit) -> str | None:
    return visit.content.title if visit.content else None


def _difference(visit: Visit) -> float | None:
    """Return how much a page differs from its copy, [0, 1]; None without one."""
    if visit.first_copy or visit.comparison is None:
        return None
    return visit.comparison.difference


def _target(visit: Visit) -> str | None:
    return visit.judgement.detail if visit.judgement.outcome is Outcome.MOVED else None
