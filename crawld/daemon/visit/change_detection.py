"""Decide whether a page changed, or only its noise: dates, counters, advertisements, comments.

    exact digest as held ─▶ unchanged (the noise rules learn that their blocks stayed)
    else: the held body is parsed, and both are cleaned of known noise
        cleaned texts equal ────────────────▶ unchanged
        weighted difference < threshold ────▶ unchanged
        else ───────────────────────────────▶ changed

Noise is learnt from every two readings (`core/content/noise_learning.py`), best
from a *pair*: a page fetched again one host delay later, since nobody edits that fast. A pair is
judged by the rules it proves, other visits by the rules known before. Pairs are few: the first
pages of each host, then pages that changed at 3, 12, 48 … visits in a row, and one changed visit in
64.

A first copy has nothing to be compared with. Its cleaned digest and sketch are stored with the
visit while the token bucket allows, since the first crawl of a site must be fast; otherwise the
analyse job computes them later.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from zlib import crc32

import structlog
import trio

from crawld.core.content.analysis import (
    MAX_TEXT_BYTES,
    Analysis,
    Measure,
    analyse,
    difference_of,
    read_blocks,
)
from crawld.core.content.blocks import Blocks
from crawld.core.content.difference import difference as rsync_difference
from crawld.core.content.documents import PDF
from crawld.core.content.fingerprint import cleaned_digest
from crawld.core.content.media import sniff
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.tree_memory import count_tags
from crawld.core.content.volatile import NO_RULES, VolatileRules, cleaned
from crawld.core.page import Outcome
from crawld.daemon.analyser import INLINE_S, Analyser, cost_s, weight_of
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.readable_body import ReadableBody, readable_body
from crawld.daemon.visit.validators import RequestMode
from crawld.errors import CrawldError
from crawld.memory import FREE_BYTES
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.pdf_text import PdfText
from crawld.store.changes import volatile
from crawld.store.changes.volatile import Template
from crawld.store.engine.database import Database
from crawld.store.frontier.page import PageRecord
from crawld.store.versions import version
from crawld.store.versions.body import digest
from crawld.store.versions.version import StoredCopy

log = structlog.get_logger(__name__)

QUICK_S: Final = INLINE_S
"""Estimated time up to which an unchanged body teaches noise rules, and a first copy is analysed at
its visit: neither is worth a thread."""

CACHED_TEMPLATES = 1024
"""Hosts whose noise rules are in memory; up to 1.6 KB each."""

FIRST_STREAK, STREAK_FACTOR = 3, 4
SAMPLE_ONE_IN = 64

PAIR_S = 60.0
"""Two fetches at most this (or four host delays) apart are a pair."""

SPARE_SHARE: Final = 0.02
"""Share of all time that first copies may take: eight pages a second at about 2 ms each."""

MAX_SPARE_S: Final = 0.25
"""Most unused time that is saved, and the amount at the start: a hundred pages."""


class TokenBucket:
    """A time budget that fills at a steady rate up to a limit.

    An idle crawl analyses every first copy; a busy one spends at most `SPARE_SHARE` of its time on
    them. Times are those of any clock that never goes back.
    """

    def __init__(self, now: float) -> None:
        """Start full."""
        self._left_s, self._at = MAX_SPARE_S, now

    def left_s(self, now: float) -> float:
        """Return how much may be spent; below 0 after more was spent."""
        saved_s = self._left_s + SPARE_SHARE * (now - self._at)
        self._left_s, self._at = min(saved_s, MAX_SPARE_S), now
        return self._left_s

    def spend(self, seconds: float) -> None:
        """Subtract time spent; the budget may become negative."""
        self._left_s -= seconds


@dataclass(frozen=True, slots=True)
class BodyComparison:
    """The body of a response compared with the copy held.

    Attributes:
        same: whether the content equals the copy held; False for a first copy.
        analysis: of a compared body, and of a first copy if there was time.
        cleaned_digest: digest of its cleaned text.
        difference: weighted difference from the copy held, [0, 1].
        rules: new noise rules of the page; None: unchanged.
        template: new noise rules of its host; None: unchanged.
        pdf: the text that was compared instead of a PDF.
        why: why a plug-in says that it is the same, or not; empty: none says.
    """

    digest: bytes
    same: bool = False
    analysis: Analysis | None = None
    cleaned_digest: bytes | None = None
    difference: float | None = None
    rules: bytes | None = None
    template: bytes | None = None
    pdf: PdfText | None = None
    why: str = ""

    def decided(self, *, changed: bool, why: str) -> BodyComparison:
        """Return the comparison as a plug-in decides it."""
        # The content counts as equal, or not: what crawld measured says nothing of that.
        return replace(
            self, same=not changed, why=why, difference=self.difference if changed else 0.0
        )

    @property
    def why_same(self) -> str:
        """A short reason why a body with another digest is no change."""
        if self.why:
            return self.why
        if self.difference is None:
            return ""
        if not self.difference:
            return "only what changes by itself differs"
        return f"difference {self.difference:.4f} is below the threshold"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonBasis:
    """What a new body is compared with, and how.

    Attributes:
        rules: the page's noise rules so far.
        template: those of its host.
        threshold: weighted difference from which the page counts as changed.
        pair: whether both bodies were fetched one host delay apart.
        expected: whether a hint made the visit, or a replica answered it: no evidence of noise.
        reported: whether a source reports the changes of the page.
        certain: whether a wiki reported the change: whatever differs is one.
        measure: measures the difference of two texts.
    """

    held: StoredCopy
    rules: VolatileRules
    template: VolatileRules
    page_id: int
    threshold: float = 0.0
    pair: bool = False
    expected: bool = False
    reported: bool = False
    certain: bool = False
    max_links: int = 10_000
    measure: Measure = rsync_difference

    @property
    def known(self) -> VolatileRules:
        """The rules of the page and of its host together."""
        return self.rules | self.template

    def after(self, old: Blocks, new: Blocks) -> ComparisonBasis:
        """Return the basis with the rules learnt from these two readings."""
        readings = ReadingPair.of(old, new)
        return ComparisonBasis(
            held=self.held,
            rules=readings.learn(self.rules, pair=self.pair),
            template=readings.learn_host(
                self.template,
                page_key=self.page_id,
                own=self.rules,
                pair=self.pair,
                reported=self.reported,
            ),
            page_id=self.page_id,
            threshold=self.threshold,
            measure=self.measure,
        )


def compare(body: bytes, content_type: str | None, basis: ComparisonBasis) -> BodyComparison:
    """Compare a body with the copy held.

    Args:
        body: a body that differs from the one held.
    """
    known, measure = basis.known, basis.measure
    old = read_blocks(*basis.held)
    analysis = analyse(
        body,
        content_type,
        previous=old,
        volatile=known,
        max_links=basis.max_links,
        measure=measure,
    )
    difference, cleaned_as = analysis.difference or 0.0, analysis.cleaned_digest
    after = basis
    # A page below the threshold is compared with the same copy at every visit, so that it would
    # seem to differ each time. A body that is not text has one block: nothing to learn.
    small = 0.0 < difference < basis.threshold and not basis.pair
    # A page visited because of a hint differs at every visit, and an edit is no noise: only
    # visits without a cause are evidence.
    teaches = analysis.charset is not None and not small and not basis.expected
    if teaches and len(body) <= MAX_TEXT_BYTES:
        after = basis.after(old, analysis.blocks)
    if basis.pair:
        known = after.known
        difference = difference_of(old, analysis.blocks, known, measure)
        cleaned_as = cleaned_digest(cleaned(analysis.blocks, known))
    # Paragraphs that only swapped places have rsync difference 0: the digests decide.
    equal = not difference and cleaned_as == cleaned_digest(cleaned(old, known))
    if equal and basis.certain and old.texts != analysis.blocks.texts:
        # A rule may have come from an edit: the wiki knows better.
        equal, difference = False, difference_of(old, analysis.blocks, NO_RULES, measure)
    return BodyComparison(
        digest=analysis.digest,
        same=equal or 0.0 < difference < basis.threshold,
        analysis=analysis,
        cleaned_digest=cleaned_as,
        difference=difference,
        rules=_if_new(basis.rules, after.rules),
        template=_if_new(basis.template, after.template),
    )


def learn_unchanged(
    body: bytes, content_type: str | None, basis: ComparisonBasis
) -> BodyComparison:
    """Record in the noise rules that their blocks stayed: the body is the one held."""
    blocks = read_blocks(body, content_type)
    after = basis.after(blocks, blocks)
    return BodyComparison(
        digest=digest(body),
        same=True,
        rules=_if_new(basis.rules, after.rules),
        template=_if_new(basis.template, after.template),
    )


def _if_new(before: VolatileRules, after: VolatileRules) -> bytes | None:
    return None if before == after else after.to_bytes()


def rules_before(page: PageRecord, stored: bytes) -> VolatileRules:
    """Return the noise rules of a page before a visit, from their stored form.

    A 304 says that nothing changed by itself: what differs now did not differ every time.
    """
    rules = VolatileRules.from_bytes(stored)
    return rules.rested() if page.last_outcome is Outcome.NOT_MODIFIED else rules


def wants_pair(page: PageRecord, template: Template, *, streak: int, confirm_pages: int) -> bool:
    """Whether a page just found changed should be fetched again at once.

    Args:
        template: noise rules of its host, and how many first pages were fetched twice.
        streak: visits in a row that found it changed, including this one; 0 at its first copy.
        confirm_pages: maximum number of first pages per host to fetch twice; 0: no page at all.
    """
    if not confirm_pages:
        return False
    if page.version_id is None:
        return template.confirmations < confirm_pages
    while streak > FIRST_STREAK and streak % STREAK_FACTOR == 0:
        streak //= STREAK_FACTOR
    return streak == FIRST_STREAK or _chance(page) == 0


def is_quick(body: bytes, weight: int = 1) -> bool:
    """Whether a body is so small that it is read although nobody waits for the result."""
    size, most_s = len(body), QUICK_S / weight
    return cost_s(size) <= most_s and cost_s(size, count_tags(body, size)) <= most_s


def _chance(page: PageRecord) -> int:
    return crc32(f"{page.visit_count} {page.page_id}".encode()) % SAMPLE_ONE_IN


def is_pair(page: PageRecord, now: float, delay_s: float) -> bool:
    """Whether a page was visited so recently that no edit lies between."""
    before = page.last_visit_at
    return before is not None and 0.0 <= now - before <= max(PAIR_S, 4.0 * delay_s)


class ChangeDetector:
    """Compares bodies with the copies in the file; keeps the noise rules of recent hosts."""

    def __init__(
        self, database: Database, *, confirm_pages: int, first_copies: bool, analyser: Analyser
    ) -> None:
        """Start empty.

        Args:
            confirm_pages: first pages of each host that are fetched twice.
            first_copies: whether first copies are analysed while there is time.
        """
        self.confirm_pages = confirm_pages
        self._first_copies = first_copies
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
            return await self._unchanged(page, response, body_digest)
        readable = await readable_body(response, site, page.url, self._analyser)
        if page.version_id is None or page.digest is None:
            compared = await self._first_copy(page, site, readable, body_digest)
        else:
            compared = await self._changed(page, site, readable, body_digest, mode)
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
            pair=mode.pair and not mode.hinted,
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
        has_time = self._first_copies and self._spare.left_s(began_at) > 0.0
        if not has_time or not is_quick(readable.body, readable.weight):
            return BodyComparison(body_digest)
        template = VolatileRules.from_bytes(self.template(page.host_id).rules)
        call = partial(
            analyse, volatile=self._rules(page) | template, max_links=site.max_links_per_page
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
        self, page: PageRecord, response: FetchResponse, body_digest: bytes
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
