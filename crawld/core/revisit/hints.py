"""Pages with change hints: beliefs about their last change, and the value of a visit.

A hint may be false and a change may go unreported, so a hinted page is not simply stale. Three
hypotheses are kept, each with the time of the page's last change and a weight:

    known     no hint since the visit is true: the last change is the one known at the visit
    earlier   an earlier hint is true, and none after it
    latest    the latest hint is true

1. A hint of a page whose hazard of change is h (mixed over the hypotheses) is true with probability
   p = h q / (h q + H (1 − q)), where q is the trust in its source and H the mean hazard of all
   pages: false hints hit all pages alike, true ones hit pages that change often.
2. Then `latest` has weight p, `earlier` that of the two former hint hypotheses, `known` the rest.
3. The absence of further hints is evidence too: a hypothesis under which the page changes often
   loses weight while no hint arrives, with its survival to the power 1 − m (m: share of changes
   never reported).
4. The value of a visit is, under `earlier` and `latest`, the time the page will stay unchanged;
   under `known` it is the value without hints, lowered because no hint came.

With trust 1 the page is stale since the latest hint; with trust 0 the hints change nothing.

Values change slowly: with very many pages, one block is valued at a time, and the best page is
found from the maxima of the blocks.

Source: Bayes' rule over a change-point; the form of noisy signals is Busa-Fekete et al. 2025.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.due import Due
from crawld.core.revisit.visit_value import VisitValueTable

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

SAME_CHANGE_S = 60.0
"""Hints closer in time than this report the same change."""

SAME_TIME_S = 1.0
"""Pages due so soon after one another are visited in the order of their values: one poll reported
them."""

BLOCK = 512
"""Pages valued at once; with more hinted pages, the next block follows at a later pick."""

REVALUE_S = 3.0
"""Least time between two valuations; a value grows as 2d + 600 s, about one percent in this
time."""

NEW_PER_PICK = 8 * BLOCK
"""New hinted pages valued in one pick, so that a flood of hints does not delay it."""

STALE_SHARE = 0.03
"""Value per second since the last visit of a changed page: a page that always changes again soon
would otherwise never be visited. On the most active articles of 2007 it costs .001 of freshness."""

_INITIAL_ROOM = 16
"""Initial room for hinted pages."""

_LIVELIER_PER_HINT = 0.2
_LEAST = 1e-12
_NO_VALUE = -math.inf


@dataclass(frozen=True, slots=True)
class Coverage:
    """How completely hints report changes.

    Attributes:
        missed_share: m, share of changes never reported. lag_s: time from a change to its hint.
    """

    missed_share: float = 1.0
    lag_s: float = 0.0

    def silence_factor(self, changed: Floats, changed_before_lag: Floats) -> Floats:
        """Return the factor by which the absence of hints lowers the value of a visit.

        Args:
            changed: probability of a change since the last visit, by the model.
            changed_before_lag: the same, of a change long enough ago to be reported by now.
        """
        reported = (1.0 - self.missed_share) * changed_before_lag
        unhinted = np.maximum(changed - reported, 0.0) / np.maximum(1.0 - reported, _LEAST)
        return np.where(changed > 0.0, unhinted / np.maximum(changed, _LEAST), 1.0)


def silence_factors(
    age: Floats, scale_s: Floats, since_s: Floats, *, coverage: Coverage, table: VisitValueTable
) -> Floats:
    """Return `Coverage.silence_factor` of pages; arguments as in `VisitValueTable.values`."""
    if coverage.missed_share >= 1.0:
        return np.ones_like(since_s)
    changed_before_lag = table.changed(age, scale_s, np.maximum(since_s - coverage.lag_s, 0.0))
    return coverage.silence_factor(table.changed(age, scale_s, since_s), changed_before_lag)


class Belief(NamedTuple):
    """Belief about one hinted page.

    Attributes:
        known_at, earlier_at, latest_at: time of the last change under each hypothesis. known,
        earlier, latest: weights, divided by the survival at their age.
        true_hints: expected number of true hints.
    """

    known_at: float
    earlier_at: float
    latest_at: float
    known: float
    earlier: float
    latest: float
    true_hints: float


def update_belief(
    belief: Belief | None,
    at: float,
    *,
    trust: float,
    known_at: float,
    scale_s: float,
    mean_hazard: float,
    coverage: Coverage,
    table: VisitValueTable,
) -> Belief:
    """Return the belief about a page after one more hint.

    Args:
        belief: before the hint; None if it is the first since the visit.
        at: reported time of the change.
        trust: share of the source's hints that are true, > 0.
        known_at: time of the last change known at the visit; −inf if the page was never visited.
        scale_s: σ of the page.
        mean_hazard: of all pages, 1/s.
    """
    if math.isinf(known_at) and belief is None:
        return Belief(at, at, at, 0.0, 0.0, 1.0, 1.0)
    old = belief or Belief(known_at, known_at, known_at, 1.0, 0.0, 0.0, 0.0)
    if old.latest > 0.0 and abs(at - old.latest_at) <= SAME_CHANGE_S:
        return _confirmed(old, trust)
    reported = 1.0 - coverage.missed_share
    ages = [max(at - then, 0.0) / scale_s for then in old[:3]]
    silence = [max(age - coverage.lag_s / scale_s, 0.0) for age in ages]
    kept = [table.survival(age) ** reported for age in silence]
    weights = [w * s for w, s in zip(old[3:6], kept, strict=True)]
    total = max(sum(weights), _LEAST)
    hazard = sum(w * table.hazard(a) for w, a in zip(weights, ages, strict=True)) / total / scale_s
    true = hazard * trust / (hazard * trust + mean_hazard * (1.0 - trust) + _LEAST * _LEAST)
    known, earlier, latest = (w / total * (1.0 - true) for w in weights)
    # Two earlier hints are kept as one, at the time of the more probable.
    earlier_at = old.latest_at if latest >= earlier else old.earlier_at
    survival = table.survival(max(at - earlier_at - coverage.lag_s, 0.0) / scale_s)
    return Belief(
        old.known_at,
        earlier_at,
        max(at, old.latest_at),
        known / kept[0],
        (earlier + latest) / survival**reported,
        true,
        old.true_hints + true,
    )


def _confirmed(old: Belief, trust: float) -> Belief:
    """Return a belief after a second hint of the same change: false only if both hints are."""
    doubt = 1.0 - trust
    latest = old.latest + trust * (old.known + old.earlier)
    return old._replace(known=old.known * doubt, earlier=old.earlier * doubt, latest=latest)


class HintedPages:
    """The hinted pages of one policy: slots of the policy, beliefs, visit values, due times."""

    def __init__(self) -> None:
        self._place: dict[int, int] = {}
        # Empty before the first hint: there may be ten thousand policies without one.
        self._slot = np.zeros(0, np.int64)
        self._rows = np.zeros((0, len(Belief._fields)))
        self._value = np.zeros(0)
        self._due = np.zeros((0, len(Due._fields)))
        self._block_max = np.full(1, _NO_VALUE)
        self._new: set[int] = set()
        self._next_block = 0
        self._revalued_at = -math.inf

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, slot: int) -> bool:
        return slot in self._place

    def belief(self, slot: int) -> Belief | None:
        """Return the belief about a page; None if it has no hint."""
        place = self._place.get(slot)
        return None if place is None else Belief(*self._rows[place].tolist())

    def put(self, slot: int, belief: Belief, due: Due) -> None:
        """Add a page, or replace its belief; it is valued at the next pick.

        Args:
            due: a page that is held keeps earlier times.
        """
        place = self._place.get(slot)
        if place is None:
            place = self._place[slot] = len(self._place)
            if place == len(self._slot):
                self._extend(max(place, _INITIAL_ROOM))
            self._slot[place], self._due[place] = slot, due
        self._rows[place] = belief
        self._due[place] = np.minimum(due, self._due[place])
        self._new.add(slot)

    def discard(self, slot: int) -> tuple[Belief, Due] | None:
        """Remove a page; return its belief and until when it should be visited."""
        place = self._place.pop(slot, None)
        if place is None:
            return None
        self._new.discard(slot)
        belief, due = Belief(*self._rows[place].tolist()), Due(*self._due[place].tolist())
        end = len(self._place)
        if place != end:
            moved = int(self._slot[end])
            self._slot[place], self._place[moved] = moved, place
            self._rows[place], self._value[place] = self._rows[end], self._value[end]
            self._due[place] = self._due[end]
        self._value[end] = _NO_VALUE
        self._update_block_max({place // BLOCK, end // BLOCK})
        return belief, due

    def _extend(self, more: int) -> None:
        self._slot = np.concatenate([self._slot, np.zeros(more, np.int64)])
        self._rows = np.concatenate([self._rows, np.zeros((more, len(Belief._fields)))])
        self._value = np.concatenate([self._value, np.full(more, _NO_VALUE)])
        self._due = np.concatenate([self._due, np.zeros((more, len(Due._fields)))])
        blocks = -(-len(self._slot) // BLOCK) - len(self._block_max)
        self._block_max = np.concatenate([self._block_max, np.full(blocks, _NO_VALUE)])

    def _update_block_max(self, blocks: set[int]) -> None:
        for block in blocks:
            self._block_max[block] = self._value[block * BLOCK : (block + 1) * BLOCK].max()

    # --- values ---------------------------------------------------------------------------------

    def due(self, at: float) -> Places:
        """Return the places to be valued now: the new ones, and the next block (or all, if few)."""
        count = len(self._place)
        some = [self._place[slot] for slot in islice(self._new, NEW_PER_PICK)]
        new = np.array(some, np.int64)
        if at < self._revalued_at + REVALUE_S and (len(new) == 0 or count > BLOCK):
            return new
        self._revalued_at = at
        if count <= BLOCK:
            return np.arange(count)
        first, self._next_block = self._next_block, self._next_block + BLOCK
        if first >= count:
            first, self._next_block = 0, BLOCK
        return np.union1d(new, np.arange(first, min(first + BLOCK, count)))

    def slots(self, places: Places) -> Places:
        """Return the slots at places."""
        return self._slot[places]

    def beliefs(self, places: Places) -> Floats:
        """Return the beliefs at places, shape (fields of `Belief`, places)."""
        return self._rows[places].T

    def set_values(self, places: Places, value: Floats) -> None:
        """Set the values of pages, seconds, in the order of `places`."""
        self._value[places] = value
        self._new.difference_update(self._slot[places].tolist())
        self._update_block_max(set((places // BLOCK).tolist()))

    def due_at(self, at: float) -> float:
        """Return the earliest time until which a page should be visited; ∞ if no page is hinted."""
        return float(self._due_times(at).min(initial=math.inf))

    def first_due(self, at: float) -> int:
        """Return the page that is due first; of those due with it, the one of highest value."""
        due_at = self._due_times(at)
        places = np.flatnonzero(due_at <= due_at.min() + SAME_TIME_S)
        return int(self._slot[places[self._value[places].argmax()]])

    def _due_times(self, at: float) -> Floats:
        """Return until when each page should be visited, by place."""
        soon_at, due_at, missed_at = self._due[: len(self._place)].T
        late = np.where(due_at < at, missed_at, due_at)
        return np.asarray(np.where(soon_at < at, late, soon_at))

    def best(self) -> tuple[int, float]:
        """Return the slot of highest value and the value; (-1, −inf) if no page is hinted."""
        if not self._place:
            return -1, _NO_VALUE
        block = int(self._block_max.argmax()) * BLOCK
        place = block + int(self._value[block : block + BLOCK].argmax())
        return int(self._slot[place]), float(self._value[place])


def hinted_values(
    beliefs: Floats,
    unhinted: Floats,
    at: float,
    *,
    since_s: Floats,
    scale_s: Floats,
    coverage: Coverage,
    table: VisitValueTable,
) -> Floats:
    """Return the values of visits to hinted pages now, seconds.

    Args:
        beliefs: shape (fields of `Belief`, pages).
        unhinted: value of each if no hint is true, seconds.
        since_s: time since the last visit of each, seconds; 0 if there was none.
        scale_s: σ of each.
    """
    ages = np.maximum(at - beliefs[:3], 0.0)
    silence = np.maximum(ages - coverage.lag_s, 0.0) / scale_s
    weights = beliefs[3:6] * table.survivals(silence) ** (1.0 - coverage.missed_share)
    weights /= np.maximum(weights.sum(axis=0), _LEAST)
    # Each true hint since the last visit is evidence that the page changes more often than it did.
    lively_s = scale_s / np.sqrt(1.0 + _LIVELIER_PER_HINT * beliefs[6])
    stay = table.stale_values(lively_s, ages[1:])
    stay += STALE_SHARE * since_s
    return np.asarray(weights[0] * unhinted + weights[1] * stay[0] + weights[2] * stay[1])
