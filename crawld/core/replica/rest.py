"""Decides which pages of a replica rest, which are deferred, and which decide a section.

Every page whose twin on the canonical host has a copy is in one of three cases:

1. Compared: the page rests if its own text agreed when last compared, and never if it differed.
2. Never visited: the page is deferred (visited once, last) if a random sample of its section shows
   that at least `AGREEING_SHARE` of it agrees, at the lower 95 % bound for the section's size.
3. In a section where at least `RETURNED_SHARE` of the resting pages began to differ: the page
   returns, and rests again only if it agrees in a later comparison and the section has recovered.

Source: Wald 1945, "Sequential tests of statistical hypotheses".
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from math import ceil, log
from typing import Final

from crawld.core.replica.bound import differing_bound
from crawld.core.replica.sections import (
    SAMPLE_LIMIT,
    ReplicaPage,
    Section,
    SectionState,
    SectionTree,
    Standing,
)
from crawld.core.units import DAY_S

AGREEING_SHARE: Final = 0.95
"""Share of a section that must agree, at the lower bound, before its unvisited pages are deferred.
"""

LEFT_SHARE: Final = 0.90
"""A section stops deferring pages when the bound falls below this share."""

RETURNED_SHARE: Final = 0.10
"""Share of a section's resting pages that begin to differ, at which the whole section returns."""

RECOVERED_SHARE: Final = 0.05
"""A returned section rests again when less than this share of its pages that agreed once differs.
"""

LEAST_RETURNED: Final = 2
"""Pages that must have begun to differ before a section returns."""

ASKED_AT_ONCE: Final = 24
"""Unvisited pages of a section that are requested in one run."""

RETURN_S: Final = 7 * DAY_S
"""How long a section stays returned the first time; each further return takes twice as long."""

MAX_RETURN_S: Final = 56 * DAY_S

MAX_AGREEMENTS: Final = 64
"""Most agreeing comparisons in a row that a page which differed needs before it rests again."""

_DOUBT: Final = 0.05
_SETTLED_SHARE: Final = 0.02
_MISSED: Final = 0.1


@dataclass(frozen=True, slots=True)
class SectionDecision:
    """The decision on a section.

    Attributes:
        state: to be stored.
        has_returned: whether the section returns now; its pages resume.
        ask: unvisited pages to visit next, which may let the others be deferred.
        left_to_ask: how many pages that takes in all if every one agrees; None: they cannot.
        recheck: resting pages to compare at once, because others began to differ.
    """

    section: Section
    state: SectionState
    has_returned: bool
    ask: tuple[int, ...]
    left_to_ask: int | None
    recheck: tuple[int, ...]


def decide_section(section: Section, before: SectionState, now: float) -> SectionDecision:
    """Return the decision on one section.

    Leaving has hysteresis in both directions: a section defers from `AGREEING_SHARE` on until its
    bound falls below `LEFT_SHARE`; it returns at `RETURNED_SHARE` and recovers below
    `RECOVERED_SHARE`, after a time that doubles with each return.
    """
    if before.returned:
        is_out = now < before.returned_at + _stay_s(before.returns) or not _has_recovered(section)
        return SectionDecision(section, replace(before, returned=is_out), False, (), None, ())
    if returns(section):
        state = SectionState(False, True, now, before.returns + 1)
        return SectionDecision(section, state, True, (), None, ())
    limit = LEFT_SHARE if before.deferring else AGREEING_SHARE
    state = replace(before, deferring=section.agreeing_bound() >= limit)
    ask, left = ((), 0) if state.deferring else _pages_to_ask(section)
    return SectionDecision(section, state, False, ask, left, _pages_to_recheck(section))


def _stay_s(returns: int) -> float:
    return min(RETURN_S * 2.0 ** (returns - 1), MAX_RETURN_S)


def page_rests(page: ReplicaPage, state: SectionState) -> bool:
    """Whether a visited page rests: only if its own text agreed when last compared.

    A page that differed before must agree several times in a row, twice as often after each turn.
    """
    return (
        page.standing is Standing.AGREES
        and not state.returned
        and page.compared_at >= state.returned_at
        and page.agreed_in_a_row >= min(2**page.turns, MAX_AGREEMENTS)
    )


def page_is_deferred(page: ReplicaPage, state: SectionState) -> bool:
    """Whether a page that was never visited is deferred; it is still visited once."""
    return page.standing is Standing.UNVISITED and state.deferring


def returns(section: Section) -> bool:
    """Whether so many pages of a section began to differ that the whole section returns.

    Either that share of the pages that agreed once is known to differ, or Wald's test between
    `_SETTLED_SHARE` and `RETURNED_SHARE` shows it on the pages compared since the first began.
    """
    known = section.fallen >= RETURNED_SHARE * (section.agreeing + section.fallen)
    shown = _evidence_of_turning(section) >= log((1.0 - _MISSED) / _DOUBT)
    return (section.fallen >= LEAST_RETURNED and known) or (
        section.turned >= LEAST_RETURNED and shown
    )


def _evidence_of_turning(section: Section) -> float:
    """Return the logarithm of the likelihood ratio: the share that turned is large, or small."""
    more = section.turned * log(RETURNED_SHARE / _SETTLED_SHARE)
    return more + section.stayed * log((1.0 - RETURNED_SHARE) / (1.0 - _SETTLED_SHARE))


def _has_recovered(section: Section) -> bool:
    """Whether few of the pages that agreed once differ; the others were never trusted."""
    return section.fallen < RECOVERED_SHARE * (section.agreeing + section.fallen)


def _pages_to_recheck(section: Section) -> tuple[int, ...]:
    """Return the pages to sample at once: as many as settle the test of `returns` if all agree.

    A section that does differ is found by the same visits, and not one run after the other.
    """
    if not section.turned:
        return ()
    settled = log(_MISSED / (1.0 - _DOUBT))
    each = log((1.0 - _SETTLED_SHARE) / (1.0 - RETURNED_SHARE))
    left = max(0, ceil((_evidence_of_turning(section) - settled) / each))
    return section.to_recheck(left)


def _pages_to_ask(section: Section) -> tuple[tuple[int, ...], int | None]:
    """Return the next unvisited pages of the sample, and how many it takes in all."""
    left = samples_needed(section)
    if left is None:
        return (), None
    known, _ = section.known_sample()
    wanted = [
        page_id
        for page_id, standing in section.drawn()[known : known + left]
        if standing is Standing.UNVISITED
    ]
    return tuple(wanted[:ASKED_AT_ONCE]), len(wanted)


def samples_needed(section: Section) -> int | None:
    """Return how many more pages of the sample must be known to defer the unvisited pages.

    Assumes that all of them agree.

    Returns:
        None: the sample is too small, or so much differs that no sample is enough.
    """
    if not section.unvisited:
        return None
    known, differing = section.known_sample()
    most = min(section.size, SAMPLE_LIMIT)

    def is_enough(sampled: int) -> bool:
        return _is_enough(section, sampled, differing)

    if not is_enough(most):
        return None
    return bisect_left(range(known, most), True, key=is_enough)


def _is_enough(section: Section, sampled: int, differing: int) -> bool:
    most = differing_bound(section.size, sampled, differing)
    unknown = max(1, section.size - section.compared)
    allowed = 1.0 - AGREEING_SHARE
    return (
        section.differing <= most <= allowed * section.size
        and most - section.differing <= allowed * unknown
    )


def decide_sections(tree: SectionTree, now: float) -> list[SectionDecision]:
    """Return the decision on each section of a replica."""
    return [
        decide_section(section, tree.state_of(prefix), now)
        for prefix, section in sorted(tree.sections().items())
    ]
