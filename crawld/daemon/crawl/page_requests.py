"""Ask for a page: its form, its URL on the host, its conditions and limits, and the request itself.

What changes a request comes together here: the page's form by profile and plug-ins
(`fetch/request_form.py`), the form of a wiki (`fetch/page_forms.py`), other spellings of a URL, the
start of a body that waits to be continued, quarantine, limits of a group of hosts. Whether a
request has conditions is decided by `mode_of`, and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from crawld.core.request_profiles import USUAL, RequestProfile
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.fetch.metered_fetcher import MeteredFetcher
from crawld.daemon.fetch.partial_bodies import PartialBodies
from crawld.daemon.fetch.request import request_for
from crawld.daemon.fetch.request_form import USUAL_FORM, RequestForm
from crawld.daemon.fetch.request_hooks import RequestHooks
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.daemon.visit.requisite import request_for_requisite
from crawld.daemon.visit.response_hooks import facts_of
from crawld.daemon.visit.validators import RequestMode
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.store.frontier.page import PageRecord
from crawld.store.frontier.quarantine import StepName

UNCODED: Final = ("Accept-Encoding", "identity")


class PageRequests:
    """Sends the requests for pages.

    Args:
        user_agent: that of every request, which names crawld and the contact.
        hooks: plug-ins that change requests; None: there are none.
    """

    def __init__(
        self,
        state: CrawlState,
        fetcher: MeteredFetcher,
        partial_bodies: PartialBodies,
        connectivity: Connectivity,
        user_agent: str,
        hooks: RequestHooks | None = None,
    ) -> None:
        self._state = state
        self._fetcher = fetcher
        self._partial_bodies = partial_bodies
        self._connectivity = connectivity
        self._user_agent = user_agent
        self._hooks = hooks

    def form(
        self, page: PageRecord, site: ActiveSite, profile: RequestProfile = USUAL
    ) -> RequestForm:
        """Return the form in which a page is asked for under a profile, as plug-ins want it."""
        shape = None
        if self._hooks is not None and not page.requisite:
            shape = self._hooks.shape(facts_of(page, site))
        if shape is None and profile is USUAL:
            return USUAL_FORM
        return RequestForm(profile, shape)

    def form_of_copy(self, page: PageRecord, site: ActiveSite) -> RequestForm:
        """Return the form that brought the copy held, if the site still has it; else the usual."""
        usual = self.form(page, site)
        for profile in site.profiles:
            form = RequestForm(profile, usual.shape)
            if form.key(page.url) == page.form:
                return form
        return usual

    @staticmethod
    def mode_of(
        mode: RequestMode, form: RequestForm, page: PageRecord, *, whole: bool
    ) -> RequestMode:
        """Return how a page is requested in a form: with the conditions that belong to it.

        Args:
            mode: as trust in the validators of its server wants it.
            whole: whether the page itself is wanted, since a 304 would tell too little: an audit
                measures freshness, or the copy held is not known to have the wanted form.
        """
        if form.is_variant(page):
            return mode.as_variant()
        if whole or not form.conditional:
            return mode.without_conditions()
        return mode

    async def send(
        self,
        host: HostState,
        page: PageRecord,
        site: ActiveSite,
        mode: RequestMode,
        url: str,
        held: StepName | None,
        form: RequestForm,
    ) -> FetchResponse | FetchFailure:
        """Request a page.

        Args:
            host: the host that is asked: its own, or a replica.
            url: of the page there.
            held: the step in which the page is kept in quarantine; None: it is not.
        """
        build = request_for_requisite if page.requisite else request_for
        asked_url, is_form = url, False
        if url == page.url:
            asked_url, is_form = self._asked_url(page, site, form)
        requested = page if asked_url == page.url else page._replace(url=asked_url)
        request = build(requested, site, mode.sent, host=host.slot.host, delay_s=host.delay_s())
        if host.group is not None and host.group.bytes_per_s is not None:
            request = replace(request, max_bytes_per_s=host.group.bytes_per_s)
        request = form.applied(request, self._user_agent)
        if held == "decoding":
            request = replace(request, headers=(*request.headers, UNCODED), decode=False)
        fetch = self._fetcher.fetch
        if asked_url == page.url and request.keeps_partial:
            fetch = partial(self._partial_bodies.fetch, page, form.key(page.url))
        response = await fetch(site, request)
        if response.sent_at is not None:
            self._state.schedule.lateness.add(response.sent_at - host.slot.planned_at)
        self._connectivity.observe_response(host.slot.host, response)
        if form.shape is not None and self._hooks is not None:
            self._hooks.judge(form.shape, host.slot.host, response)
        if is_form:
            return self._state.page_forms.as_page(site, page.url, response)
        return response

    def _asked_url(self, page: PageRecord, site: ActiveSite, form: RequestForm) -> tuple[str, bool]:
        """Return the URL to ask a page's own host for, and whether it is a form of a wiki page."""
        if form.shape is not None and form.shape.url != page.url:
            return form.shape.url, False
        form_url = None if page.requisite else self._state.page_forms.url_of(site, page.url)
        if form_url is not None:
            return form_url, True
        return self._state.spellings.url_of(page.url) or page.url, False
