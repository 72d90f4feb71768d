"""How soon samples show that a section of a copy differs, against the visits that they cost.

A section of a replica rests, each of its pages would be visited every second day, and on day 0 a
part of it begins to differ. Pages are sampled as the `replicas` job does
(`crawld/core/replica/sampling.py`), until a sample meets one that differs. The effort stands for
how often copies of the mirror begin to differ.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from crawld.core.replica.sampling import next_sampling, pages_to_sample, samples_per_day
from crawld.core.replica.sections import ReplicaPage, Standing
from crawld.core.units import DAY_S

SIZES: Final = (10, 20, 40, 60, 100, 200, 400, 1_000)
SHARES: Final = (0.1, 0.3, 0.5)
EFFORTS: Final = (0.85, 1.0, 2.5)
VISITS_PER_DAY: Final = 0.5
IN_TIME_DAYS: Final = 1.75
"""From the first sample that differs to the return of the section takes up to six hours more."""

SEEN: Final = 0.9
"""Share of the sections that the bound asks to be seen in time."""


@dataclass(frozen=True, slots=True)
class SamplingTrade:
    """What samples cost in a section, and how soon they show that it differs.

    Attributes:
        pages: of the section.
        effort: see `sampling.sampling_effort`.
        saved_share: share of the visits that are saved, with the samples paid.
        median_days: by share of the section that differs: until a sample meets one, days.
        in_time: the same: share of the sections that are seen within `IN_TIME_DAYS`.
        least_samples: the same: samples in that time that any sampler needs to see `SEEN` of them.
        most_saved: the same: share of the visits that such a sampler saves at most.
    """

    pages: int
    effort: float
    saved_share: float
    median_days: tuple[float, ...]
    in_time: tuple[float, ...]
    least_samples: tuple[int, ...]
    most_saved: tuple[float, ...]


def sampling_trade(
    draws: int, seed: int, progress: Callable[[str], None] = lambda line: None
) -> list[SamplingTrade]:
    """Return the trade for sections of several sizes, by effort."""
    found = []
    for effort in EFFORTS:
        for pages in SIZES:
            progress(f"sections of {pages} pages")
            differing = [max(1, round(share * pages)) for share in SHARES]
            least = [least_samples(pages, many) for many in differing]
            visits = VISITS_PER_DAY * pages * IN_TIME_DAYS
            days = [
                [days_until_seen(pages, many, effort, seed + at) for at in range(draws)]
                for many in differing
            ]
            found.append(
                SamplingTrade(
                    pages,
                    effort,
                    1.0 - _sampled_per_day(pages, effort) / (VISITS_PER_DAY * pages),
                    tuple(float(np.median(each)) for each in days),
                    tuple(float(np.mean(np.array(each) <= IN_TIME_DAYS)) for each in days),
                    tuple(least),
                    tuple(max(0.0, 1.0 - many / visits) for many in least),
                )
            )
    return found


def least_samples(pages: int, differing: int) -> int:
    """Return how many samples meet a differing page with the probability `SEEN`.

    >>> least_samples(50, 5), least_samples(1_000, 100), least_samples(10, 1)
    (18, 22, 9)
    """
    missed, count = 1.0, 0
    while missed > 1.0 - SEEN + 1e-12:
        missed *= (pages - differing - count) / (pages - count)
        count += 1
    return count


def _sampled_per_day(pages: int, effort: float) -> float:
    per_day = samples_per_day(VISITS_PER_DAY * pages, effort)
    # The time of one sample, or the longest.
    some = next_sampling([per_day], late_s=0.0, least=1, most=pages, place=0.5)
    return max(per_day, DAY_S / some.interval_s)


def days_until_seen(pages: int, differing: int, effort: float, seed: int) -> float:
    """Return after how many days a sample meets one of the pages that differ since day 0."""
    known = [
        ReplicaPage(at, f"/{at}", Standing.AGREES, compared_at=-2.0 + at / pages)
        for at in range(pages)
    ]
    rng = random.Random(seed)
    chosen = set(rng.sample(range(pages), differing))
    per_day = [samples_per_day(VISITS_PER_DAY * pages, effort)]

    def sampling(now: float) -> tuple[int, float]:
        some = next_sampling(per_day, late_s=0.0, least=1, most=pages, place=now % 1.0)
        return some.counts[0], some.interval_s / DAY_S

    now = rng.random() * sampling(0.5)[1]
    while True:
        count, interval_days = sampling(now)
        for page_id in pages_to_sample(known, count, seed + int(now * 1e6)):
            if page_id in chosen:
                return now
            known[page_id] = known[page_id]._replace(compared_at=now)
        now += interval_days


def as_markdown(found: Sequence[SamplingTrade]) -> str:
    """Return the trade as a table."""
    shares = [f"{share:.0%}" for share in SHARES]
    lines = [
        f"| pages | effort | saved | median days, {', '.join(shares)} differ |"
        f" seen within {IN_TIME_DAYS:g} days | at most saved to see {SEEN:g} of them |",
        "|---|---|---|---|---|---|",
    ]
    for one in found:
        days = " / ".join(f"{day:.1f}" for day in one.median_days)
        in_time = " / ".join(f"{share:.2f}" for share in one.in_time)
        most = " / ".join(f"{share:.2f}" for share in one.most_saved)
        lines.append(
            f"| {one.pages:,} | {one.effort:g} | {one.saved_share:.2f} | {days} | {in_time} |"
            f" {most} |"
        )
    return "\n".join(lines)
