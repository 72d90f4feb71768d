"""Plans how often to poll a hint source, since polls cost requests that visits could use.

A poll every T seconds costs c/T of the host's slots and adds T/2 to the source's mean lag.
Freshness as a function of T (`forecast.py`) has one maximum between polls that displace visits and
polls that come too late; golden-section search on log T finds it. If even the maximum is below the
freshness without the source, the source is not polled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from crawld.core.change.reliability import Reliability
from crawld.core.revisit.forecast import HintQuality, SurvivalCurves
from crawld.core.units import DAY_S

SHARE_MOST: Final = 0.5
"""Polls never take more than this share of the slots."""

INTERVAL_MOST_S: Final = 7 * DAY_S
GAIN_LEAST: Final = 1e-4
"""A source that adds less freshness than this is not polled."""

_TRUST_LEAST = 0.01
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_WIDTH = 0.05


@dataclass(frozen=True, slots=True)
class PollPlan:
    """The best way to poll a source.

    Attributes:
        interval_s: seconds between polls; None: do not poll it, it gains nothing.
        freshness: expected with the source. without: expected without it.
    """

    interval_s: float | None
    freshness: float
    without: float

    @property
    def gain(self) -> float:
        """Freshness that the source adds to the host's pages."""
        return self.freshness - self.without


def hint_quality(source: Reliability, *, interval_s: float = 0.0) -> HintQuality:
    """Return the quality of a source's hints, polled at an interval (0: pushed)."""
    return HintQuality(
        source.lag_s() + 0.5 * interval_s, source.missed_share, max(source.trust, _TRUST_LEAST)
    )


def combine_quality(one: HintQuality, other: HintQuality | None) -> HintQuality:
    """Return the quality of the hints of two sources that miss changes independently."""
    if other is None:
        return one
    first_share, second_share = 1.0 - one.missed_share, 1.0 - other.missed_share
    if first_share + second_share <= 0.0:
        return one
    # A change reported by both is known from the faster one.
    fast, slow = sorted((one, other), key=lambda source: source.lag_s)
    first = 1.0 - fast.missed_share
    second = fast.missed_share * (1.0 - slow.missed_share)
    return HintQuality(
        (first * fast.lag_s + second * slow.lag_s) / (first + second),
        one.missed_share * other.missed_share,
        (first_share * one.trust + second_share * other.trust) / (first_share + second_share),
    )


def plan_polls(
    pages: SurvivalCurves,
    slots_per_s: float,
    source: HintQuality,
    *,
    requests: float = 1.0,
    covered: int | None = None,
    beside: HintQuality | None = None,
    least_s: float = 0.0,
) -> PollPlan:
    """Return how often to poll a source.

    Args:
        pages: the pages it covers, or a fair sample of them (200 are enough).
        slots_per_s: requests per second the host permits for these pages, > 0.
        source: quality of its hints without polling (`hint_quality`).
        requests: requests per poll.
        covered: number of pages it covers; None: as many as `pages`.
        beside: quality of the hints from other sources.
    """
    scale = len(pages) / max(covered or len(pages), 1)

    def freshness_at(interval_s: float) -> float:
        quality = HintQuality(source.lag_s + 0.5 * interval_s, source.missed_share, source.trust)
        left = slots_per_s - requests / interval_s
        return pages.forecast(left * scale, combine_quality(quality, beside)).freshness

    without = pages.forecast(slots_per_s * scale, beside).freshness if len(pages) else 1.0
    nothing = PollPlan(None, without, without)
    shortest = max(requests / (SHARE_MOST * slots_per_s), least_s, 1.0)
    if not len(pages) or source.missed_share >= 1.0 or shortest >= INTERVAL_MOST_S:
        return nothing
    low, high = math.log(shortest), math.log(INTERVAL_MOST_S)
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    found = [freshness_at(math.exp(at)) for at in inner]
    while high - low > _WIDTH:
        if found[0] >= found[1]:
            high, inner[1], found[1] = inner[1], inner[0], found[0]
            inner[0] = high - _GOLDEN * (high - low)
            found[0] = freshness_at(math.exp(inner[0]))
        else:
            low, inner[0], found[0] = inner[0], inner[1], found[1]
            inner[1] = low + _GOLDEN * (high - low)
            found[1] = freshness_at(math.exp(inner[1]))
    freshness, at = max(zip(found, inner, strict=True))
    if freshness < without + GAIN_LEAST:
        return nothing
    return PollPlan(math.exp(at), freshness, without)
