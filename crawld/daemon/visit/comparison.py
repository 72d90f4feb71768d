"""Compare a body with the copy held, by the noise rules known and those that the two prove.

Pure: nothing here waits or uses the database.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from crawld.core.content.figures import lacks_pair
from crawld.core.content.fingerprint import cleaned_digest
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.volatile import NO_RULES, VolatileRules, cleaned
from crawld.core.value_type import value_type
from crawld.pdf_text import PdfText
from crawld.store.versions.body import digest
from crawld.store.versions.version import StoredCopy


@value_type
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
        is_unproven: whether noise of its host differed twice in a row on the page, and no page was
            fetched again at once to see whether it stays.
        is_by_pair: whether it only is the same under noise rules that its pair with the copy held
            proved.
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
    is_unproven: bool = False
    is_by_pair: bool = False
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
        pair: if both bodies were fetched one host delay apart, how many differences in a row prove
            noise; else 0.
        is_third: whether the last body was one of a pair with `held`, too.
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
    pair: int = 0
    is_third: bool = False
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
            rules=readings.learn(self.rules, pair=self.pair, is_third=self.is_third),
            template=readings.learn_host(
                self.template,
                page_key=self.page_id,
                own=self.rules,
                pair=self.pair,
                is_third=self.is_third,
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
    if basis.pair or basis.is_third:
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
        is_unproven=after is not basis and _is_unproven(after),
        is_by_pair=equal and bool(basis.pair and analysis.difference),
    )


def _is_unproven(after: ComparisonBasis) -> bool:
    again = {rule.key for rule in after.rules.rules if rule.streak >= 2}
    return any(rule.key in again and lacks_pair(rule) for rule in after.template.rules)


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
