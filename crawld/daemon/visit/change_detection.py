"""Decide whether a page changed, or only its noise: dates, counters, advertisements, comments.

    exact digest as held ─▶ unchanged (the noise rules learn that their blocks stayed)
    else: the held body is parsed, and both are cleaned of known noise
        cleaned texts equal ────────────────▶ unchanged
        weighted difference < threshold ────▶ unchanged
        else ───────────────────────────────▶ changed

Noise is learnt from every two readings (`core/content/noise_learning.py`), best from a *pair*: a
page fetched again one host delay later, since hardly anybody edits that fast. A pair is judged by
the rules it proves, other visits by the rules known before. Pairs are few (`pairs.py`).

A first copy has nothing to be compared with. Its cleaned digest and sketch are stored with the
visit while the token bucket allows, since the first crawl of a site must be fast; otherwise the
analyse job computes them later. A one-off mirror ends only when all are computed, so there each
visit does it: the page is parsed for its links anyway.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from functools import partial

import structlog
import trio

from crawld.core.content.analysis import analyse
from crawld.core.content.documents import PDF
from crawld.core.content.media import sniff
from crawld.core.content.volatile import NO_RULES, VolatileRules
from crawld.core.page import Outcome
from crawld.daemon.analyser import Analyser, weight_of
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.comparison import (
    BodyComparison,
    ComparisonBasis,
    compare,
    learn_unchanged,
)
from crawld.daemon.visit.readable_body import ReadableBody, readable_body
from crawld.daemon.visit.spare_time import TokenBucket, is_quick
from crawld.daemon.visit.validators import RequestMode
from crawld.errors import CrawldError
from crawld.memory import FREE_BYTES
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.store.changes import volatile
from crawld.store.changes.volatile import Template
from crawld.store.engine.database import Database
from crawld.store.frontier.page import PageRecord
from crawld.store.versions import version
from crawld.store.versions.body import digest
from crawld.store.versions.version import StoredCopy

log = structlog.get_logger(__name__)

CACHED_TEMPLATES = 1024
"""Hosts whose noise rules are in memory; up to 2.2 KB each."""


def rules_before(page: PageRecord, stored: bytes) -> VolatileRules:
    """Return the noise rules of a page before a visit, from their stored form.

    A 304 says that nothing changed by itself: what differs now did not differ every time.
    """
    rules = VolatileRules.from_bytes(stored)
    return rules.rested() if page.last_outcome is Outcome.NOT_MODIFIED else rules


class ChangeDetector:
    """Compares bodies with the copies in the file; keeps the noise rules of recent hosts."""

    def __init__(
        self,
        database: Database,
        *,
        confirm_pages: int,
        first_copies: bool,
        once: bool,
        analyser: Analyser,
    ) -> None:
        """Start empty.

        Args:
            confirm_pages: first pages of each host that are fetched twice.
            first_copies: whether first copies are analysed while there is time.
            once: whether that need not wait for spare time.
        """
        self.confirm_pages = confirm_pages
        self._first_copies = first_copies
        self._once = once
        self._database = database
        self._analyser = analyser
        self._templates: OrderedDict[int, Template] = OrderedDict()
        self._spare = TokenBucket(trio.current_time())
        # One of the two readers is left for short reads while large copies are decompressed.
        self._large_reads = trio.CapacityLimiter(1)

    async def compare(
        self,
        page: PageRecord,
        site: ActiveSite,
        response: FetchResponse | FetchFailure,
        mode: RequestMode,
    ) -> BodyComparison | None:
        """Compare a body with the copy held; None if the response has no body.

        Args:
            page: the page before the visit.
            mode: how it was requested.
        """
        if isinstance(response, FetchFailure) or response.status not in (200, 203):
            return None
        body_digest = await self._analyser.pack(
            digest, response.body, url=page.url, body=response.body
        )
        if body_digest == page.digest and page.version_id is not None:
            return await self._unchanged(page, response, body_digest, pair=mode.pair)
        readable = await readable_body(response, site, page.url, self._analyser)
        if page.version_id is None or page.digest is None or mode.variant:
            compared = await self._first_copy(page, site, readable, body_digest)
        else:
            compared = await self._changed(page, site, readable, body_digest, mode)
        if readable.pdf is None and compared.digest == body_digest:
            return compared
        # Of a PDF its text was analysed, but its bytes are what is stored.
        return replace(compared, digest=body_digest, pdf=readable.pdf)

    async def _changed(
        self,
        page: PageRecord,
        site: ActiveSite,
        readable: ReadableBody,
        body_digest: bytes,
        mode: RequestMode,
    ) -> BodyComparison:
        copy = await self.held_copy(page, len(readable.body))
        if copy is None:
            return BodyComparison(body_digest)
        basis = ComparisonBasis(
            held=copy,
            rules=self._rules(page),
            template=VolatileRules.from_bytes(self.template(page.host_id).rules),
            page_id=page.page_id,
            threshold=site.config.change_threshold,
            pair=0 if mode.hinted else mode.pair,
            is_third=mode.is_third and not mode.hinted,
            expected=mode.hinted or mode.from_replica,
            reported=mode.reported,
            certain=mode.certain,
            max_links=site.max_links_per_page,
            measure=site.measure,
        )
        body, content_type = readable.body, readable.content_type
        return await self._analyser.read(
            compare,
            body,
            content_type,
            basis,
            url=page.url,
            bodies=(body, copy.body),
            weight=readable.weight,
        )

    async def _first_copy(
        self, page: PageRecord, site: ActiveSite, readable: ReadableBody, body_digest: bytes
    ) -> BodyComparison:
        began_at = trio.current_time()
        has_time = self._once or self._spare.left_s(began_at) > 0.0
        if not (self._first_copies and has_time) or not is_quick(readable.body, readable.weight):
            return BodyComparison(body_digest)
        template = VolatileRules.from_bytes(self.template(page.host_id).rules)
        call = partial(
            analyse,
            volatile=self._rules(page) | template,
            max_links=site.max_links_per_page,
            exact=body_digest if readable.pdf is None else None,
        )
        body, content_type = readable.body, readable.content_type
        analysis = await self._analyser.read(
            call, body, content_type, url=page.url, bodies=(body,), weight=readable.weight
        )
        self._spare.spend(trio.current_time() - began_at)
        return BodyComparison(
            body_digest, analysis=analysis, cleaned_digest=analysis.cleaned_digest
        )

    async def _unchanged(
        self, page: PageRecord, response: FetchResponse, body_digest: bytes, *, pair: int
    ) -> BodyComparison:
        rules, template = self._rules(page), self.template(page.host_id).rules
        unchanged = BodyComparison(body_digest, same=True)
        if not (rules.rules or template):
            return unchanged
        body, content_type = response.body, response.header("content-type")
        kind = sniff(content_type, body)
        weight = weight_of(kind)
        # The noise of a PDF is that of its text, which is not extracted for this.
        if kind == PDF or not is_quick(body, weight):
            return unchanged
        basis = ComparisonBasis(
            held=StoredCopy(b"", None),
            rules=rules,
            template=VolatileRules.from_bytes(template),
            page_id=page.page_id,
            pair=pair,
        )
        return await self._analyser.read(
            learn_unchanged,
            body,
            content_type,
            basis,
            url=page.url,
            bodies=(body,),
            weight=weight,
        )

    async def held_copy(self, page: PageRecord, body_bytes: int) -> StoredCopy | None:
        """Return the copy to compare a body with; None if there is none or no memory for it."""
        held_bytes = self._database.look_up(version.body_bytes, page.version_id or 0)
        large = max(held_bytes, body_bytes) > FREE_BYTES
        if large and not await self._analyser.memory.reserve(held_bytes, body_bytes):
            hint = "raise [daemon] max_memory; until then it counts as changed"
            log.warning("copy_not_compared", page=page.url, size_bytes=body_bytes, hint=hint)
            return None
        try:
            if not large:
                return await self._database.read(version.read_copy, page.version_id or 0)
            async with self._large_reads:
                return await self._database.read(version.read_copy, page.version_id or 0)
        except CrawldError as error:
            # An unreadable copy counts as none: the new one takes its place.
            log.error("copy_unreadable", page=page.url, why=error.message, hint=error.hint)
            return None

    def _rules(self, page: PageRecord) -> VolatileRules:
        if page.version_id is None and page.last_visit_at is None:
            return NO_RULES
        return rules_before(page, self._database.look_up(volatile.of_page, page.page_id))

    def template(self, host_id: int) -> Template:
        """Return the noise rules learnt for all pages of a host."""
        found = self._templates.get(host_id)
        if found is None:
            found = self._database.look_up(volatile.of_host, host_id)
            self._templates[host_id] = found
            if len(self._templates) > CACHED_TEMPLATES:
                self._templates.popitem(last=False)
        else:
            self._templates.move_to_end(host_id)
        return found

    def update_template(
        self, page: PageRecord, comparison: BodyComparison | None, *, confirming: bool
    ) -> Template | None:
        """Take the host rules of a visit; return them if they must be stored.

        Args:
            confirming: whether the page is one of the first, to be fetched again at once.
        """
        rules = comparison.template if comparison else None
        if rules is None and not confirming:
            return None
        before = self.template(page.host_id)
        after = Template(
            before.rules if rules is None else rules, before.confirmations + confirming
        )
        self._templates[page.host_id] = after
        return after
