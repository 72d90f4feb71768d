"""Whether a page changed, or only its noise: dates, counters, advertisements, comments.

    exact digest as held ─▶ unchanged (what rules cover has stayed: they hear of it)
    else: the body held is read and both are cleaned of what is known to change by itself
        cleaned texts equal ────────────────▶ unchanged
        weighted difference < threshold ────▶ unchanged
        else ───────────────────────────────▶ changed

What changes by itself is learnt from every two readings (`core/content/learning.py`), best from a
*pair*: a page fetched again one host delay later, since nobody edits that fast. A pair is judged by
the rules it proves, all other visits by those known before. Pairs are few: the first pages of each
host, then pages that changed at 3, 12, 48 … visits in a row, and one changed visit in 64.

A first copy has nothing to be compared with: its cleaned digest and sketch are stored with the
visit as long as there is time to spare (`spare`), for the first crawl of a site must be fast. Else
the analyse job comes for them later.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from zlib import crc32

import structlog
import trio

from crawld.core.content.analysis import (
    MAX_TEXT_BYTES,
    Analysis,
    analyse,
    difference_of,
    read_blocks,
)
from crawld.core.content.blocks import Blocks
from crawld.core.content.fingerprint import cleaned_digest
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.volatile import VolatileRules, cleaned
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.spare import TokenBucket
from crawld.errors import CrawldError
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.store.changes import volatile
from crawld.store.changes.volatile import Template
from crawld.store.engine.database import Database
from crawld.store.frontier.page import PageRecord
from crawld.store.versions import version
from crawld.store.versions.body import digest
from crawld.store.versions.version import StoredCopy

log = structlog.get_logger(__name__)

INLINE_BYTES = 256 * 1024
INLINE_TAGS = 8_000
"""Two bodies up to both of these are compared at once, in 5 to 20 ms; larger ones in a thread.

A tag costs more than the bytes it stands between: a table of 100 KB takes as long as 1 MB of prose.
"""

TEMPLATES_AT_HAND = 1024
"""Hosts whose rules are in memory, up to 1.6 KB each."""

FIRST_STREAK, STREAK_FACTOR = 3, 4
SAMPLE_ONE_IN = 64

PAIR_S = 60.0
"""Two readings up to this (or four host delays) apart are a pair."""


@dataclass(frozen=True, slots=True)
class BodyComparison:
    """What the body of an answer is, beside the copy held.

    Attributes:
        digest: exact digest of the body.
        same: whether the content is that of the copy held; False of a first copy.
        analysis: of a body that was compared, and of first copies that there was time for.
        cleaned_digest: of its cleaned text.
        difference: its weighted difference from the copy held.
        rules: the page's rules, None: as they were.
        template: those of its host, None: as they were.
    """

    digest: bytes
    same: bool = False
    analysis: Analysis | None = None
    cleaned_digest: bytes | None = None
    difference: float | None = None
    rules: bytes | None = None
    template: bytes | None = None

    @property
    def why_same(self) -> str:
        """In a few words, why a body with another digest is no change."""
        if self.difference is None:
            return ""
        if not self.difference:
            return "only what changes by itself differs"
        return f"difference {self.difference:.4f} is below the threshold"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonBasis:
    """What a new body is compared with, and how.

    Attributes:
        held: the last good copy.
        rules: the page's rules known before.
        template: those of its host.
        page_id: the page; tells the pages of a host apart.
        threshold: weighted difference from which it counts as changed.
        pair: whether both were fetched one host delay apart.
        told: whether the page was said to have changed.
        max_links: links read at most.
    """

    held: StoredCopy
    rules: VolatileRules
    template: VolatileRules
    page_id: int
    threshold: float = 0.0
    pair: bool = False
    told: bool = False
    max_links: int = 10_000

    @property
    def known(self) -> VolatileRules:
        """The rules of the page and of its host."""
        return self.rules | self.template

    def learnt(self, old: Blocks, new: Blocks) -> ComparisonBasis:
        """Return the comparison with the rules as they are after it."""
        readings = ReadingPair.of(old, new)
        return ComparisonBasis(
            held=self.held,
            rules=readings.learn(self.rules, pair=self.pair),
            template=readings.learn_host(self.template, page_key=self.page_id),
            page_id=self.page_id,
            threshold=self.threshold,
        )


def compare(body: bytes, content_type: str | None, comparison: ComparisonBasis) -> BodyComparison:
    """Compare a body with the copy held.

    Args:
        body: the body, another one than that held.
        content_type: its Content-Type field.
        comparison: what with, and how.
    """
    known = comparison.known
    old = read_blocks(*comparison.held)
    analysis = analyse(
        body, content_type, previous=old, volatile=known, max_links=comparison.max_links
    )
    difference, cleaned_as = analysis.difference or 0.0, analysis.cleaned_digest
    after = comparison
    # What stays below the threshold is compared with the same copy again and again: it would seem
    # to differ at every visit. A body that is no text has one block, its digest: nothing to learn.
    small = 0.0 < difference < comparison.threshold and not comparison.pair
    # A page that is asked for when it is said to have changed differs at every visit, and an edit
    # is no noise: only visits that nobody called for are evidence.
    teaches = analysis.charset is not None and not small and not comparison.told
    if teaches and len(body) <= MAX_TEXT_BYTES:
        after = comparison.learnt(old, analysis.blocks)
    if comparison.pair:
        known = after.known
        difference = difference_of(old, analysis.blocks, known)
        cleaned_as = cleaned_digest(cleaned(analysis.blocks, known))
    # Paragraphs that changed places differ by nothing as rsync sees it: the digests decide.
    equal = not difference and cleaned_as == cleaned_digest(cleaned(old, known))
    return BodyComparison(
        digest=analysis.digest,
        same=equal or 0.0 < difference < comparison.threshold,
        analysis=analysis,
        cleaned_digest=cleaned_as,
        difference=difference,
        rules=_if_new(comparison.rules, after.rules),
        template=_if_new(comparison.template, after.template),
    )


def stayed(body: bytes, content_type: str | None, comparison: ComparisonBasis) -> BodyComparison:
    """Tell the rules that what they cover has stayed: the body is the one held."""
    blocks = read_blocks(body, content_type)
    after = comparison.learnt(blocks, blocks)
    return BodyComparison(
        digest=digest(body),
        same=True,
        rules=_if_new(comparison.rules, after.rules),
        template=_if_new(comparison.template, after.template),
    )


def _if_new(before: VolatileRules, after: VolatileRules) -> bytes | None:
    return None if before == after else after.to_bytes()


def wants_pair(page: PageRecord, template: Template, *, streak: int, confirm_pages: int) -> bool:
    """Whether a page that was just found changed should be fetched again at once.

    Args:
        page: the page as it was before.
        template: rules of its host, and how many first pages were fetched again.
        streak: visits in a row that found it changed, this one included; 0 at its first copy.
        confirm_pages: the most first pages of a host to fetch again; 0: never any page.
    """
    if not confirm_pages:
        return False
    if page.version_id is None:
        return template.confirmations < confirm_pages
    while streak > FIRST_STREAK and streak % STREAK_FACTOR == 0:
        streak //= STREAK_FACTOR
    return streak == FIRST_STREAK or _chance(page) == 0


def is_quick(*bodies: bytes) -> bool:
    """Whether bodies can be read at once without keeping anyone waiting."""
    if sum(map(len, bodies)) > INLINE_BYTES:
        return False
    return sum(body.count(b"<") for body in bodies) <= INLINE_TAGS


def _chance(page: PageRecord) -> int:
    return crc32(f"{page.visit_count} {page.page_id}".encode()) % SAMPLE_ONE_IN


def is_pair(page: PageRecord, now: float, delay_s: float) -> bool:
    """Whether the last visit of a page is so near that no edit lies between."""
    before = page.last_visit_at
    return before is not None and 0.0 <= now - before <= max(PAIR_S, 4.0 * delay_s)


class ChangeDetector:
    """Compares bodies with the copies in the file; the rules of the last hosts are at hand."""

    def __init__(self, database: Database, *, confirm_pages: int) -> None:
        """Start with no host; `confirm_pages` of each are fetched twice."""
        self.confirm_pages = confirm_pages
        self._database = database
        self._templates: OrderedDict[int, Template] = OrderedDict()
        self._threads = trio.CapacityLimiter(1)
        self._spare = TokenBucket(trio.current_time())

    async def examine(
        self,
        page: PageRecord,
        site: ActiveSite,
        answer: FetchResponse | FetchFailure,
        *,
        pair: bool,
        told: bool = False,
    ) -> BodyComparison | None:
        """Return what a body is beside the copy held; None where the answer brought none.

        Args:
            page: the page as it was before.
            site: its site.
            answer: what the fetch gave.
            pair: whether the copy held was fetched one host delay ago.
            told: whether the page was said to have changed.
        """
        if isinstance(answer, FetchFailure) or answer.status not in (200, 203):
            return None
        body_digest = digest(answer.body)
        if page.version_id is None or page.digest is None:
            return self._first(page, site, answer, body_digest)
        if body_digest == page.digest:
            return await self._stayed(page, answer, body_digest)
        copy = await self._copy(page)
        if copy is None:
            return BodyComparison(body_digest)
        comparison = ComparisonBasis(
            held=copy,
            rules=self._rules(page),
            template=VolatileRules.from_bytes(self.template(page.host_id).rules),
            page_id=page.page_id,
            threshold=site.config.change_threshold,
            pair=pair,
            told=told,
            max_links=site.max_links_per_page,
        )
        content_type = answer.header("content-type")
        if is_quick(answer.body, copy.body):
            return compare(answer.body, content_type, comparison)
        return await trio.to_thread.run_sync(
            compare, answer.body, content_type, comparison, limiter=self._threads
        )

    def _first(
        self, page: PageRecord, site: ActiveSite, answer: FetchResponse, body_digest: bytes
    ) -> BodyComparison:
        began_at = trio.current_time()
        if self._spare.left_s(began_at) <= 0.0 or not is_quick(answer.body):
            return BodyComparison(body_digest)
        template = VolatileRules.from_bytes(self.template(page.host_id).rules)
        analysis = analyse(
            answer.body,
            answer.header("content-type"),
            volatile=self._rules(page) | template,
            max_links=site.max_links_per_page,
        )
        self._spare.spend(trio.current_time() - began_at)
        return BodyComparison(
            body_digest, analysis=analysis, cleaned_digest=analysis.cleaned_digest
        )

    async def _stayed(
        self, page: PageRecord, answer: FetchResponse, body_digest: bytes
    ) -> BodyComparison:
        rules, template = self._rules(page), self.template(page.host_id).rules
        if not (rules.rules or template) or not is_quick(answer.body):
            return BodyComparison(body_digest, same=True)
        nothing = StoredCopy(b"", None)
        comparison = ComparisonBasis(
            held=nothing,
            rules=rules,
            template=VolatileRules.from_bytes(template),
            page_id=page.page_id,
        )
        return stayed(answer.body, answer.header("content-type"), comparison)

    async def _copy(self, page: PageRecord) -> StoredCopy | None:
        try:
            return await self._database.read(version.read_copy, page.version_id or 0)
        except CrawldError as error:
            # A copy that cannot be read is as good as none: the new one takes its place.
            log.error("copy_unreadable", page=page.url, why=error.message, hint=error.hint)
            return None

    def _rules(self, page: PageRecord) -> VolatileRules:
        return VolatileRules.from_bytes(self._database.look_up(volatile.of_page, page.page_id))

    def template(self, host_id: int) -> Template:
        """Return what is learnt about the pages of a host."""
        found = self._templates.get(host_id)
        if found is None:
            found = self._database.look_up(volatile.of_host, host_id)
            self._templates[host_id] = found
            if len(self._templates) > TEMPLATES_AT_HAND:
                self._templates.popitem(last=False)
        else:
            self._templates.move_to_end(host_id)
        return found

    def settle(
        self, page: PageRecord, finding: BodyComparison | None, *, confirming: bool
    ) -> Template | None:
        """Take over what a visit taught about the host; return what the file should know.

        Args:
            page: the page visited.
            finding: what its body is.
            confirming: whether it is one of the first pages, and to be fetched again at once.
        """
        rules = finding.template if finding else None
        if rules is None and not confirming:
            return None
        before = self.template(page.host_id)
        after = Template(
            before.rules if rules is None else rules, before.confirmations + confirming
        )
        self._templates[page.host_id] = after
        return after
