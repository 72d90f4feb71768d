"""Pages of which hints told, and what is believed of their last change.

A hint may be false and a change may stay untold, so that a told page is not simply stale. Three
readings of it are kept, each with the instant of the page's last change and a weight:

    calm     no hint since the visit was true: the last change is the one the visit knew
    before   an earlier hint was true, and none after it
    last     the last hint was true

1. A hint of a page whose hazard of change is h (mixed over the readings) is true with probability
   p = h q / (h q + H (1 − q)), where q is the trust in its source and H the mean hazard of all
   pages: false hints fall on any page alike, true ones on lively pages.
2. Then `last` gets weight p, `before` what the two former hints had, `calm` the rest.
3. Silence speaks too: a reading that says the page is lively loses weight when nothing more is
   told, as its survival to a power 1 − m falls (m: the share of changes nobody tells).
4. A visit is worth, under `before` and `last`, the time the page will stay as it is; under `calm`
   what it would be worth without hints, less what silence says.

With trust 1 the page is stale since the last hint; with trust 0 it is as if nothing was told.

Prices move slowly, so that of very many pages one block is priced at a time, and the best is found
over the maxima of blocks.

Source: Bayes' rule over a change-point; the form of noisy signals is Busa-Fekete et al. 2025.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.visit_value import VisitValueTable

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

SAME_CHANGE_S = 60.0
"""Hints nearer than this tell of the same change."""

BLOCK = 512
"""Pages priced at once: of more told pages one block, and the next one at a later pick."""

PRICED_S = 3.0
"""Prices are taken anew after this at the soonest: one grows as 2d + 600 s, by a hundredth."""

NEW_MOST = 8 * BLOCK
"""Newly told pages priced at once, so that no flood of hints stops a pick for long."""

STALE_SHARE = 0.03
"""Worth of a second since the visit of a page that changed: one that always changes soon again
would never be visited otherwise. On the liveliest articles of 2007 it costs .001 of freshness."""

_FEW = 16
"""Told pages there is room for at first."""

_LIVELIER = 0.2
_LEAST = 1e-12
_NOBODY = -math.inf


@dataclass(frozen=True, slots=True)
class Coverage:
    """How completely hints tell of changes.

    Attributes:
        missed_share: m, share of changes nobody tells. lag_s: time until a change is told.
    """

    missed_share: float = 1.0
    lag_s: float = 0.0

    def silence_factor(self, changed: Floats, changed_before_lag: Floats) -> Floats:
        """Return what silence leaves of the worth of a visit to pages.

        Args:
            changed: probability of a change since the last visit, as the model sees it.
            changed_before_lag: of one so long ago that it would have been told.
        """
        told = (1.0 - self.missed_share) * changed_before_lag
        untold = np.maximum(changed - told, 0.0) / np.maximum(1.0 - told, _LEAST)
        return np.where(changed > 0.0, untold / np.maximum(changed, _LEAST), 1.0)


def silence_factors(
    age: Floats, scale_s: Floats, since_s: Floats, *, coverage: Coverage, table: VisitValueTable
) -> Floats:
    """Return what silence leaves of the worth of pages.

    Args:
        age: time from the last change to the last visit, in scales.
        scale_s: σ, seconds.
        since_s: time since the last visit, ≥ 0, seconds.
        coverage: of the hints.
        table: visit values of the site's scale model.
    """
    if coverage.missed_share >= 1.0:
        return np.ones_like(since_s)
    would_be_told = table.changed(age, scale_s, np.maximum(since_s - coverage.lag_s, 0.0))
    return coverage.silence_factor(table.changed(age, scale_s, since_s), would_be_told)


class Belief(NamedTuple):
    """What is believed of one told page.

    Attributes:
        calm_at, before_at, last_at: instant of the last change under each reading.
        calm, before, last: weights, divided by the survival at their age: silence is in them.
        real: expected number of true hints.
    """

    calm_at: float
    before_at: float
    last_at: float
    calm: float
    before: float
    last: float
    real: float


def update_belief(
    belief: Belief | None,
    at: float,
    *,
    trust: float,
    calm_at: float,
    scale_s: float,
    mean_hazard: float,
    coverage: Coverage,
    table: VisitValueTable,
) -> Belief:
    """Return what is believed of a page after one more hint.

    Args:
        belief: before it; None where nothing was told since the visit.
        at: instant of the change told.
        trust: share of the source's hints that are real, > 0.
        calm_at: instant of the last change the visit knew; −inf where the page was never visited.
        scale_s: σ of the page.
        mean_hazard: of all pages, 1/s.
        coverage: of the hints.
        table: visit values of the site's scale model.
    """
    if math.isinf(calm_at) and belief is None:
        return Belief(at, at, at, 0.0, 0.0, 1.0, 1.0)
    old = belief or Belief(calm_at, calm_at, calm_at, 1.0, 0.0, 0.0, 0.0)
    if old.last > 0.0 and abs(at - old.last_at) <= SAME_CHANGE_S:
        return _confirmed(old, trust)
    told = 1.0 - coverage.missed_share
    ages = [max(at - then, 0.0) / scale_s for then in old[:3]]
    silence = [max(age - coverage.lag_s / scale_s, 0.0) for age in ages]
    kept = [table.survival(age) ** told for age in silence]
    weights = [w * s for w, s in zip(old[3:6], kept, strict=True)]
    total = max(sum(weights), _LEAST)
    hazard = sum(w * table.hazard(a) for w, a in zip(weights, ages, strict=True)) / total / scale_s
    true = hazard * trust / (hazard * trust + mean_hazard * (1.0 - trust) + _LEAST * _LEAST)
    calm, before, last = (w / total * (1.0 - true) for w in weights)
    # Two earlier hints are kept as one, at the instant of the likelier.
    before_at = old.last_at if last >= before else old.before_at
    survival = table.survival(max(at - before_at - coverage.lag_s, 0.0) / scale_s)
    return Belief(
        old.calm_at,
        before_at,
        max(at, old.last_at),
        calm / kept[0],
        (before + last) / survival**told,
        true,
        old.real + true,
    )


def _confirmed(old: Belief, trust: float) -> Belief:
    """Return a belief after another hint of the same change: it is false only if both are."""
    doubt = (1.0 - trust) * (old.calm + old.before)
    last = old.last + trust * (old.calm + old.before)
    share = (1.0 - trust) if doubt > 0.0 else 0.0
    return old._replace(calm=old.calm * share, before=old.before * share, last=last, real=old.real)


class HintedPages:
    """The told pages of one policy: slots of the policy, and their price."""

    def __init__(self) -> None:
        self._place: dict[int, int] = {}
        # Nothing is held before the first hint: there may be ten thousand policies without one.
        self._slot = np.zeros(0, np.int64)
        self._rows = np.zeros((0, len(Belief._fields)))
        self._value = np.zeros(0)
        self._most = np.full(1, _NOBODY)
        self._new: set[int] = set()
        self._turn = 0
        self._priced_at = -math.inf

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, slot: int) -> bool:
        return slot in self._place

    def belief(self, slot: int) -> Belief | None:
        """Return what is believed of a page, None where nothing was told."""
        place = self._place.get(slot)
        return None if place is None else Belief(*self._rows[place].tolist())

    def put(self, slot: int, belief: Belief) -> None:
        """Enter a page, or change what is believed of it; it is priced at the next pick."""
        place = self._place.get(slot)
        if place is None:
            place = self._place[slot] = len(self._place)
            if place == len(self._slot):
                self._extend(max(place, _FEW))
            self._slot[place] = slot
        self._rows[place] = belief
        self._new.add(slot)

    def discard(self, slot: int) -> Belief | None:
        """Take a page out; return what was believed of it."""
        place = self._place.pop(slot, None)
        if place is None:
            return None
        self._new.discard(slot)
        belief = Belief(*self._rows[place].tolist())
        last = len(self._place)
        if place != last:
            moved = int(self._slot[last])
            self._slot[place], self._place[moved] = moved, place
            self._rows[place], self._value[place] = self._rows[last], self._value[last]
        self._value[last] = _NOBODY
        self._note({place // BLOCK, last // BLOCK})
        return belief

    def _extend(self, more: int) -> None:
        self._slot = np.concatenate([self._slot, np.zeros(more, np.int64)])
        self._rows = np.concatenate([self._rows, np.zeros((more, len(Belief._fields)))])
        self._value = np.concatenate([self._value, np.full(more, _NOBODY)])
        blocks = -(-len(self._slot) // BLOCK) - len(self._most)
        self._most = np.concatenate([self._most, np.full(blocks, _NOBODY)])

    def _note(self, blocks: set[int]) -> None:
        for block in blocks:
            self._most[block] = self._value[block * BLOCK : (block + 1) * BLOCK].max()

    # -- prices ------------------------------------------------------------------------------------

    def due(self, at: float) -> Places:
        """Return the places to be priced now: what is new, and a block in turn or all of few."""
        count = len(self._place)
        some = [self._place[slot] for slot in islice(self._new, NEW_MOST)]
        new = np.array(some, np.int64)
        if at < self._priced_at + PRICED_S and (len(new) == 0 or count > BLOCK):
            return new
        self._priced_at = at
        if count <= BLOCK:
            return np.arange(count)
        first, self._turn = self._turn, self._turn + BLOCK
        if first >= count:
            first, self._turn = 0, BLOCK
        return np.union1d(new, np.arange(first, min(first + BLOCK, count)))

    def slots(self, places: Places) -> Places:
        """Return the slots at places."""
        return self._slot[places]

    def beliefs(self, places: Places) -> Floats:
        """Return what is believed at places, shape (fields of `Belief`, places)."""
        return self._rows[places].T

    def set_values(self, places: Places, value: Floats) -> None:
        """Take the worth of pages, seconds, in the order of `places`."""
        self._value[places] = value
        self._new.difference_update(self._slot[places].tolist())
        self._note(set((places // BLOCK).tolist()))

    def best(self) -> tuple[int, float]:
        """Return the slot of highest worth and the worth; (-1, −inf) where nothing was told."""
        if not self._place:
            return -1, _NOBODY
        block = int(self._most.argmax()) * BLOCK
        place = block + int(self._value[block : block + BLOCK].argmax())
        return int(self._slot[place]), float(self._value[place])


def hinted_values(
    beliefs: Floats,
    untold: Floats,
    at: float,
    *,
    since_s: Floats,
    scale_s: Floats,
    coverage: Coverage,
    table: VisitValueTable,
) -> Floats:
    """Return what visits to told pages are worth now, seconds.

    Args:
        beliefs: shape (fields of `Belief`, pages).
        untold: worth of each under the reading that nothing was true, seconds.
        at: now.
        since_s: time since the last visit of each, seconds; 0 where there was none.
        scale_s: σ of each.
        coverage: of the hints.
        table: visit values of the site's scale model.
    """
    ages = np.maximum(at - beliefs[:3], 0.0)
    silence = np.maximum(ages - coverage.lag_s, 0.0) / scale_s
    weights = beliefs[3:6] * table.survivals(silence) ** (1.0 - coverage.missed_share)
    weights /= np.maximum(weights.sum(axis=0), _LEAST)
    # Each true change told since the last visit says that the page is livelier than it was.
    lively_s = scale_s / np.sqrt(1.0 + _LIVELIER * beliefs[6])
    stay = table.stale_values(lively_s, ages[1:])
    stay += STALE_SHARE * since_s
    return np.asarray(weights[0] * untold + weights[1] * stay[0] + weights[2] * stay[1])
