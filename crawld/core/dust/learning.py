"""The trials of a host: what is tried, which pairs of pages to compare next, what they decide.

propose   URLs ─▶ likely rewrites ─▶ a trial for each section in which a rewrite has support
choose    the next pairs of each trial: pages that were visited first
add       the comparison of a pair
decide    rules that hold, and rewrites that fail
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
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
    promise,
    repeated_texts,
)

MAX_TRIALS: Final = 60
"""Trials of a host at a time."""


class ComparedPair(NamedTuple):
    """A pair whose pages were compared.

    Attributes:
        digest: of the main text of both pages; None: they differ; empty: they are not compared
            yet, or prove nothing.
        waits: whether they are not compared yet.
    """

    rule: DustRule
    canonical: str
    value: str
    digest: bytes | None
    waits: bool = False


class AskedPair(NamedTuple):
    """A pair to compare for a trial."""

    rule: DustRule
    pair: Pair


class ContestedUrls:
    """Canonical URLs whose pages differ by a parameter, by its name and the section.

    A parameter that decides on few pages is irrelevant on most, whatever its value: pairs of these
    tell apart a value that is the default from one that has met none of the few.
    """

    def __init__(self, differing: Iterable[tuple[DustRule, str]]) -> None:
        """Read the rules and canonical URLs of pairs that differ."""
        self._urls: dict[tuple[str, str], set[str]] = defaultdict(set)
        for rule, canonical in differing:
            if rule.rewrite.form in _OF_PARAMETER:
                self._urls[rule.rewrite.name, rule.section].add(canonical)

    def of(self, rule: DustRule) -> Collection[str]:
        """Return those of the parameter of a rule."""
        if rule.rewrite.form not in _OF_PARAMETER:
            return ()
        return self._urls.get((rule.rewrite.name, rule.section), ())

    def by(self, rules: Iterable[DustRule], canonical: str) -> list[bool]:
        """Return which rules drop a parameter that contests a canonical URL."""
        return [canonical in self.of(rule) for rule in rules]


_OF_PARAMETER: Final = frozenset({RewriteForm.DROP, RewriteForm.VALUE})


def contested_urls(compared: Iterable[ComparedPair]) -> ContestedUrls:
    """Return the canonical URLs of pairs that differ."""
    return ContestedUrls((one.rule, one.canonical) for one in compared if one.digest is None)


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

    def propose(
        self,
        targets: Collection[str],
        seed: int,
        is_known: Callable[[str], bool] = lambda target: False,
    ) -> list[DustRule]:
        """Read URLs of the host; return the new trials.

        Args:
            targets: paths and queries of the URLs that are searched.
            seed: of the order in which pairs are drawn.
            is_known: whether a target beside them is one of a URL of the host, too.
        """
        apply = self.rules.apply_to_target
        standing = {target: found[0] if (found := apply(target)) else target for target in targets}
        known = {target for target, stands in standing.items() if stands == target}
        likely = {
            DustRule(one.rewrite, section): pairs
            for one in likely_rewrites(standing.values())
            for section, pairs in sorted(
                pairs_of(one.rewrite, one.changed, known, self.rules, seed, is_known).items()
            )
        }
        # A trial whose rewrite is likely no more, since another rule holds, goes on no more.
        self._pairs = {rule: pairs for rule, pairs in likely.items() if rule in self.open}
        proposed: list[DustRule] = []
        for rule, pairs in likely.items():
            known_rule = rule in self.open | self.rules.rules | self.refused
            if not known_rule and self._is_wanted(rule, pairs):
                self._pairs[rule] = pairs
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
        elif rewrite.form is RewriteForm.REPLACE and self._is_replaced(rule):
            return False
        tried = self._pairs.keys() | self.rules.rules
        if any(DustRule(rival, section) in tried for rival in rivals):
            return False
        members = Counter(pair.canonical for pair in pairs)
        seen = {pair.canonical for pair in pairs if pair.canonical_known}
        return sum(n + (one in seen) >= 2 for one, n in members.items()) >= LEAST_SUPPORT

    def _is_replaced(self, rule: DustRule) -> bool:
        """Whether the same two segments were tried, in the other order or in another case."""
        tried = self._pairs.keys() | self.rules.rules | self.refused
        return any(_segments(other) == _segments(rule) for other in tried)

    def _was_mostly_equal(self, rule: DustRule) -> bool:
        """Whether a rule that failed is wrong for few URLs: then no value alone decides."""
        found = self.evidence().get(rule, TrialEvidence())
        return found.equal > found.differing

    def choose(self, is_visited: Callable[[str], bool]) -> list[AskedPair]:
        """Return the next pairs to compare, those first that promise most.

        Args:
            is_visited: whether a target was visited.
        """
        compared: dict[DustRule, dict[str, str]] = defaultdict(dict)
        waiting: Counter[DustRule] = Counter()
        for one in self.compared:
            compared[one.rule][one.canonical] = one.value
            waiting[one.rule] += one.waits
        contested = contested_urls(self.compared)
        return [
            AskedPair(rule, pair)
            for rule in self._by_promise()
            for pair in choose_pairs(
                self._pairs[rule],
                compared[rule],
                is_visited,
                waiting=waiting[rule],
                contested=contested.of(rule),
            )
        ]

    def _by_promise(self) -> list[DustRule]:
        """Return the trials that have pairs, those first that promise most."""
        evidence = self.evidence()
        of_rewrite = by_rewrite(evidence)
        promised = {
            rule: promise(rule.rewrite, len(self._pairs[rule]), own, of_rewrite[rule.rewrite] - own)
            for rule in self.open & self._pairs.keys()
            for own in [evidence.get(rule, TrialEvidence())]
        }
        return sorted(promised, key=lambda rule: (-promised[rule], rule))

    def add(self, pairs: Iterable[ComparedPair]) -> None:
        """Add comparisons."""
        self.compared.extend(pairs)

    def evidence(self) -> dict[DustRule, TrialEvidence]:
        """Return what the pairs of each trial say."""
        repeated = repeated_texts(
            (one.digest, one.canonical) for one in self.compared if one.digest
        )
        found: dict[DustRule, TrialEvidence] = defaultdict(TrialEvidence)
        for one in self.compared:
            if one.digest is None:
                found[one.rule] += TrialEvidence(differing=1)
            elif one.digest in repeated:
                found[one.rule] += TrialEvidence(repeated=1)
            elif one.digest:
                found[one.rule] += TrialEvidence(equal=1)
        return dict(found)

    def decide(self) -> dict[DustRule, TrialResult]:
        """End the trials that are decided; return their results."""
        evidence = self.evidence()
        of_rewrite = by_rewrite(evidence)
        decided: dict[DustRule, TrialResult] = {}
        for rule in self.open:
            own = evidence.get(rule, TrialEvidence())
            result = judge_trial(own, of_rewrite[rule.rewrite] - own)
            if result is not TrialResult.OPEN:
                decided[rule] = result
        self.open.difference_update(decided)
        holds = {rule for rule, result in decided.items() if result is TrialResult.HOLDS}
        self.refused |= decided.keys() - holds
        self.rules = HostRules(self.rules.rules | holds, self.rules.sections)
        return decided


def by_rewrite(evidence: Mapping[DustRule, TrialEvidence]) -> dict[Rewrite, TrialEvidence]:
    """Return the evidence of all sections together; nothing of rewrites without any."""
    found: dict[Rewrite, TrialEvidence] = defaultdict(TrialEvidence)
    for rule, one in evidence.items():
        found[rule.rewrite] += one
    return found


def _segments(rule: DustRule) -> tuple[frozenset[str], str] | None:
    """Return which two segments a rule takes for one, whatever their order and case, and where.

    None: it replaces no segment.
    """
    rewrite, section = rule
    if rewrite.form is not RewriteForm.REPLACE:
        return None
    pair = frozenset({rewrite.name.lower(), rewrite.value.lower()})
    return pair, "" if section.lower() in pair else section
