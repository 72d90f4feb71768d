"""How fresh the copies are, found out by asking a few pages at random.

At instants of a Poisson process a page is drawn, each held page with the same chance, and visited
at once. The share of copies found to be as their page is estimates the freshness of the mirror,
averaged over pages and time, without bias:

1. Poisson arrivals see time averages (Wolff 1982, Operations Research 30, 223): the instants
   depend on nothing that happens to the pages, above all not on when the policy visits them.
2. The draw is uniform and knows nothing of the page: neither its age nor its model.
3. Each visit that answers counts, whoever made it: had the policy just sent a visit to the page
   drawn, that visit is the sample. Visits without an answer (host closed, page failed) tell
   nothing; they are counted apart, since pages that cannot be asked may differ from the others.

Between the instant and the visit lies the wait for the host's turn, at most its delay. A page that
changes meanwhile counts as stale: freshness is understated by the changes of one delay, which for a
delay of seconds and pages that change daily is one in ten thousand.

So n samples are n independent draws of a coin whose chance is the freshness, and the interval is
Wilson's (1927, Journal of the American Statistical Association 22, 209), which keeps its nominal
coverage also for few samples and shares near 0 or 1, where the normal interval does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

LEVEL = 0.95
"""Nominal coverage of the intervals shown."""

DAY_S = 86_400.0


def day_of(at: float) -> int:
    """Return the day (UTC) of an instant, counted from 1970."""
    return int(at // DAY_S)


def wilson_interval(yes: float, count: float, level: float = LEVEL) -> tuple[float, float]:
    """Return an interval for a share; (0, 1) without a sample.

    Args:
        yes: samples that had it.
        count: samples.
        level: nominal coverage, in (0, 1).

    Source: Wilson 1927, equation of the score interval.

    >>> low, high = wilson_interval(81, 263)
    >>> round(low, 4), round(high, 4)
    (0.2553, 0.3662)
    """
    if not count:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + level / 2.0)
    share = yes / count
    middle = (share + z * z / (2.0 * count)) / (1.0 + z * z / count)
    half = z / (1.0 + z * z / count)
    half *= math.sqrt(share * (1.0 - share) / count + z * z / (4.0 * count * count))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def poisson_gap_s(rate: float, chance: float) -> float:
    """Return the time to the next instant of a Poisson process, seconds.

    Args:
        rate: instants per second; 0: there is none.
        chance: uniform in [0, 1).
    """
    return -math.log1p(-chance) / rate if rate > 0.0 else math.inf


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What random visits found.

    Attributes:
        fresh: copies that were as their page is. stale: those that were not.
        unknown: visits that did not tell.
        expected: sum over fresh and stale of the probability the change model had given them.
    """

    fresh: int = 0
    stale: int = 0
    unknown: int = 0
    expected: float = 0.0

    def __add__(self, other: AuditResult) -> AuditResult:
        return AuditResult(
            self.fresh + other.fresh,
            self.stale + other.stale,
            self.unknown + other.unknown,
            self.expected + other.expected,
        )

    @property
    def count(self) -> int:
        """Visits that told."""
        return self.fresh + self.stale

    @property
    def freshness(self) -> float | None:
        """The unbiased estimate, None without a sample."""
        return self.fresh / self.count if self.count else None

    @property
    def interval(self) -> tuple[float, float]:
        """Its interval."""
        return wilson_interval(self.fresh, self.count)

    @property
    def expected_freshness(self) -> float | None:
        """What the change model had expected of the same pages at the same instants."""
        return self.expected / self.count if self.count else None
