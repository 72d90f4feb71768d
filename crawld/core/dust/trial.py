"""Whether a rewrite holds in a section: a sequential test on pairs of pages.

A pair is a URL and the URL that would stand for it. Each pair of a trial has another URL that
stands, and few have the same value of a parameter, so that one page or one value decides nothing.

Wald's test separates rewrites that are wrong for `BAD_SHARE` of the URLs or more from those that
are wrong for `GOOD_SHARE` or less. A rewrite that is wrong for `BAD_SHARE` passes with probability
`FALSE_RULE` at most. A section may borrow the evidence of others as long as nothing differs
anywhere: then `SECTION_PAIRS` pairs of its own are enough, so that a rewrite that is wrong for half
of a section passes with probability 2 ** -SECTION_PAIRS at most, in that section.

A text that stands under many canonical URLs, such as an error page or a login, proves nothing
about a rewrite. But where other sections prove it, and nothing differs anywhere, as many pairs of
such texts as the test asks for are enough: a session id means nothing in the section of the login
either, and its URLs are without end.

A rule that holds is tested on (`watch`).

Source: Wald 1945, "Sequential tests of statistical hypotheses".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from heapq import nsmallest
from itertools import islice
from math import ceil, log
from typing import Final, NamedTuple

import xxhash

from crawld.core.dust.likely import values_of
from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import HostRules

GOOD_SHARE: Final = 0.01
"""Share of differing pairs, by chance or by edits between two visits, of a rule that is right."""

BAD_SHARE: Final = 0.20
"""Share of differing pairs that a rule may not have."""

FALSE_RULE: Final = 0.01
"""Largest probability with which a rewrite of `BAD_SHARE` passes."""

LIKELY_RIGHT: Final = {RewriteForm.REPLACE: 0.1, RewriteForm.VALUE: 0.3}
"""Share of the likely rewrites of a form that are right, on simulated sites."""

LIKELY_RIGHT_ELSE: Final = 0.6

WRONG_EQUAL: Final = 0.2
"""Share of equal pairs of a rewrite that is wrong, for the order of trials alone: most of these are
wrong for nearly all URLs."""

MISSED_RULE: Final = 0.05
"""Largest probability with which a rewrite of `GOOD_SHARE` is refused."""

EQUAL_STEP: Final = log((1.0 - GOOD_SHARE) / (1.0 - BAD_SHARE))
DIFFERING_STEP: Final = log(GOOD_SHARE / BAD_SHARE)
HOLDS_FROM: Final = log((1.0 - MISSED_RULE) / FALSE_RULE)
FAILS_TO: Final = log(MISSED_RULE / (1.0 - FALSE_RULE))

SECTION_PAIRS: Final = 10
"""Equal pairs of its own that a section needs where others have the rest of the evidence."""

PAIRS_PER_VALUE: Final = 2
"""Pairs of one trial with the same value of the parameter on trial."""

PAIRS_AT_ONCE: Final = 6
"""Pairs of a trial that are compared before it is judged again."""

PAID_PAIRS: Final = 4
"""How many of them may take fetches that the crawl would not make."""

MAX_PAIRS: Final = 600
"""Pairs of a rewrite from which those to compare are chosen."""

MANY_CANONICALS: Final = 4
"""A text that stands under so many canonical URLs is an error page or a login: it proves nothing.
"""


class TrialResult(StrEnum):
    """What the evidence says."""

    OPEN = "open"
    HOLDS = "holds"
    FAILS = "fails"


@dataclass(frozen=True, slots=True)
class TrialEvidence:
    """Pairs of a trial that were compared.

    Attributes:
        equal: whose text stands under few canonical URLs.
        repeated: equal pairs of another text: they prove nothing alone.
    """

    equal: int = 0
    differing: int = 0
    repeated: int = 0

    def __add__(self, other: TrialEvidence) -> TrialEvidence:
        return TrialEvidence(
            self.equal + other.equal,
            self.differing + other.differing,
            self.repeated + other.repeated,
        )

    def __sub__(self, other: TrialEvidence) -> TrialEvidence:
        return TrialEvidence(
            self.equal - other.equal,
            self.differing - other.differing,
            self.repeated - other.repeated,
        )

    @property
    def score(self) -> float:
        """Logarithm of the likelihood ratio: the rewrite is right, or wrong."""
        return self.equal * EQUAL_STEP + self.differing * DIFFERING_STEP


def judge_trial(own: TrialEvidence, others: TrialEvidence) -> TrialResult:
    """Return what the pairs of a section, and those of the other sections, say about a rewrite."""
    if own.score >= HOLDS_FROM:
        return TrialResult.HOLDS
    if own.score <= FAILS_TO:
        return TrialResult.FAILS
    both = own + others
    if both.differing:
        return TrialResult.OPEN
    proved = own.equal >= SECTION_PAIRS and both.score >= HOLDS_FROM
    shown = TrialEvidence(own.equal + own.repeated).score >= HOLDS_FROM
    enough = proved or (shown and others.score >= HOLDS_FROM)
    return TrialResult.HOLDS if enough else TrialResult.OPEN


def promise(rewrite: Rewrite, urls: int, own: TrialEvidence, others: TrialEvidence) -> float:
    """Return how much a trial promises for each pair that it still needs: URLs that it would hide.

    Visits go to the trials that promise most, which ends those that save most at the earliest.

    Args:
        rewrite: on trial.
        urls: that it would change in the section.
        own: evidence of the section.
        others: of the other sections.

    >>> new, nearly, none = TrialEvidence(), TrialEvidence(equal=20), TrialEvidence()
    >>> slash, replace = Rewrite(RewriteForm.SLASH), Rewrite(RewriteForm.REPLACE, "a", "b")
    >>> promise(slash, 100, new, none) > promise(replace, 300, new, none)
    True
    >>> promise(replace, 100, nearly, none) > promise(slash, 1_000, new, none)
    True

    Source: Smith 1956, "Various optimizers for single-stage production" (value over time).
    """
    prior = LIKELY_RIGHT.get(rewrite.form, LIKELY_RIGHT_ELSE)
    wrong = (1.0 - prior) * WRONG_EQUAL ** (own.equal + others.equal)
    right = prior * (BAD_SHARE if own.differing + others.differing else 1.0)
    needed = ceil((HOLDS_FROM - own.score) / EQUAL_STEP)
    if not own.differing and not others.differing:
        borrowed = max(SECTION_PAIRS - own.equal, needed - others.equal)
        needed = min(needed, borrowed)
    return right / (right + wrong) * urls / max(needed, 1)


class Pair(NamedTuple):
    """A URL and the one that would stand for it, as targets.

    Attributes:
        section: of the rewrite on trial.
        value: what the rewrite removes, if it removes a value.
        canonical_known: whether the canonical URL is a URL of the host.
    """

    target: str
    canonical: str
    section: str
    value: str
    canonical_known: bool


def pairs_of(
    rewrite: Rewrite,
    changed: Iterable[str],
    known: Collection[str],
    rules: HostRules,
    seed: int,
    is_known: Callable[[str], bool],
) -> dict[str, list[Pair]]:
    """Return pairs of a rewrite by section, in an order drawn by the seed.

    Args:
        rewrite: on trial.
        changed: targets that it changes; those that are not known are left out.
        known: all targets that were searched and stand for themselves.
        rules: that hold.
        seed: of the order.
        is_known: whether another target is one of a URL of the host.
    """
    tried = rules.with_rewrite(rewrite)
    drawn = nsmallest(
        MAX_PAIRS,
        (target for target in changed if target in known),
        key=lambda target: xxhash.xxh3_64_intdigest(target.encode(), seed),
    )
    pairs: dict[str, list[Pair]] = defaultdict(list)
    for target in drawn:
        found = tried.apply_to_target(target)
        if found is None:
            continue
        canonical, used = found
        section = next((rule.section for rule in used if rule.rewrite == rewrite), None)
        if section is not None:
            value = values_of(rewrite.name, target) if rewrite.form is RewriteForm.DROP else ""
            there = canonical in known or is_known(canonical)
            pairs[section].append(Pair(target, canonical, section, value, there))
    return dict(pairs)


def choose_pairs(
    pairs: Iterable[Pair],
    compared: Mapping[str, str],
    is_visited: Callable[[str], bool],
    *,
    waiting: int = 0,
    contested: Collection[str] = (),
) -> list[Pair]:
    """Return the next pairs to compare: each of another canonical URL, few of one value.

    Pairs of contested canonical URLs come first: they are the most likely to differ. Of the others,
    pairs that take no fetch beside those of the crawl come first. Pairs that take one more are
    returned as long as those before them agreed: one, one more, two, four. Beside known canonical
    URLs some are taken that nobody has named, since the rule would apply to both.

    Args:
        pairs: of a section, in a random order.
        compared: canonical targets of the pairs compared before, to their values.
        is_visited: whether a target was visited.
        waiting: those of them whose visits were asked for and are not compared yet.
        contested: canonical URLs whose pages differ by another value of the parameter on trial.
    """
    values = Counter(compared.values())
    used = set(compared)
    queues: dict[bool, list[tuple[bool, int, int, Pair]]] = {True: [], False: []}
    for at, pair in enumerate(pairs):
        order = pair.canonical not in contested, extra_fetches(pair, is_visited), at
        queues[pair.canonical_known].append((*order, pair))
    ordered = {known: [pair for *_, pair in sorted(queue)] for known, queue in queues.items()}
    chosen: list[Pair] = []
    paid = max(1, min(PAID_PAIRS, len(compared) - waiting)) - waiting
    for pair in _alternately(ordered[True], ordered[False]):
        if len(chosen) == PAIRS_AT_ONCE:
            break
        if pair.canonical in used or (pair.value and values[pair.value] >= PAIRS_PER_VALUE):
            continue
        if extra_fetches(pair, is_visited):
            if paid <= 0:
                continue
            paid -= 1
        used.add(pair.canonical)
        values[pair.value] += 1
        chosen.append(pair)
    return chosen


def extra_fetches(pair: Pair, is_visited: Callable[[str], bool]) -> int:
    """Return the fetches that a pair takes beside those of the crawl.

    A canonical URL that is known is visited in any case.
    """
    unknown = not pair.canonical_known and not is_visited(pair.canonical)
    return (not is_visited(pair.target)) + unknown


def _alternately(many: list[Pair], few: list[Pair]) -> Iterable[Pair]:
    """Yield three of the first list, then one of the second, as long as there are any."""
    first, second = iter(many), iter(few)
    while True:
        part = list(islice(first, 3))
        part += islice(second, 1)
        if not part:
            return
        yield from part


def repeated_texts(texts: Iterable[tuple[bytes, str]]) -> frozenset[bytes]:
    """Return the texts that stand under too many canonical URLs to prove anything.

    Args:
        texts: digest of a main text, and the canonical URL of its page.
    """
    under: dict[bytes, set[str]] = defaultdict(set)
    for digest, canonical in texts:
        under[digest].add(canonical)
    return frozenset(one for one, urls in under.items() if len(urls) >= MANY_CANONICALS)
