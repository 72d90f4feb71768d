"""Whether a rule in force still holds: every pair of pages that is compared counts.

A trial separates rules from rewrites that are wrong for a fifth of their URLs. What is wrong for
one URL in twenty is found afterwards, by the pairs that take no visit (URLs that were visited
before the rule, whose canonical URL is visited now), and by looks: hidden pages that are visited
again. Looks take a part of the visits for validation, and what trials do not want, until
`SURE_PAIRS` pairs of a rule were compared: one that is wrong for one URL in twelve passes them with
probability .002. Each pair adds to a capped score; two differences in a short time withdraw a rule.

A pair may use several rules. All count it, but a difference lowers the scores of suspects alone:
the rule with the largest share of differing pairs, and those with at least half that share, since
nothing tells which of them is wrong. If the text of the page is known to change with a parameter
(`learning.ContestedUrls`), the rules of this parameter are the suspects.

Source: Page 1954, "Continuous inspection schemes".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil, log
from typing import Final, NamedTuple, TypeVar

from crawld.core.dust.trial import HOLDS_FROM

RuleKey = TypeVar("RuleKey")

WATCHED_GOOD_SHARE: Final = 0.002
"""Share of differing pairs of a rule that is right: its pages were read at about one time."""

WATCHED_BAD_SHARE: Final = 0.05
"""Share of differing pairs with which a rule is soon withdrawn."""

SURE_PAIRS: Final = 100
"""Pairs of a rule from which on it is looked at on a schedule alone."""

SUSPECT_SHARE: Final = 0.5
"""Of the largest share of differing pairs, from which on a rule is a suspect, too."""

LOOKS_SHARE: Final = 0.3
"""Part of the visits for validation that are kept for looks while a rule in force is not sure."""

EQUAL_STEP: Final = log((1.0 - WATCHED_GOOD_SHARE) / (1.0 - WATCHED_BAD_SHARE))
DIFFERING_STEP: Final = log(WATCHED_GOOD_SHARE / WATCHED_BAD_SHARE)


class WatchedRule(NamedTuple):
    """What the pairs of a rule in force say.

    Attributes:
        equal: equal pairs, those of its trial included.
        differing: differing pairs likewise.
        score: the rule is withdrawn at 0.
    """

    equal: int = 0
    differing: int = 0
    score: float = HOLDS_FROM

    @property
    def is_withdrawn(self) -> bool:
        """Whether too many pairs differed."""
        return self.score <= 0.0

    @property
    def wanted_pairs(self) -> int:
        """How many pairs must still be compared until the rule is sure.

        One that differed takes more, until it is forgotten: a rule that is wrong for one URL in
        fifty passes the first hundred pairs with one difference or none in two of five cases.
        """
        first = SURE_PAIRS - self.equal - self.differing
        return max(first, ceil((HOLDS_FROM - self.score) / EQUAL_STEP) if self.differing else 0, 0)


def first_score(differing: int) -> float:
    """Return the score of a rule that has passed its trial with some differing pairs.

    >>> first_score(0) > first_score(1) > first_score(9) > 0
    True
    """
    return max(EQUAL_STEP, HOLDS_FROM + differing * DIFFERING_STEP)


class VisitShares:
    """The visits for validation of an origin, divided between trials and looks.

    A few visits at a time are divided as many together: a part of one is kept until it is whole.

    >>> shares = VisitShares()
    >>> shares.grow(100, [])
    >>> shares.grow(104, [WatchedRule(equal=20)])
    >>> shares.for_trials(6), shares.for_looks(3, trials_go_on=True)
    (5, 1)
    """

    def __init__(self) -> None:
        self._all: int | None = None
        self._kept = 0.0

    def grow(self, visits: int, rules: Iterable[WatchedRule]) -> None:
        """Divide visits that came since the last call.

        Args:
            visits: for validation so far, those made included.
            rules: in force.
        """
        before = visits if self._all is None else self._all
        came, self._all = max(visits - before, 0), visits
        if any(one.wanted_pairs for one in rules):
            self._kept += LOOKS_SHARE * came
        else:
            self._kept = 0.0

    def for_trials(self, left: int) -> int:
        """Return how many of the visits that are left trials may take."""
        return max(left - int(self._kept), 0)

    def for_looks(self, left: int, *, trials_go_on: bool) -> int:
        """Return how many of them looks may take, which are no more kept.

        Args:
            left: by the trials.
            trials_go_on: whether they will want more.
        """
        looks = max(min(left, int(self._kept)) if trials_go_on else left, 0)
        self._kept = max(self._kept - looks, 0.0)
        return looks


def looks_of(rules: Mapping[RuleKey, WatchedRule], visits: int) -> dict[RuleKey, int]:
    """Return how many hidden pages to visit for each rule that is not sure.

    Rules of which a pair differed get what they want first, then those with the fewest pairs.

    Args:
        rules: in force.
        visits: for validation, that trials left.
    """
    left = visits
    unsure = [key for key, one in rules.items() if one.wanted_pairs]
    unsure.sort(key=lambda key: -rules[key].wanted_pairs)
    suspects = suspects_of(rules)
    looks: dict[RuleKey, int] = {}
    for group in (
        [key for key in unsure if key in suspects],
        [key for key in unsure if key not in suspects],
    ):
        for at, key in enumerate(group):
            share = min(rules[key].wanted_pairs, -(-left // (len(group) - at)))
            looks[key] = share
            left -= share
    return looks


def suspects_of(rules: Mapping[RuleKey, WatchedRule]) -> frozenset[RuleKey]:
    """Return the rules of which a pair differed that is not forgotten.

    Pages that use one of them alone are looked at first: they tell which one is wrong.
    """
    return frozenset(key for key, one in rules.items() if one.differing and one.wanted_pairs)


def watch_pair(
    rules: Collection[WatchedRule], *, equal: bool, doubted: Sequence[bool] = ()
) -> list[WatchedRule]:
    """Return the rules that a pair used, in their order, after the pair was compared.

    Args:
        rules: that the pair used.
        equal: whether its pages are equal.
        doubted: which of the rules drop a parameter with which the text of the page changes.

    >>> new, old = WatchedRule(equal=20), WatchedRule(equal=90)
    >>> [round(one.score, 2) for one in watch_pair([new, old], equal=False)]
    [1.34, 4.55]
    >>> more = watch_pair([new, old], equal=False, doubted=[False, True])
    >>> [round(one.score, 2) for one in more]
    [4.55, 1.34]
    """
    if equal:
        return [
            WatchedRule(one.equal + 1, one.differing, min(HOLDS_FROM, one.score + EQUAL_STEP))
            for one in rules
        ]
    least = SUSPECT_SHARE * max(map(_suspicion, rules), default=0.0)
    suspected = doubted if any(doubted) else [_suspicion(one) >= least for one in rules]
    return [
        WatchedRule(one.equal, one.differing + 1, one.score + DIFFERING_STEP * is_suspected)
        for one, is_suspected in zip(rules, suspected, strict=True)
    ]


def _suspicion(rule: WatchedRule) -> float:
    return (rule.differing + 0.5) / (rule.equal + rule.differing + 1.0)
