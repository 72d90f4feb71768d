"""Which pages are fetched a second time one host delay later, to learn their noise.

Pairs are few: the first pages of each host, and about as many with noise that those did not show;
then pages that changed at 3, 12, 48 … visits in a row, and one changed visit in 64. Where an edit
may lie between the two, they are fetched a third time: an edit stays as it is. Where the visits are
nearly as close as a pair, it proves little more than they do.
"""

from __future__ import annotations

from zlib import crc32

from crawld.store.changes.volatile import Template
from crawld.store.frontier.page import PageRecord

FIRST_STREAK, STREAK_FACTOR = 3, 4
SAMPLE_ONE_IN = 64

PAIR_S = 60.0
"""Two fetches at most this (or four host delays) apart are a pair."""

PROMPT_S = 30.0
"""Hardly anybody edits between two fetches at most this apart: one difference proves noise."""

CERTAIN_S = 4.0
"""Where they are further apart, a third fetch tells whether an edit lies between them."""

CLOSE_DELAYS, CLOSE_PROOF = 16, 4
"""A page that changed within fewer host delays may well be edited within one: only what differed at
so many fetches in a row is noise then."""

UNPROVEN_FACTOR = 2
"""Pages of a host that are fetched twice: its first ones, and as many that show other noise."""


def wants_pair(
    page: PageRecord,
    template: Template,
    *,
    streak: int,
    confirm_pages: int,
    is_unproven: bool = False,
) -> bool:
    """Whether a page just found changed should be fetched again at once.

    Args:
        template: noise rules of its host, and how many first pages were fetched twice.
        streak: visits in a row that found it changed, including this one; 0 at its first copy.
        confirm_pages: maximum number of first pages per host to fetch twice; 0: no page at all.
        is_unproven: see `BodyComparison`.
    """
    if not confirm_pages:
        return False
    if page.version_id is None:
        return template.confirmations < confirm_pages
    if is_unproven and template.confirmations < UNPROVEN_FACTOR * confirm_pages:
        return True
    while streak > FIRST_STREAK and streak % STREAK_FACTOR == 0:
        streak //= STREAK_FACTOR
    return streak == FIRST_STREAK or _chance(page) == 0


def _chance(page: PageRecord) -> int:
    return crc32(f"{page.visit_count} {page.page_id}".encode()) % SAMPLE_ONE_IN


def proof_of_pair(page: PageRecord, now: float, delay_s: float, *, least: int = 1) -> int:
    """Return how many differences in a row prove noise if a page is fetched again now.

    0: the last visit is no pair with this one.

    Args:
        least: at least so many, if it is one.
    """
    before = page.last_visit_at
    if before is None or not 0.0 <= now - before <= max(PAIR_S, 4.0 * delay_s):
        return 0
    return max(least, 1 if now - before <= PROMPT_S else 2)


def least_proof(page: PageRecord, at: float, delay_s: float) -> int:
    """Return how many differences in a row prove noise at least if a page is fetched again at once.

    Args:
        page: the page before the visit that found it changed.
        at: time of that visit.
        delay_s: delay of its host.
    """
    before = page.last_visit_at
    return CLOSE_PROOF if before is not None and at - before < CLOSE_DELAYS * delay_s else 1


def is_certain(page: PageRecord, now: float) -> bool:
    """Whether no edit lies between the last visit, which was one of a pair, and one now."""
    return page.last_visit_at is not None and now - page.last_visit_at <= CERTAIN_S
