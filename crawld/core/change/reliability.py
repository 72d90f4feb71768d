"""Reliability of a source of change hints, learned from visits.

Three quantities are learned for each source: the share of its hints that are real (*trust*), the
share of the changes of its covered pages that it never reports (*missed share*), and the time from
a change to its hint (*lag*). Shares are Beta distributed. A visit to a page with an exact history
shows which hints were real; any other visit shows only whether the page changed.

Evidence decays: the sums of a source represent its last thousand hints or changes, so that a source
that becomes unreliable is detected. The laboratory and the daemon use the same object.

Source: Beta-binomial updates; the noisy-signal setting (false alarms, missed changes) is
Busa-Fekete et al. 2025. Fractional counts of ambiguous visits: one step of EM, Dempster, Laird &
Rubin 1977.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from crawld.core.audit import wilson_interval
from crawld.core.change.arrivals import Arrivals

MEMORY: Final = 1_000.0
"""Largest number of hints or changes that the evidence of a share represents."""

RECENT: Final = 12.0
"""The same of the recent share of true hints."""

MAX_GROUPS: Final = 24
"""Most groups of pages with a common cause that are remembered. The group whose pages were visited
last stays longest: pages of a large one may wait while many smaller ones come."""

TRUST_LEAST: Final = 0.03
"""A source with a smaller trust is ignored, as if it did not exist."""

LAG_EDGES_S: Final = tuple(1.0 * 4.0**k for k in range(12))
"""Upper edges of the lag bins, from a second to 48 days; one more bin lies beyond them."""


class HintGroup(NamedTuple):
    """Pages reported together since one thing changed that all of them include.

    Attributes:
        heard_at: when they were reported, Unix seconds; identifies the group.
        real, false: visits to its pages that found a change, and that found none.
    """

    heard_at: float
    real: float = 0.0
    false: float = 0.0


class MatchCounts(NamedTuple):
    """Counts of one source's hints matched against the changes a visit found.

    Attributes:
        real: hints that reported a change.
        false: hints without a change.
        reported: changes reported by at least one hint.
        missed: changes without a hint.
    """

    real: int
    false: int
    reported: int
    missed: int


def match_hints(
    hinted_at: Sequence[float], changed_at: Sequence[float], *, tolerance_s: float = 60.0
) -> MatchCounts:
    """Match hints with exact changes; a change may have several hints.

    Args:
        hinted_at: times of change that the hints named since the previous visit, in any order.
        changed_at: times of all changes since the previous visit, ascending.
        tolerance_s: largest error of a source's times (a bare date: a day).

    >>> match_hints([10.0, 500.0], [12.0, 300.0])
    MatchCounts(real=1, false=1, reported=1, missed=1)
    """
    covered: set[int] = set()
    false = real = 0
    for at in hinted_at:
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
        yes, no: evidence so far, including the prior.
    """

    yes: float
    no: float

    @property
    def mean(self) -> float:
        """Expected share."""
        return self.yes / (self.yes + self.no)

    def interval(self, coverage: float = 0.9) -> tuple[float, float]:
        """Return the Wilson score interval of the share."""
        return wilson_interval(self.yes, self.yes + self.no, coverage)

    def add(self, yes: float, no: float, *, memory: float = MEMORY) -> None:
        """Add evidence and decay the old."""
        self.yes += yes
        self.no += no
        if (total := self.yes + self.no) > memory:
            self.yes *= memory / total
            self.no *= memory / total


def _initial_real() -> Share:
    # The prior weighs two hints: a stronger one wastes the first visits on a source of false hints,
    # and a reliable source gains nothing from it. With one false hint in ten, the first hints of
    # pages that seldom change, worth the most, count as false: articles are .0005 less fresh.
    return Share(1.9, 0.1)


def _initial_recent() -> Share:
    return Share(1.8, 0.2)


def _initial_missing() -> Share:
    return Share(0.2, 1.8)


def _no_lags() -> list[float]:
    return [0.0] * (len(LAG_EDGES_S) + 1)


@dataclass(slots=True)
class Reliability:
    """Reliability of one source.

    Attributes:
        real: share of the hints that were real; the prior is 19 in 20.
        missing: share of the changes of covered pages it did not report; the prior is one in ten.
        lags: hints by their lag, in the bins of `LAG_EDGES_S`.
        recent: share of the last hints that were real; the prior is nine in ten.
        arrivals: how often the source reports that a fresh copy became stale.
        groups: pages of edited templates, that visited last at the end.
    """

    real: Share = field(default_factory=_initial_real)
    missing: Share = field(default_factory=_initial_missing)
    lags: list[float] = field(default_factory=_no_lags)
    recent: Share = field(default_factory=_initial_recent)
    arrivals: Arrivals = field(default_factory=Arrivals)
    groups: list[HintGroup] = field(default_factory=list)

    @property
    def trust(self) -> float:
        """Probability that a hint of the source is real."""
        return self.real.mean

    @property
    def missed_share(self) -> float:
        """Share of the changes that the source does not report."""
        return self.missing.mean

    @property
    def effective_trust(self) -> float:
        """The trust for policies: 0 for an ignored source."""
        return self.trust if self.trust >= TRUST_LEAST else 0.0

    @property
    def effective_missed_share(self) -> float:
        """The missed share for policies: 1 for an ignored source."""
        return self.missed_share if self.trust >= TRUST_LEAST else 1.0

    def learn_exact(self, found: MatchCounts) -> None:
        """Learn from a visit that found the exact times of all changes since the previous one."""
        self._judge(found.real, found.false)
        self.missing.add(found.missed, found.reported)

    def learn_visit(self, hints: int, *, changed: bool, expected: float = 0.0) -> None:
        """Learn from a visit that found only whether the page changed.

        If a hinted page has changed, either the hint was real, or it was false and the source
        missed the change. How likely the second case is follows from `expected`, the probability of
        a change since the previous visit by the change model.
        """
        if not hints:
            self.missing.add(float(changed), 0.0)
        elif not changed:
            self._judge(0.0, hints)
        else:
            by_chance = (1.0 - self.trust) * expected * self.missed_share
            real = self.trust / (self.trust + by_chance)
            self._judge(real, 1.0 - real)
            self.missing.add(1.0 - real, real)

    def _judge(self, real: float, false: float) -> None:
        self.real.add(real, false)
        self.recent.add(real, false, memory=RECENT)

    def learn_group(self, heard_at: float, *, changed: bool) -> None:
        """Learn from a visit to one page of a group."""
        known = {group.heard_at: group for group in self.groups}
        group = known.pop(heard_at, HintGroup(heard_at))
        known[heard_at] = group._replace(
            real=group.real + changed, false=group.false + (not changed)
        )
        self.groups = list(known.values())[-MAX_GROUPS:]

    def learn_lag(self, lag_s: float) -> None:
        """Learn the time from a change to its hint, seconds."""
        self.lags[bisect_left(LAG_EDGES_S, lag_s)] += 1.0
        if (total := sum(self.lags)) > MEMORY:
            self.lags = [count * MEMORY / total for count in self.lags]

    def lag_s(self, quantile: float = 0.5) -> float:
        """Return a quantile of the lag, seconds, linear within bins; 0 without hints."""
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
            read = cls(
                Share(**values["real"]),
                Share(**values["missing"]),
                lags,
                Share(**values["recent"]),
                Arrivals.from_dict(values["arrivals"]),
                [HintGroup(*group) for group in values["groups"]],
            )
        except (KeyError, TypeError) as error:
            raise ValueError("a reliability of another version; learn it again") from error
        if len(lags) != len(LAG_EDGES_S) + 1:
            raise ValueError("a reliability of another version; learn it again")
        return read
