"""Which pages of one replica rest, are deferred, visited soon or sampled: read and decided.

The functions run on a reader's thread, a slice of pages at a time; `core/replica/rest.py` decides.
The pages are read twice: once to count the sections, once to compare each page's state with what
the decision on its section says.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import apsw

from crawld.core.page import PageState
from crawld.core.replica.agreement import PageVerdict
from crawld.core.replica.rest import (
    SectionDecision,
    decide_sections,
    page_is_deferred,
    page_rests,
)
from crawld.core.replica.sections import (
    ReplicaPage,
    SectionTree,
    Standing,
    rank_of,
    section_of,
)
from crawld.core.url import target_of
from crawld.store.replica import due_pages, twin
from crawld.store.replica.due_pages import UnvisitedTwin
from crawld.store.replica.twin import ComparedPage

SLICE: Final = 500
"""Pages read at once, some 10 ms."""

MAX_DRAWN: Final = 2_000
"""Resting pages from which a sample is drawn."""

COUNTED_DAYS: Final = 30.0
"""Visits of so many days tell how often a page at rest would be visited."""

_DAY_S: Final = 86_400.0

_STANDINGS: Final = {
    PageVerdict.AGREES: Standing.AGREES,
    PageVerdict.DIFFERS: Standing.DIFFERS,
    PageVerdict.REPEATED: Standing.DIFFERS,
    PageVerdict.UNKNOWN: Standing.UNCOMPARED,
    PageVerdict.DEFERRED: Standing.UNVISITED,
}


@dataclass(slots=True)
class SectionPlan:
    """The sections of one replica, while they are counted and after they were decided.

    Attributes:
        may_defer: whether pages never visited are deferred: the host is a replica as a whole.
        seed: chooses the pages of a sample.
        saved_per_day: visits that the resting pages would get, about.
        resting: pages at rest, those of lowest rank by `seed`.
        twins: pages whose twin has a copy ...
        agreeing: ... that agree ...
        differing: ... and that differ, or seem to and are not decided yet.
        root: whether the root page agrees; None: not compared.
        decisions: by prefix.
    """

    host_id: int
    canonical_id: int
    may_defer: bool
    now: float
    seed: int
    tree: SectionTree
    saved_per_day: float = 0.0
    resting: list[ReplicaPage] = field(default_factory=list)
    twins: int = 0
    agreeing: int = 0
    differing: int = 0
    root: bool | None = None
    decisions: dict[str, SectionDecision] = field(default_factory=dict)

    def add(self, page: ReplicaPage) -> None:
        """Count a page."""
        self.tree.add(page)
        self.twins += 1
        self.agreeing += page.standing is Standing.AGREES
        # Pages that are not decided yet differ more often than others: without them the rest would
        # be no random sample.
        self.differing += page.standing is Standing.DIFFERS or (
            page.standing is Standing.UNCOMPARED and not page.agreed_in_a_row
        )
        if page.target == "/" and page.standing in (Standing.AGREES, Standing.DIFFERS):
            self.root = page.standing is Standing.AGREES

    def decide(self) -> None:
        """Decide all sections, after all pages were counted."""
        found = decide_sections(self.tree, self.now)
        if not self.may_defer:
            found = [
                replace(one, state=replace(one.state, deferring=False), ask=()) for one in found
            ]
        self.decisions = {one.section.prefix: one for one in found}

    def decision_of(self, target: str) -> SectionDecision | None:
        """Return the decision on the section of a page."""
        return self.decisions.get(section_of(target, self.decisions))

    def note_resting(self, page: ReplicaPage, known: ComparedPage) -> None:
        """Note a page at rest."""
        days = min(max(1.0, (self.now - known.twin_found_at) / _DAY_S), COUNTED_DAYS)
        self.saved_per_day += known.twin_visits / days
        self.resting.append(page)
        if len(self.resting) >= 2 * MAX_DRAWN:
            self.resting.sort(key=lambda one: rank_of(one.page_id, self.seed))
            del self.resting[MAX_DRAWN:]


@dataclass(slots=True)
class PageMoves:
    """Pages of a slice whose state is to change.

    Attributes:
        resume: suspended pages.
        suspend: visited pages.
        defer: pages never visited.
        after: key of the last page read; None: these were the last.
    """

    resume: list[int] = field(default_factory=list)
    suspend: list[int] = field(default_factory=list)
    defer: list[UnvisitedTwin] = field(default_factory=list)
    after: int | None = None


def count_compared(connection: apsw.Connection, plan: SectionPlan, after: int) -> int | None:
    """Count the next pages that were compared or deferred; return `after` for the next call."""
    since = plan.now - COUNTED_DAYS * _DAY_S
    pages = twin.compared_pages(
        connection, plan.host_id, plan.canonical_id, after, SLICE, since=since
    )
    for known in pages:
        if not known.twin_shown:
            continue
        page = _page_of(known)
        plan.add(page)
        if known.state is PageState.SUSPENDED and known.verdict is PageVerdict.AGREES:
            plan.note_resting(page, known)
    return pages[-1].page_id if len(pages) == SLICE else None


def count_unvisited(connection: apsw.Connection, plan: SectionPlan, after: int) -> int | None:
    """Count the next pages that were never visited; return `after` for the next call."""
    pages, last = due_pages.unvisited(connection, plan.host_id, plan.canonical_id, after, SLICE)
    for page in pages:
        plan.add(_unvisited(page))
    return last


def moves_of_compared(connection: apsw.Connection, plan: SectionPlan, after: int) -> PageMoves:
    """Return which of the next pages that were compared or deferred change their state."""
    moves = PageMoves()
    pages = twin.compared_pages(
        connection, plan.host_id, plan.canonical_id, after, SLICE, since=plan.now
    )
    for known in pages:
        page = _page_of(known)
        found = plan.decision_of(page.target)
        rests = (
            known.twin_shown
            and found is not None
            and not known.is_released
            and (page_rests(page, found.state) or page_is_deferred(page, found.state))
        )
        if known.state is PageState.SUSPENDED and not rests:
            moves.resume.append(known.page_id)
        elif known.state is PageState.VISITED and rests and known.is_current:
            moves.suspend.append(known.page_id)
    moves.after = pages[-1].page_id if len(pages) == SLICE else None
    return moves


def moves_of_unvisited(connection: apsw.Connection, plan: SectionPlan, after: int) -> PageMoves:
    """Return which of the next pages that were never visited are deferred."""
    pages, last = due_pages.unvisited(connection, plan.host_id, plan.canonical_id, after, SLICE)
    moves = PageMoves(after=last)
    for page in pages:
        found = plan.decision_of(page.target)
        if found is not None and page_is_deferred(_unvisited(page), found.state):
            moves.defer.append(page)
    return moves


def _page_of(known: ComparedPage) -> ReplicaPage:
    return ReplicaPage(
        known.page_id,
        target_of(known.url),
        _STANDINGS[known.verdict],
        known.compared_at,
        known.agreed,
        known.turns,
        known.turned_at,
        known.twin_changed,
    )


def _unvisited(page: UnvisitedTwin) -> ReplicaPage:
    return ReplicaPage(page.page_id, page.target, Standing.UNVISITED)
