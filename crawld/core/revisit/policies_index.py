"""INDEX: visit the page whose visit is most valuable now; needs no allocation.

The value (`visit_value.py`) is multiplied by the importance. New pages come first, the longest
unchanged before the others; then the page of highest value among the waiting pages
(`index_queue.py`) and the hinted pages (`hints.py`), whose value is how long they will stay fresh.
The policy learns from every visit, also how far it may trust its model (`waiting_share.py`).

Pages that are reported to have changed come before all others, in the order in which they are due:
a reader waits for each of them, so none is passed over for one of higher value. Only when they come
faster than they are visited, their values decide; none waits for ever (`STALE_SHARE`).

Hints lower the value of pages without hints and are weighted by their reliability. Hints of trust 0
change nothing. Pages of which something included changed, such as a template, come after the pages
that changed themselves; `select_affected` selects one of them all the same.

84 bytes a page. Time is a monotonic clock (rule 3 of `policies.py`).

Source: price form of Cho & Garcia-Molina, TODS 2003, as an index (Azar et al., PNAS 2018;
Avrachenkov & Borkar 2015); hints of unknown reliability after Busa-Fekete et al. 2025; the data
structure is ours.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawld.core.change.hawkes import excitement_of, excitements_of
from crawld.core.change.record import Records
from crawld.core.change.site_model import SiteModel, default_site_model
from crawld.core.revisit import hints
from crawld.core.revisit.due import PROMPT_S, Due
from crawld.core.revisit.heap import ABSENT
from crawld.core.revisit.hint_belief import (
    Belief,
    Coverage,
    hinted_values,
    silence_factors,
    update_belief,
)
from crawld.core.revisit.index_pages import LONGEST_S, IndexPages
from crawld.core.revisit.index_queue import NEW, IndexQueue
from crawld.core.revisit.policies import MonotonicClock, PageSet, VisitObservation
from crawld.core.revisit.slots import FREE
from crawld.core.revisit.visit_value import (
    ROUND_ROBIN_SHARE,
    page_scale_s,
    value_table,
)
from crawld.core.revisit.waiting_share import WaitingShare

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]


MAX_URGENCY = 4.0
"""A page of importance 4 is due after a quarter of the time, one of importance 1/4 after four times
of it."""

OVERDUE_S = 120.0
"""When a page is overdue for so long, the host cannot keep up: fresh time is all that counts."""

MOST_MISSED = 0.5
"""Where more of the changes go unreported, no report does not tell that a page is unchanged."""

_NO_PAGES = hints.HintedPages()
"""The hinted pages of policies that never had one; there may be ten thousand."""

_LEAST_ROOM = 16
"""Room for pages added one by one: most hosts have few pages."""


class IndexPolicy(PageSet):
    """Selects the page of highest visit value.

    Args:
        model: models of the site; None: every page starts as a slow Poisson page.
    """

    def __init__(self, model: SiteModel | None = None) -> None:
        super().__init__()
        self._model = model or default_site_model()
        self._weights: list[float] = self._model.scale.weights.tolist()
        self._coverage = Coverage()
        self._waiting = WaitingShare()
        self._pages = IndexPages(value_table(self._model.scale))
        self._queue = IndexQueue(self._pages)
        self._hinted = self._indirect = _NO_PAGES
        self._in_flight: dict[int, tuple[hints.HintedPages, Belief, Due] | None] = {}
        self._late_hints: dict[int, tuple[float, float, bool, Due]] = {}
        self._clock = MonotonicClock()
        self._new_count = 0.0
        self._selected = FREE

    # --- pages and models -----------------------------------------------------------------------

    @property
    def site_model(self) -> SiteModel:
        """The models of the site."""
        return self._model

    def set_site_model(self, model: SiteModel) -> None:
        """Set refitted models of the site; the scale of each page is updated at its next visit.

        Policies that share the same object share its tables (1.5 MB).
        """
        self._model = model
        self._weights = model.scale.weights.tolist()
        self._pages.table = value_table(model.scale, self._share())
        self._queue.redraw()

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Add a page; a page that was never visited goes before all visited pages."""
        if page in self._slots:
            return
        slot = self._slots.add(page)
        if slot >= len(self._pages):
            self._pages.extend(max(_LEAST_ROOM, len(self._pages) // 8))
        if last_visit_at is None:
            self._new_count += 1
            self._pages.add(slot, -math.inf, weight)
            self._queue.push_new(slot, NEW + self._new_count)
        else:
            self._pages.add(slot, last_visit_at + self._clock.lead, weight)
            self._queue.push(slot)

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Add many pages."""
        slots = self._slots.load(pages)
        first, count = int(slots[0]) if len(slots) else 0, len(slots)
        self._pages.extend(first + count - len(self._pages))
        seen = np.full(count, np.nan) if last_visit_at is None else np.asarray(last_visit_at, float)
        never = np.isnan(seen)
        weight = 1.0 if weights is None else np.asarray(weights, float)
        self._pages.add_many(first, np.where(never, -np.inf, seen + self._clock.lead), weight)
        keys = NEW + self._new_count + np.arange(count)
        self._new_count += count
        self._queue.load(slots, np.where(never, keys, np.nan))

    def set_models(self, pages: ArrayLike, records: Records) -> None:
        """Set the change models of pages, after a load or a refit; ignore unknown pages.

        Pages never visited whose history is known come first, longest unchanged first.
        """
        slots = self._slots.find_many(pages)
        held = slots != FREE
        slots, records = slots[held], records[held]
        if len(slots) == 0:
            return
        scale = self._model.scale.scale_s(records)
        unchanged = np.maximum(records["last_visit_at"] - records["last_change_at"], 0.0)
        self._pages.set_models(slots, unchanged / scale, scale)
        changed_at = np.where(records["change_known"], records["last_change_at"], -np.inf)
        self._pages.set_changes(
            slots, changed_at + self._clock.lead, excitements_of(records), records["rate"]
        )
        never = np.isneginf(self._pages.visited_at[slots])
        # The page unchanged longest will stay unchanged longest. On a manual's changes of 2019 to
        # 2021, where a year is too short for one visit to every page, this was better than any
        # scale.
        calm = np.minimum(self._pages.weight[slots] * unchanged, LONGEST_S)
        self._queue.reorder(slots, np.where(never, NEW - calm, np.nan))

    def remove(self, page: int) -> None:
        """Remove a page."""
        slot = self._slots.remove(page)
        if slot != FREE:
            self._withdraw(slot)
            self._pages.remove(slot)
            self._in_flight.pop(slot, None)
            self._late_hints.pop(slot, None)

    def set_weight(self, page: int, weight: float) -> None:
        """Set the importance of a page; its value is updated at the next pick."""
        slot = self._slots.find(page)
        if slot == FREE:
            return
        self._pages.weight[slot] = weight
        if slot in self._queue and not self._queue.is_new(slot):
            self._queue.recheck(slot, self._clock.now)

    # --- selection ------------------------------------------------------------------------------

    def select(self, now: float) -> int | None:
        """Return the page of highest visit value."""
        at = self._clock.advance(now)
        slot = self._queue.first_new()
        if slot == ABSENT:
            slot = self._most_valuable(at)
        if slot == ABSENT:
            return None
        self._in_flight[slot] = self._withdraw(slot)
        self._selected = slot
        return self._slots.page_at[slot]

    def select_affected(self, now: float) -> int | None:
        """Return the page that is due first among those with indirect hints only, or None."""
        at = self._clock.advance(now)
        if not len(self._indirect):
            return None
        self._revalue_hinted(self._indirect, at)
        slot = self._indirect.first_due(at)
        self._in_flight[slot] = self._withdraw(slot)
        return self._slots.page_at[slot]

    def _most_valuable(self, at: float) -> int:
        slot, value = self._queue.best(at)
        if self._hinted is self._indirect:
            return slot  # no page was ever hinted
        group = self._hinted or self._indirect
        if not group:
            return slot
        self._revalue_hinted(group, at)
        due_at = group.due_at(at)
        keeps_up = group is self._indirect or at - due_at <= OVERDUE_S
        if due_at < math.inf and keeps_up:
            return group.first_due(at)
        hinted, hinted_value = group.best()
        if slot >= 0:
            value *= float(self._silence_factors(np.array([slot]), at)[0])
        return slot if hinted_value < value else hinted

    def visit_values(self, pages: ArrayLike, now: float) -> Floats:
        """Return the value of a visit to each of some held pages now, without hints, seconds."""
        return self._pages.values(self._slots.find_many(pages), now + self._clock.lead)

    def _silence_factors(self, slots: Slots, at: float) -> Floats:
        """Return the factors by which the absence of hints lowers the values of pages."""
        age, scale = self._pages.ages_and_scales(slots)
        since, table = self._pages.since(slots, at), self._pages.table
        return silence_factors(age, scale, since, coverage=self._coverage, table=table)

    # --- visits ---------------------------------------------------------------------------------

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Update the page's model; the page waits until its value reaches the level again."""
        slot, in_flight = self._selected, self._in_flight
        if slot not in in_flight or self._slots.page_at[slot] != page:
            slot = self._slots.find(page)
        if slot == FREE:
            return
        at = self._clock.visit_time(now)
        if slot in in_flight:
            del in_flight[slot]
        else:
            self._withdraw(slot)
        self._learn(slot, at, observation)
        self._queue.push_visited(slot, at)
        if slot in self._late_hints:
            hinted_at, trust, indirect, due = self._late_hints.pop(slot)
            self.record_hint(page, hinted_at, trust=trust, indirect=indirect, due=due)

    def _learn(self, slot: int, at: float, observation: VisitObservation | None) -> None:
        """Update the page's model, and what all visits tell."""
        pages = self._pages
        visited_at, age, scale = pages.state(slot)
        since = at - visited_at if at > visited_at else 0.0
        was_visited = since < math.inf
        if observation is not None and was_visited and since > 0.0:
            self._learn_waiting(since, (visited_at, age, scale), observation)
        lead = self._clock.lead
        if observation is None:
            unchanged = age * scale + since if was_visited else 0.0
        elif (model := observation.model) is not None:
            scale = page_scale_s(self._weights, model)
            unchanged = model.known_age_s()
            changed_at = model.last_change_at + lead if model.change_known else -math.inf
            pages.set_change(slot, changed_at, excitement_of(model), model.rate)
        elif observation.changed_at:
            unchanged = max(at - lead - observation.changed_at[-1], 0.0)
            pages.add_changes(slot, [changed + lead for changed in observation.changed_at])
        elif observation.changed or not was_visited:
            unchanged = 0.5 * since if was_visited else 0.0
            pages.add_changes(slot, (at - unchanged,))
        else:
            unchanged = age * scale + since
        pages.set_visit(slot, at, unchanged / scale, scale)

    def _learn_waiting(
        self, since: float, state: tuple[float, float, float], observation: VisitObservation
    ) -> None:
        """Compare what a visit found with what the model said.

        Args:
            since: time since the visit before, > 0, seconds.
            state: of the page before the visit: the last visit, age and scale, as in `_pages`.
        """
        if self._coverage.missed_share < 1.0:
            return  # where hints come, pages without one have hardly changed
        visited_at, age, scale = state
        found = 0.0
        if observation.changed:
            found = 0.5
            if observation.changed_at:
                fresh = max(observation.changed_at[0] + self._clock.lead - visited_at, 0.0)
                found = min(fresh / since, 1.0)
        if self._waiting.record(self._pages.table.expected_share(age, scale, since), found):
            self._weigh_waiting()

    def _weigh_waiting(self) -> None:
        """Let waiting count as learned."""
        if (share := self._share()) != self._pages.table.share:
            self._pages.table = value_table(self._model.scale, share)
            self._queue.revalue()

    def _share(self) -> float:
        """Return the value of waiting; where hints come, they tell what the model does not."""
        hinted = self._coverage.missed_share < 1.0
        return ROUND_ROBIN_SHARE if hinted else self._waiting.share

    def release(self, page: int) -> None:
        """Put a selected page back in its place."""
        slot = self._slots.find(page)
        if slot == FREE or slot not in self._in_flight:
            return
        hinted = self._in_flight.pop(slot)
        if hinted is not None:
            group, belief, due = hinted
            group.put(slot, belief, due)
        elif math.isinf(self._pages.state(slot)[0]):
            self._queue.restore_new(slot)
        else:
            self._queue.recheck(slot, self._clock.now)

    # --- hints ----------------------------------------------------------------------------------

    def set_coverage(self, missed_share: float, lag_s: float) -> None:
        """Set how completely all hint sources together report the changes of these pages.

        Args:
            missed_share: share of changes that no source reports, in [0, 1]; 1 = no source.
            lag_s: time from a change to its hint, including polls, seconds; the absence of hints
                within this time is no evidence.
        """
        if missed_share >= 1.0 > self._coverage.missed_share:
            self._forget_hints()
        self._coverage = Coverage(missed_share, lag_s)
        self._weigh_waiting()

    def _forget_hints(self) -> None:
        """Let hinted pages wait among the others: no source is trusted any more."""
        for group in (self._hinted, self._indirect):
            for slot in group.slots(np.arange(len(group))).tolist():
                group.discard(slot)
                if math.isinf(self._pages.state(slot)[0]):
                    self._queue.restore_new(slot)
                else:
                    self._queue.push(slot)

    def known_until(self, page: int, visited_at: float, now: float) -> float:
        """Return until when all changes of a page are known, given those that its visits found.

        That is the last visit. Where sources report most changes, a page without a report has not
        changed since: to count it from its visit, which a change caused, would hide all calm.
        """
        slot = self._slots.find(page)
        if self._coverage.missed_share > MOST_MISSED or slot == FREE:
            return visited_at
        if slot in self._hinted or slot in self._indirect or slot in self._late_hints:
            return visited_at
        return max(visited_at, now - self._coverage.lag_s)

    def due_at(self, now: float) -> float:
        """Return until when the page that is due first should be visited; ∞ if none changed."""
        if not len(self._hinted):
            return math.inf
        lead = self._clock.lead
        return self._hinted.due_at(now + lead) - lead

    def affected_due_at(self, now: float) -> float:
        """Return until when the first page with an indirect hint only should be visited, or ∞."""
        lead = self._clock.lead
        return self._indirect.due_at(now + lead) - lead

    def due_at_of(self, page: int) -> float:
        """Return until when a page in flight should be visited; ∞ if it was not reported."""
        held = self._in_flight.get(self._slots.find(page))
        if held is None or held[0] is not self._hinted:
            return math.inf
        return held[2].at - self._clock.lead

    @property
    def hint_counts(self) -> tuple[int, int]:
        """Waiting pages with a hint that they changed themselves, and with an indirect one only."""
        return len(self._hinted), len(self._indirect)

    def record_hint(
        self,
        page: int,
        at: float,
        *,
        trust: float = 1.0,
        indirect: bool = False,
        due: Due | None = None,
    ) -> None:
        """Record a change reported after the last visit; older reports are dropped.

        For a page in flight, the hint takes effect after the visit if it reports a later change. A
        page never visited and of unknown history is new and comes first anyway.
        """
        slot = self._slots.find(page)
        if slot == FREE or trust <= 0.0:
            return
        changed_at = at + self._clock.lead
        visited_at, age, _ = self._pages.state(slot)
        if changed_at <= visited_at:
            return
        if due is None:
            due = Due.by(math.inf) if indirect else Due.of_edit(at, at)
        elif indirect and slot in self._hinted:
            due = Due.by(math.inf)  # that of its own edit counts, as if this had come before it
        if slot in self._in_flight:
            late = (at, trust, indirect, due)
            known = self._late_hints.get(slot, late)
            joined = due.joined(known[3])
            self._late_hints[slot] = (*max(late[:2], known[:2]), indirect and known[2], joined)
            return
        if math.isinf(visited_at) and age == 0.0:
            return
        belief = update_belief(
            self._belief(slot),
            changed_at,
            trust=trust,
            known=self._pages.known_change(slot),
            is_stale=math.isinf(visited_at),
            mean_hazard=self._pages.rates / len(self._slots),
            coverage=self._coverage,
            model=self._model.hawkes,
        )
        group = self._group(is_indirect=indirect and slot not in self._hinted)
        if slot not in group:
            self._withdraw(slot)
        group.put(slot, belief, due.later(self._clock.lead + self._defer_s(slot)))

    def _group(self, *, is_indirect: bool) -> hints.HintedPages:
        """Return the hinted pages that a hint belongs to; made at the first."""
        if is_indirect:
            if self._indirect is _NO_PAGES:
                self._indirect = hints.HintedPages()
            return self._indirect
        if self._hinted is _NO_PAGES:
            self._hinted = hints.HintedPages()
        return self._hinted

    def _defer_s(self, slot: int) -> float:
        """Return how much later a page of small importance is due; negative: sooner."""
        urgency = min(max(float(self._pages.weight[slot]), 1.0 / MAX_URGENCY), MAX_URGENCY)
        return PROMPT_S * (1.0 / urgency - 1.0)

    def belief(self, page: int) -> Belief | None:
        """Return the belief about a page after its hints; None if it has no hint."""
        return self._belief(self._slots.find(page))

    def _belief(self, slot: int) -> Belief | None:
        return self._hinted.belief(slot) or self._indirect.belief(slot)

    def _revalue_hinted(self, group: hints.HintedPages, at: float) -> None:
        """Update the values of the hinted pages of a group that are due."""
        places = group.due(at)
        if not len(places):
            return
        slots = group.slots(places)
        age, scale = self._pages.ages_and_scales(slots)
        # A page never visited is stale under every reading.
        since = np.minimum(self._pages.since(slots, at), LONGEST_S)
        unhinted = self._pages.table.values(age, scale, since) * self._silence_factors(slots, at)
        value = hinted_values(
            group.beliefs(places),
            unhinted,
            at,
            known_at=self._pages.changed_at[slots],
            known_excitement=self._pages.excitement[slots].T.astype(np.float64),
            coverage=self._coverage,
            model=self._model.hawkes,
        )
        # A page never visited waits in the order of the values alone.
        waited = np.where(np.isneginf(self._pages.visited_at[slots]), 0.0, since)
        value += hints.STALE_SHARE * waited
        group.set_values(places, self._pages.weight[slots] * value)

    def _withdraw(self, slot: int) -> tuple[hints.HintedPages, Belief, Due] | None:
        """Remove a page from the queue or the hinted pages; return its place in these, if any."""
        self._queue.remove(slot)
        if self._hinted is not self._indirect:
            for group in (self._hinted, self._indirect):
                if (held := group.discard(slot)) is not None:
                    return group, *held
        return None
