"""Which pages of some replicas rest, are deferred, visited soon or sampled: read and decided.

The reading functions run on a reader's thread, about `SLICE` pages of any of the replicas at a
time; `core/replica/rest.py` decides. The pages are read twice: once to count the sections, once to
compare each page's state with what the decision on its section says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.core.replica.agreement import PageVerdict
from crawld.core.replica.rest import (
    SectionDecision,
    decide_sections,
    page_is_deferred,
    page_rests,
)
from crawld.core.replica.sampling import next_sampling, pages_to_sample, samples_per_day
from crawld.core.replica.sections import (
    ReplicaPage,
    SectionState,
    SectionTree,
    Standing,
    rank_of,
    section_of,
)
from crawld.core.units import DAY_S
from crawld.core.url import target_of
from crawld.store.replica import due_pages, twin
from crawld.store.replica.due_pages import UnvisitedTwin
from crawld.store.replica.pages import counterpart
from crawld.store.replica.replica import ReplicaRow
from crawld.store.replica.twin import ComparedPage

SLICE: Final = 500
"""Pages read at once, some 10 ms."""

QUERY_PAGES: Final = 5
"""A query takes as long as so many pages."""

LEAST_SAMPLED: Final = 3
"""Pages of the first samples, so that a replica soon has enough results for a lease."""

MAX_DRAWN: Final = 2_000
"""Resting pages from which a sample is drawn."""

COUNTED_DAYS: Final = 30.0
"""Visits of so many days tell how often a page at rest would be visited."""

_STANDINGS: Final = {
    PageVerdict.AGREES: Standing.AGREES,
    PageVerdict.DIFFERS: Standing.DIFFERS,
    PageVerdict.REPEATED: Standing.DIFFERS,
    PageVerdict.UNKNOWN: Standing.UNCOMPARED,
    PageVerdict.DEFERRED: Standing.UNVISITED,
}


class PagePlace(NamedTuple):
    """How far the pages of some replicas were read.

    Attributes:
        plan: index of the replica.
        in_unvisited: whether its pages that were never visited are read, or those compared.
        after: the last page_id read of these.
    """

    plan: int = 0
    in_unvisited: bool = False
    after: int = 0

    def following(self, last: int | None) -> PagePlace:
        """Return the next place; `last` is the last page_id read, None if there are no more."""
        if last is not None:
            return self._replace(after=last)
        return PagePlace(self.plan + 1) if self.in_unvisited else PagePlace(self.plan, True)


START: Final = PagePlace()


class PageSlice(NamedTuple):
    """Some pages of a replica.

    Attributes:
        compared: pages that were compared or deferred; `unvisited`: or pages never visited.
        last: page_id of the last page read; None: there are no more.
        read: pages read, with those left out.
        unlike: page_ids of those compared with an alternate that the canonical host has too.
    """

    compared: list[ComparedPage]
    unvisited: list[UnvisitedTwin]
    last: int | None
    read: int
    unlike: frozenset[int] = frozenset()


@dataclass(slots=True)
class SectionPlan:
    """The sections of one replica, while they are counted and after they were decided.

    Attributes:
        row: the replica. Pages never visited are deferred only if it is one as a whole.
        seed: chooses the pages of a sample.
        effort: by which factor more resting pages are sampled than usually.
        states: of its sections, as stored.
        saved_per_day: visits that the resting pages would get, about.
        resting: pages at rest, those of lowest rank by `seed`.
        twins: pages whose twin has a copy ...
        agreeing: ... that agree ...
        differing: ... and that differ, or seem to and are not decided yet.
        root: whether the root page agrees; None: not compared.
        decisions: by prefix.
        sample: pages to resume, to be compared.
        look_at: when the next sample is due.
        slices: the pages of a small replica as they were counted, by `PagePlace`.
    """

    row: ReplicaRow
    now: float
    seed: int
    effort: float
    states: dict[str, SectionState] = field(default_factory=dict)
    saved_per_day: float = 0.0
    resting: list[ReplicaPage] = field(default_factory=list)
    twins: int = 0
    agreeing: int = 0
    differing: int = 0
    root: bool | None = None
    decisions: dict[str, SectionDecision] = field(default_factory=dict)
    sample: list[int] = field(default_factory=list)
    look_at: float = 0.0
    slices: dict[tuple[bool, int], PageSlice] = field(default_factory=dict)
    tree: SectionTree = field(init=False)

    def __post_init__(self) -> None:
        self.tree = SectionTree(self.row.server_id, self.now, self.states)
        self.look_at = self.row.look_at

    @property
    def has_recounted(self) -> bool:
        """Whether other counts are stored with the replica."""
        row = self.row
        known = (row.twins, row.agreeing, row.differing, row.root)
        return known != (self.twins, self.agreeing, self.differing, self.root)

    @property
    def has_sample(self) -> bool:
        """Whether pages are to be resumed, or the next sample is due at another time."""
        return bool(self.sample) or self.look_at != self.row.look_at

    def changed_states(self) -> dict[str, SectionState]:
        """Return the states of sections that differ from the stored ones."""
        return {
            prefix: one.state
            for prefix, one in self.decisions.items()
            if one.state != self.tree.state_of(prefix)
        }

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
        if page.target == "/":
            self.root = self._root_now(page.standing)

    def _root_now(self, standing: Standing) -> bool | None:
        """Return whether the root page agrees; as last known while it waits for its twin."""
        if standing is Standing.UNCOMPARED:
            return None if self.row.root is None else bool(self.row.root)
        return None if standing is Standing.UNVISITED else standing is Standing.AGREES

    def decide(self) -> None:
        """Decide all sections, after all pages were counted."""
        found = decide_sections(self.tree, self.now)
        if self.row.status != "pruned":
            found = [
                replace(one, state=replace(one.state, deferring=False), ask=()) for one in found
            ]
        self.decisions = {one.section.prefix: one for one in found}

    def choose(self, most: int, longest_s: float) -> None:
        """Choose the next sample, and the pages that decide whether a section returns.

        Args:
            most: largest number of pages of a sample.
            longest_s: longest time until the next.
        """
        chosen = [page_id for one in self.decisions.values() for page_id in one.recheck]
        if self.row.look_at <= self.now:
            sections = self._resting_sections()
            each = self.saved_per_day / max(1, len(self.resting))
            sampling = next_sampling(
                [samples_per_day(each * len(pages), self.effort) for pages in sections],
                late_s=self.now - self.row.look_at,
                least=LEAST_SAMPLED if self.row.sampled < LEAST_SAMPLED else 1,
                most=most,
                place=self.seed / 2.0**63,
            )
            for pages, count in zip(sections, sampling.counts, strict=True):
                chosen += pages_to_sample(pages, count, self.seed)
            self.look_at = self.now + min(sampling.interval_s, longest_s)
        self.sample = list(dict.fromkeys(chosen))

    def _resting_sections(self) -> list[list[ReplicaPage]]:
        """Return the pages at rest by section."""
        found: dict[str, list[ReplicaPage]] = {}
        for page in self.resting:
            found.setdefault(section_of(page.target, self.decisions), []).append(page)
        return [found[prefix] for prefix in sorted(found)]

    def decision_of(self, target: str) -> SectionDecision | None:
        """Return the decision on the section of a page."""
        return self.decisions.get(section_of(target, self.decisions))

    def note_resting(self, page: ReplicaPage, known: ComparedPage) -> None:
        """Note a page at rest."""
        # Its visits are not known for longer, however long ago the page was found.
        days = min(max(1.0, (self.now - known.twin_known_since) / DAY_S), COUNTED_DAYS)
        self.saved_per_day += known.twin_visits / days
        self.resting.append(page)
        if len(self.resting) >= 2 * MAX_DRAWN:
            self.resting.sort(key=lambda one: rank_of(one.page_id, self.seed))
            del self.resting[MAX_DRAWN:]


class PageMove(NamedTuple):
    """A page of a replica whose state is to change; `twin_id` is that of a page to be deferred."""

    server_id: int
    page_id: int
    to: Literal["rest", "defer", "return"]
    twin_id: int = 0


def decide_all(plans: Sequence[SectionPlan], most: int, longest_s: float) -> None:
    """Decide the sections of some replicas and choose their samples; see `SectionPlan.choose`."""
    for plan in plans:
        plan.decide()
        plan.choose(most, longest_s)


def count_pages(
    connection: apsw.Connection, plans: Sequence[SectionPlan], place: PagePlace
) -> PagePlace | None:
    """Count the next pages of some replicas; return the place of the others, None if none is left.

    Pages that were compared or deferred come first, then those that were never visited.
    """
    left = SLICE
    while place.plan < len(plans) and left > 0:
        plan = plans[place.plan]
        if place == PagePlace(place.plan):
            plan.states.update(twin.section_states(connection, plan.row.server_id))
        found = _read(connection, plan, place, left, plan.now - COUNTED_DAYS * DAY_S)
        _count(plan, found)
        if max(plan.row.pages, plan.twins) <= SLICE:
            plan.slices[place[1:]] = found
        left -= found.read + QUERY_PAGES
        place = place.following(found.last)
    return place if place.plan < len(plans) else None


def find_moves(
    connection: apsw.Connection, plans: Sequence[SectionPlan], place: PagePlace
) -> tuple[list[PageMove], PagePlace | None]:
    """Return the pages whose state is to change among the next pages of some replicas.

    Returns:
        Also the place of the others, None if none is left.
    """
    moves: list[PageMove] = []
    left = SLICE
    while place.plan < len(plans) and left > 0:
        plan = plans[place.plan]
        found = plan.slices.pop(place[1:], None)
        if found is None:
            found = _read(connection, plan, place, left, plan.now)
        moves += _moves(plan, found)
        left -= found.read + QUERY_PAGES
        place = place.following(found.last)
    return moves, place if place.plan < len(plans) else None


def _read(
    connection: apsw.Connection, plan: SectionPlan, place: PagePlace, limit: int, since: float
) -> PageSlice:
    """Read the next pages of a replica; visits of their twins are counted since a time."""
    row = plan.row
    pair = (row.server_id, row.canonical_id)
    if place.in_unvisited:
        unvisited, last = due_pages.unvisited(connection, *pair, place.after, limit)
        return PageSlice([], unvisited, last, len(unvisited) if last is None else limit)
    compared = twin.compared_pages(connection, *pair, place.after, limit, since=since)
    last = compared[-1].page_id if len(compared) == limit else None
    unlike = frozenset(
        known.page_id
        for known in compared
        if known.elsewhere and counterpart(connection, row.canonical_id, known.url)
    )
    return PageSlice(compared, [], last, len(compared), unlike)


def _count(plan: SectionPlan, some: PageSlice) -> None:
    for known in some.compared:
        if not known.twin_shown:
            continue
        page = _page_of(known)
        if not known.elsewhere:
            plan.add(page)
        elif known.page_id in some.unlike:
            # It rests under another host, and does not agree with the canonical one.
            plan.add(page._replace(standing=Standing.DIFFERS))
        if known.state is PageState.SUSPENDED and known.verdict is PageVerdict.AGREES:
            plan.note_resting(page, known)
    for unvisited in some.unvisited:
        plan.add(_unvisited(unvisited))


def _moves(plan: SectionPlan, some: PageSlice) -> list[PageMove]:
    server_id = plan.row.server_id
    moves = []
    for known in some.compared:
        page = _page_of(known)
        found = plan.decision_of(page.target)
        rests = (
            known.twin_shown
            and found is not None
            and not known.is_released
            and (page_rests(page, found.state) or page_is_deferred(page, found.state))
        )
        if known.state is PageState.SUSPENDED and not rests:
            moves.append(PageMove(server_id, known.page_id, "return"))
        elif known.state is PageState.VISITED and rests and known.is_current:
            moves.append(PageMove(server_id, known.page_id, "rest"))
    for unvisited in some.unvisited:
        found = plan.decision_of(unvisited.target)
        if found is not None and page_is_deferred(_unvisited(unvisited), found.state):
            moves.append(PageMove(server_id, unvisited.page_id, "defer", unvisited.twin_id))
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
