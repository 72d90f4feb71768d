"""Continues large bodies whose fetch broke off: the next visit asks for the rest.

The start of a body waits in the file, not in memory. One page at a time is continued, so that one
body more than those of the memory budget is held.
"""

from __future__ import annotations

from dataclasses import replace

from crawld.core.page import Failure
from crawld.daemon.clock import Clock
from crawld.daemon.fetch.metered_fetcher import MeteredFetcher
from crawld.daemon.frontier.site import ActiveSite
from crawld.net.exchange import FetchFailure, FetchRequest, FetchResponse, PartialBody
from crawld.net.partial import rest_headers
from crawld.store.engine.database import Database
from crawld.store.frontier.page import PageRecord
from crawld.store.versions import partial_body
from crawld.store.versions.partial_body import PartialBodyRow


class PartialBodies:
    """Fetches pages, keeps the starts of bodies that broke off, and asks for the rests."""

    def __init__(self, fetcher: MeteredFetcher, database: Database, clock: Clock) -> None:
        self._fetcher = fetcher
        self._database = database
        self._clock = clock
        self._is_continuing = False

    async def fetch(
        self, page: PageRecord, form: bytes | None, site: ActiveSite, request: FetchRequest
    ) -> FetchResponse | FetchFailure:
        """Fetch a page, or the rest of its body.

        Args:
            form: of the request; the start of a body is continued in its own form only.
        """
        if page.failure_count and not self._is_continuing:
            self._is_continuing = True
            try:
                row = await self._database.read(partial_body.get, page.page_id, self._clock.now())
                if row is not None and row.form != form:
                    row = None
                return await self._fetch(page.page_id, form, site, request, row)
            finally:
                self._is_continuing = False
        # Without a failure there is no start of a body: the usual visit reads and writes nothing.
        return await self._fetch(page.page_id, form, site, request, None)

    async def _fetch(
        self,
        page_id: int,
        form: bytes | None,
        site: ActiveSite,
        request: FetchRequest,
        row: PartialBodyRow | None,
    ) -> FetchResponse | FetchFailure:
        if row is not None:
            request = _continued(request, row)
        response = await self._fetcher.fetch(site, request)
        if isinstance(response, FetchFailure) and response.partial is not None:
            await self._keep(page_id, form, response.partial)
        elif row is not None and not _says_nothing(response):
            await self._database.write(partial_body.remove, page_id)
        return response

    async def _keep(self, page_id: int, form: bytes | None, start: PartialBody) -> None:
        row = PartialBodyRow(start.validator, start.total_bytes, start.body, form)
        await self._database.write(partial_body.put, page_id, self._clock.now(), row)


def _continued(request: FetchRequest, row: PartialBodyRow) -> FetchRequest:
    start = PartialBody(row.body, row.validator, row.total_bytes)
    lines = rest_headers(start)
    own = {name.lower() for name, _ in lines}
    others = tuple(each for each in request.headers if each[0].lower() not in own)
    return replace(request, headers=(*others, *lines), partial=start)


def _says_nothing(response: FetchResponse | FetchFailure) -> bool:
    """Whether a response leaves the start of the body as good as before."""
    if isinstance(response, FetchFailure):
        return response.status is None or response.failure in (Failure.TIMEOUT, Failure.TRUNCATED)
    return response.status in (429, 500, 502, 503, 504)
