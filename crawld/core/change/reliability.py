"""How far a source of change hints is to be trusted, learnt from what visits find.

Three things are learnt of each source: the share of its hints that are real (*trust*), the share
of the changes of the pages it covers that it never tells of (*missed share*), and how long after a
change its hint comes (*lag*). Shares are Beta distributed; a visit whose page keeps a history tells
exactly which hints were real, another one only whether the page is as it was.

Evidence fades: the sums of a source stand for its last thousand hints or changes, so that one that
turns bad is found out. Knows no clock, no page and no policy; the laboratory and the daemon feed
the same object.

Source: Beta-binomial updates; the noisy-signal setting (false alarms, missed changes) is
Busa-Fekete et al. 2025. Fractional counts of ambiguous visits: one step of EM, Dempster, Laird &
Rubin 1977.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from crawld.core.audit import wilson_interval

MEMORY: Final = 1_000.0
"""Evidence of a share counts for at most so many hints or changes."""

TRUST_LEAST: Final = 0.03
"""A source fewer of whose hints are real tells of all pages alike: it is as if it said nothing."""

LAG_EDGES_S: Final = tuple(1.0 * 4.0**k for k in range(12))
"""Upper ends of the bins of the lag, from a second to 48 days; beyond them lies one more bin."""


class MatchCounts(NamedTuple):
    """Hints of one source held against the changes a visit found.

    Attributes:
        real: hints that told of a change. false: hints that told of none.
        told: changes told by at least one hint. missed: changes nothing told of.
    """

    real: int
    false: int
    told: int
    missed: int


def match_hints(
    told_at: Sequence[float], changed_at: Sequence[float], *, tolerance_s: float = 60.0
) -> MatchCounts:
    """Match hints with exact changes, each change with all hints of it.

    Args:
        told_at: instants of change the hints named, since the visit before, any order.
        changed_at: instants of all changes since the visit before, ascending.
        tolerance_s: how far a source's instants may be off (a bare date: a day).

    >>> match_hints([10.0, 500.0], [12.0, 300.0])
    MatchCounts(real=1, false=1, told=1, missed=1)
    """
    covered: set[int] = set()
    false = real = 0
    for at in told_at:
        first = bisect_left(changed_at, at - tolerance_s)
        last = bisect_right(changed_at, at + tolerance_s)
        if first == last:
            false += 1
            continue
        near = min(range(first, last), key=lambda k: (k in covered, abs(changed_at[k] - at)))
        real += 1
        covered.add(near)
    return MatchCounts(real, false, len(covered), len(changed_at) - len(covered))


@dataclass(slots=True)
class Share:
    """A share of events, Beta distributed.

    Attributes:
        yes, no: evidence so far, the belief before any included.
    """

    yes: float
    no: float

    @property
    def mean(self) -> float:
        """The expected share."""
        return self.yes / (self.yes + self.no)

    def interval(self, coverage: float = 0.9) -> tuple[float, float]:
        """Return the share's interval of a coverage, by Wilson's score."""
        return wilson_interval(self.yes, self.yes + self.no, coverage)

    def add(self, yes: float, no: float) -> None:
        """Take in evidence, and let the old fade."""
        self.yes += yes
        self.no += no
        if (total := self.yes + self.no) > MEMORY:
            self.yes *= MEMORY / total
            self.no *= MEMORY / total


def _likely_real() -> Share:
    # Worth two hints, not more: on lies a stronger belief wastes the first visits, and a source
    # that tells the truth gains nothing by it.
    return Share(1.8, 0.2)


def _rarely_missing() -> Share:
    return Share(0.2, 1.8)


def _no_lags() -> list[float]:
    return [0.0] * (len(LAG_EDGES_S) + 1)


@dataclass(slots=True)
class Reliability:
    """What visits said of one source.

    Attributes:
        real: share of the hints that were real; before any visit nine in ten.
        missing: share of the changes of covered pages it did not tell; before any visit one in ten.
        lags: hints by their lag, in the bins of `LAG_EDGES_S`.
    """

    real: Share = field(default_factory=_likely_real)
    missing: Share = field(default_factory=_rarely_missing)
    lags: list[float] = field(default_factory=_no_lags)

    @property
    def trust(self) -> float:
        """Probability that a hint of the source is real."""
        return self.real.mean

    @property
    def missed_share(self) -> float:
        """Share of the changes that the source does not tell."""
        return self.missing.mean

    @property
    def effective_trust(self) -> float:
        """The trust that policies are told: 0 of a source that is not heeded."""
        return self.trust if self.trust >= TRUST_LEAST else 0.0

    @property
    def effective_missed_share(self) -> float:
        """The missed share that policies are told: the silence of such a source says nothing."""
        return self.missed_share if self.trust >= TRUST_LEAST else 1.0

    def learn_exact(self, found: MatchCounts) -> None:
        """Learn from a visit that found the exact instants of all changes since the one before."""
        self.real.add(found.real, found.false)
        self.missing.add(found.missed, found.told)

    def learn_visit(self, told: int, *, changed: bool, expected: float = 0.0) -> None:
        """Learn from a visit that found only whether the page is as it was.

        Where a page was told to have changed and has, the hint was real, or it was false and the
        change one the source missed; the change model says how likely that is.

        Args:
            told: hints of the source about the page since the visit before.
            changed: the page is not as it was.
            expected: probability of a change since the visit before, as the model sees it.
        """
        if not told:
            self.missing.add(float(changed), 0.0)
        elif not changed:
            self.real.add(0.0, told)
        else:
            by_chance = (1.0 - self.trust) * expected * self.missed_share
            real = self.trust / (self.trust + by_chance)
            self.real.add(real, 1.0 - real)
            self.missing.add(1.0 - real, real)

    def learn_lag(self, lag_s: float) -> None:
        """Learn the time from a change to the hint of it, seconds."""
        self.lags[bisect_left(LAG_EDGES_S, lag_s)] += 1.0
        if (total := sum(self.lags)) > MEMORY:
            self.lags = [count * MEMORY / total for count in self.lags]

    def lag_s(self, quantile: float = 0.5) -> float:
        """Return a quantile of the lag, seconds, by straight lines inside bins; 0 without any."""
        left = quantile * sum(self.lags)
        below = 0.0
        for count, above in zip(self.lags, LAG_EDGES_S, strict=False):
            if count > 0.0 and left <= count:
                return below + (above - below) * left / count
            left -= count
            below = above
        return below if any(self.lags) else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Reliability:
        """Return the reliability of `as_dict`.

        Raises:
            ValueError: the values are of another version.
        """
        try:
            lags = [float(count) for count in values["lags"]]
            read = cls(Share(**values["real"]), Share(**values["missing"]), lags)
        except (KeyError, TypeError) as error:
            raise ValueError("a reliability of another version; learn it anew") from error
        if len(lags) != len(LAG_EDGES_S) + 1:
            raise ValueError("a reliability of another version; learn it anew")
        return read


def combined_missed_share(missed_shares: Iterable[float]) -> float:
    """Return the share of changes that none of several sources tells, as if they were independent.

    >>> combined_missed_share([0.5, 0.2])
    0.1
    >>> combined_missed_share([])
    1.0
    """
    return math.prod(missed_shares, start=1.0)
