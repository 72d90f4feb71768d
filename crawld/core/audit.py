"""Estimates the freshness of the mirror from visits to randomly drawn pages.

At the times of a Poisson process a page is drawn, uniformly from the pages that have a copy, and
visited at once. The share of copies that match their page estimates the freshness of the mirror,
averaged over pages and time, without bias:

1. Poisson arrivals see time averages (Wolff 1982, Operations Research 30, 223): the times do not
   depend on the pages or on when the policy visits them.
2. The draw is uniform and ignores the age and the model of the page.
3. Each visit with a response counts, regardless of its reason: if the policy has just visited the
   page drawn, that visit is the sample. Visits without a response (host closed, page failed) are
   counted separately, because pages that cannot be visited may differ from the others.

The visit happens up to one host delay after the draw. A page that changes in between counts as
stale, so freshness is understated by the changes of one delay: for a delay of seconds and pages
that change daily, one in ten thousand.

The n samples are therefore n independent Bernoulli trials, and the interval is Wilson's (1927,
Journal of the American Statistical Association 22, 209). Unlike the normal interval, it keeps its
nominal coverage for few samples and for shares near 0 or 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from crawld.core.units import DAY_S, HOUR_S

LEVEL = 0.95
"""Nominal coverage of the intervals shown."""


def day_of(at: float) -> int:
    """Return the UTC day of a time, counted from 1970."""
    return int(at // DAY_S)


def hour_of(at: float) -> int:
    """Return the UTC hour of a time, counted from 1970."""
    return int(at // HOUR_S)


def wilson_interval(yes: float, count: float, level: float = LEVEL) -> tuple[float, float]:
    """Return the Wilson score interval of the share `yes / count`; (0, 1) without samples.

    `level` is the nominal coverage, in (0, 1).

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
    """Return the time to the next event of a Poisson process, seconds; inf at rate 0.

    The rate is per second, `chance` uniform in [0, 1).
    """
    return -math.log1p(-chance) / rate if rate > 0.0 else math.inf


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Counts of random visits by result.

    Attributes:
        fresh: copies that matched their page.
        stale: copies that did not match.
        unknown: visits without a response.
        expected: sum, over fresh and stale, of the freshness probability that the change model
        predicted.
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
        """Visits with a response."""
        return self.fresh + self.stale

    @property
    def freshness(self) -> float | None:
        """Unbiased estimate of the freshness; None without samples."""
        return self.fresh / self.count if self.count else None

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the freshness, of coverage `LEVEL`."""
        return wilson_interval(self.fresh, self.count)

    @property
    def expected_freshness(self) -> float | None:
        """Mean freshness that the change model predicted for these visits; None without any."""
        return self.expected / self.count if self.count else None
