"""How many copies that begin to differ any sampler can see in time, by what it may cost.

The sections are those of the copies that begin to differ in the web of look-alikes, of which a
tenth or more does. Which of its pages differ nobody knows before: so of `N` pages at rest of which
`D` differ, `n` samples miss all with the probability `C(N - D, n) / C(N, n)`, in whatever order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, floor
from typing import Final, NamedTuple

import numpy as np

from crawld.lab.replica_sampling import IN_TIME_DAYS, VISITS_PER_DAY
from crawld.simweb.lookalike.copies import diverging_copies
from crawld.simweb.lookalike.draft import LookalikeDraft

PER_DAY: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Samples of each section in a day."""

GROUPS: Final = 1_000

_DIFFERING: Final = 0.1


class DivergedSection(NamedTuple):
    """Numbers of the pages of a section, and of those that differ."""

    pages: int
    differing: int


class SampledBound(NamedTuple):
    """Samples of each section in a day, and what they show at most.

    Attributes:
        cost_share: share of the visits of all pages at rest.
        seen: share of the sections of which a differing page is met within `IN_TIME_DAYS`.
    """

    per_day: float
    cost_share: float
    seen: float


def diverging_sections(groups: int, seed: int) -> list[DivergedSection]:
    """Return the sections of copies of which a tenth or more begins to differ."""
    draft = LookalikeDraft(seed, 1.0)
    for _ in range(groups):
        diverging_copies(draft.family(diverging_copies.__name__))
    every = (
        DivergedSection(len(host.pages), int(np.isfinite(host.pages.own_from).sum()))
        for host in draft.hosts
    )
    return [one for one in every if one.differing >= _DIFFERING * one.pages]


def sampled_bound(sections: Sequence[DivergedSection], per_day: float) -> SampledBound:
    """Return what so many samples of each section in a day show at most."""
    visits = sum(VISITS_PER_DAY * one.pages for one in sections)
    samples = sum(min(per_day, VISITS_PER_DAY * one.pages) for one in sections)
    seen = [_seen(one, per_day * IN_TIME_DAYS) for one in sections]
    return SampledBound(per_day, samples / visits, float(np.mean(seen)))


def _seen(section: DivergedSection, samples: float) -> float:
    """Return the probability; a part of a sample is taken with this probability."""
    least = min(floor(samples), section.pages)
    most = min(least + 1, section.pages)
    part = samples - floor(samples)
    return 1.0 - (1.0 - part) * _missed(section, least) - part * _missed(section, most)


def _missed(section: DivergedSection, samples: int) -> float:
    agreeing = section.pages - section.differing
    return comb(agreeing, samples) / comb(section.pages, samples)


def as_markdown(found: Sequence[SampledBound]) -> str:
    """Return the bound as a table."""
    lines = [
        f"| samples of a section in a day | cost | seen within {IN_TIME_DAYS:g} days |",
        "|---|---|---|",
    ]
    lines += [f"| {one.per_day:g} | {one.cost_share:.3f} | {one.seen:.2f} |" for one in found]
    return "\n".join(lines)
