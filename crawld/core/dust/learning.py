"""The trials of a host: what is tried, which pairs of pages to compare next, what they decide.

propose   URLs ─▶ likely rewrites ─▶ a trial for each section in which a rewrite has support
choose    the next pairs of each trial: pages that were visited first
add       the comparison of a pair
decide    rules that hold, and rewrites that fail
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crawld.core.dust.likely import LEAST_SUPPORT, likely_rewrites
from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import DustRule, HostRules
from crawld.core.dust.trial import (
    Pair,
    TrialEvidence,
    TrialResult,
    choose_pairs,
    judge_trial,
    pairs_of,
    repeated_texts,
)

MAX_TRIALS: Final = 60
"""Trials of a host at a time."""


class ComparedPair(NamedTuple):
    """A pair whose pages were compared.

    Attributes:
        digest: of the main text of both pages; None: they differ; empty: they are not compared
            yet, or prove nothing.
    """

    rule: DustRule
    canonical: str
    value: str
    digest: bytes | None


class AskedPair(NamedTuple):
    """A pair to compare for a trial."""

    rule: DustRule
    pair: Pair


@dataclass(slots=True)
class HostTrials:
    """The trials of a host.

    Attributes:
        rules: those that hold.
        open: trials under way.
        refused: rules that failed, or that the operator revoked; they are not proposed.
        compared: all pairs of all trials.
    """

    rules: HostRules
    open: set[DustRule] = field(default_factory=set)
    refused: set[DustRule] = field(default_factory=set)
    compared: list[ComparedPair] = field(default_factory=list)
    _pairs: dict[DustRule, list[Pair]] = field(default_factory=dict)

    def propose(self, targets: Collection[str], seed: int) -> list[DustRule]:
        """Read the URLs of the host; return the new trials.

        Args:
            targets: paths and queries of the URLs of the host.
            seed: of the order in which pairs are drawn.
        """
        apply = self.rules.apply_to_target
        standing = {target: found[0] if (found := apply(target)) else target for target in targets}
        known = {target for target, stands in standing.items() if stands == target}
        self._pairs.clear()
        proposed: list[DustRule] = []
        for likely in likely_rewrites(standing.values()):
            by_section = pairs_of(likely.rewrite, likely.changed, known, self.rules, seed)
            for section, pairs in sorted(by_section.items()):
                rule = DustRule(likely.rewrite, section)
                if rule in self.rules.rules or rule in self.refused:
                    continue
                if rule not in self.open and not self._is_wanted(rule, pairs):
                    continue
                self._pairs[rule] = pairs
                if rule not in self.open:
                    self.open.add(rule)
                    proposed.append(rule)
        return proposed

    def _is_wanted(self, rule: DustRule, pairs: Collection[Pair]) -> bool:
        """Whether a rule has support in its section, and no other one is tried in its place."""
        if len(self.open) >= MAX_TRIALS:
            return False
        rewrite, section = rule
        rivals: tuple[Rewrite, ...] = ()
        if rewrite.form is RewriteForm.VALUE:
            whole = DustRule(Rewrite(RewriteForm.DROP, rewrite.name), section)
            if whole in self.refused and self._was_mostly_equal(whole):
                return False
            rivals = (whole.rewrite,)
        elif rewrite.form in (RewriteForm.SLASH, RewriteForm.UNSLASH):
            rivals = (Rewrite(RewriteForm.SLASH), Rewrite(RewriteForm.UNSLASH))
        tried = self.open | self.rules.rules
        if any(DustRule(rival, section) in tried for rival in rivals):
            return False
        members = Counter(pair.canonical for pair in pairs)
        seen = {pair.canonical for pair in pairs if pair.canonical_known}
        return sum(n + (one in seen) >= 2 for one, n in members.items()) >= LEAST_SUPPORT

    def _was_mostly_equal(self, rule: DustRule) -> bool:
        """Whether a rule that failed is wrong for few URLs: then no value alone decides."""
        found = self.evidence().get(rule, TrialEvidence())
        return found.equal > found.differing

    def choose(self, is_visited: Callable[[str], bool]) -> list[AskedPair]:
        """Return the next pairs to compare, those first of which most depends.

        Args:
            is_visited: whether a target was visited.
        """
        compared: dict[DustRule, dict[str, str]] = defaultdict(dict)
        for one in self.compared:
            compared[one.rule][one.canonical] = one.value
        return [
            AskedPair(rule, pair)
            for rule, pairs in sorted(self._pairs.items(), key=lambda one: (-len(one[1]), one[0]))
            if rule in self.open
            for pair in choose_pairs(pairs, compared[rule], is_visited)
        ]

    def add(self, pairs: Iterable[ComparedPair]) -> None:
        """Add comparisons."""
        self.compared.extend(pairs)

    def evidence(self) -> dict[DustRule, TrialEvidence]:
        """Return what the pairs of each trial say; texts on many pages say nothing."""
        repeated = repeated_texts(
            (one.digest, one.canonical) for one in self.compared if one.digest
        )
        found: dict[DustRule, TrialEvidence] = defaultdict(TrialEvidence)
        for one in self.compared:
            if one.digest is None:
                found[one.rule] += TrialEvidence(differing=1)
            elif one.digest and one.digest not in repeated:
                found[one.rule] += TrialEvidence(equal=1)
        return dict(found)

    def decide(self) -> dict[DustRule, TrialResult]:
        """End the trials that are decided; return their results."""
        evidence = self.evidence()
        by_rewrite: dict[Rewrite, TrialEvidence] = defaultdict(TrialEvidence)
        for rule, one in evidence.items():
            by_rewrite[rule.rewrite] += one
        decided: dict[DustRule, TrialResult] = {}
        for rule in self.open:
            own, whole = evidence.get(rule, TrialEvidence()), by_rewrite[rule.rewrite]
            others = TrialEvidence(whole.equal - own.equal, whole.differing - own.differing)
            result = judge_trial(own, others)
            if result is not TrialResult.OPEN:
                decided[rule] = result
        self.open.difference_update(decided)
        holds = {rule for rule, result in decided.items() if result is TrialResult.HOLDS}
        self.refused |= decided.keys() - holds
        self.rules = HostRules(self.rules.rules | holds, self.rules.sections)
        return decided
