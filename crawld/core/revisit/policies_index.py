"""INDEX: visit the page whose visit is worth most now; learns at every visit, needs no allocation.

Worth is what `worth.py` says, times the importance. It grows with the time since the last visit,
so that a page need not be looked at before it can be worth a *level* near the price of the last
picks. Three places hold the pages that wait:

- the **heap**, keyed by a time at which the page is still worth less than the level (new pages
  before all times, the longest unchanged first);
- the **pool**, the few pages worth about the level or more, their worth known and refreshed as
  often as it can have moved by half a hundredth;
- the **stale**, pages known to have changed (hints), priced by how long they will stay fresh.

A pick takes the best of pool and stale. A full pool raises the level and sends the rest back to the
heap; where nothing reaches the level any more, it is lowered and the heap keyed anew in one
vectorised pass, at most once in n/32 picks. Every page outside the pool is worth less than the
level, so a pick worth the level is the best there is, but for the refresh: within a hundredth.

Hints make what is not hinted less urgent, and count as far as they have proved true (`hints.py`).
With hints that know nothing the policy is what it is without hints.

56 bytes a page. Time runs on a clock of its own that never steps back (rule 3 of `policies.py`).

Source: price form of Cho & Garcia-Molina, TODS 2003, as an index (Azar et al., PNAS 2018;
Avrachenkov & Borkar 2015); hints of unknown reliability after Busa-Fekete et al. 2025; the data
structure is ours.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawld.core.change.record import Records
from crawld.core.change.scale import ScaleModel
from crawld.core.revisit import hints
from crawld.core.revisit.heap import ABSENT
from crawld.core.revisit.hints import Belief, Coverage
from crawld.core.revisit.near import NearQueue
from crawld.core.revisit.policies import Observation, SteadyClock
from crawld.core.revisit.pool import Pool
from crawld.core.revisit.slots import FREE, PageSlots
from crawld.core.revisit.worth import page_scale_s, usual_scale, worth_of

Floats = NDArray[np.float64]

_NEVER = -(2.0**42)
_CALM_MOST = 2.0**41
"""Keys of new pages: _NEVER − seconds unchanged, so that the calmest come first."""

_SMALL = 512
"""Up to so many pages all are in the pool: exact, and cheaper than any heap."""

_POOL_LEAST, _POOL_SHARE, _POOL_MOST = 256, 8, 8192
"""The pool holds up to an eighth of the pages, so that it lasts while prices fall."""

_AHEAD = 8
_POPS = 64
"""Pages moved from heap to pool in one pick at most: a clock that leaps cannot stall the daemon."""

_MOVED = 3e-3
"""The pool is priced anew when the least waiting time in it has grown by this share."""

_PAUSE, _PAUSE_S = 1e-3, 1e-3
"""A page near the level waits a little in any case, or it would come back at once."""

_NEAR = 0.99
_ADMITTED, _MANY = 0.8, 160_000
"""A page worth nearly the level enters the pool rather than come back soon; of very many pages
there are too many so near."""
_REKEY_SHARE = 32
_UNKNOWN_SCALE_S = 30 * 86_400.0


class IndexPolicy:
    """The page of highest worth next.

    Args:
        model: scale model of the site; without it every page is as a rare Poisson page at first.
    """

    def __init__(self, model: ScaleModel | None = None) -> None:
        self._coverage = Coverage()
        self._slots = PageSlots()
        self._heap = NearQueue()
        self._pool = Pool()
        self._told = hints.ToldPages()
        self._flying: dict[int, Belief | None] = {}
        self._news: dict[int, tuple[float, float]] = {}
        self._visited_at = np.zeros(0)
        self._age = np.zeros(0, dtype=np.float32)
        self._scale = np.zeros(0, dtype=np.float32)
        self._weight = np.zeros(0, dtype=np.float32)
        self._level = 0.0
        self._clock = SteadyClock()
        self._refresh_at = -math.inf
        self._rates = 0.0
        self._picks_since_rekey = 0
        self._newcomers = 0.0
        self.adopt(model or usual_scale())

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, page: int) -> bool:
        return page in self._slots

    # -- which pages -------------------------------------------------------------------------------

    def adopt(self, model: ScaleModel) -> None:
        """Take a scale model fitted anew; scales of pages follow at their next visit.

        Policies that are given the same object share its tables (1.5 MB).
        """
        self._model = model
        self._weights: list[float] = model.weights.tolist()
        self._worth = worth_of(model)

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Hold a page, before all others where it was never visited."""
        if page in self._slots:
            return
        slot = self._slots.add(page)
        if slot >= len(self._weight):
            self._extend(max(64, len(self._weight) // 8))
        never = last_visit_at is None
        self._visited_at[slot] = (
            -math.inf if last_visit_at is None else last_visit_at + self._clock.lead
        )
        self._age[slot], self._scale[slot] = 0.0, _UNKNOWN_SCALE_S
        self._rates += 1.0 / _UNKNOWN_SCALE_S
        self._weight[slot] = weight
        self._newcomers += never
        self._heap.push(slot, _NEVER + self._newcomers if never else self._due(slot))

    def load(
        self,
        pages: ArrayLike,
        last_visit_at: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        """Hold many pages."""
        slots = self._slots.load(pages)
        first, count = int(slots[0]) if len(slots) else 0, len(slots)
        self._extend(first + count - len(self._weight))
        part = slice(first, first + count)
        seen = np.full(count, np.nan) if last_visit_at is None else np.asarray(last_visit_at, float)
        self._visited_at[part] = np.where(np.isnan(seen), -np.inf, seen + self._clock.lead)
        self._scale[part] = _UNKNOWN_SCALE_S
        self._rates += count / _UNKNOWN_SCALE_S
        self._weight[part] = 1.0 if weights is None else np.asarray(weights, dtype=np.float32)
        keys = self._newcomers + np.arange(count) + _NEVER
        self._newcomers += count
        due = self._dues(slots)
        self._heap.load(np.where(np.isnan(seen), keys, due))

    def learnt(self, pages: ArrayLike, records: Records) -> None:
        """Take the change models of pages, after a load or a refit.

        Pages never visited whose past is known go first in order of their calm.

        Args:
            pages: page keys; unknown ones are passed over.
            records: their models, same order.
        """
        slots = np.array([self._slots.find(page) for page in np.asarray(pages).tolist()], np.int64)
        held = slots != FREE
        slots, records = slots[held], records[held]
        if len(slots) == 0:
            return
        scale = self._model.scale_s(records)
        unchanged = np.maximum(records["last_visit_at"] - records["last_change_at"], 0.0)
        self._scale[slots], self._age[slots] = scale, unchanged / scale
        self._rates = float((1.0 / self._scale.astype(np.float64)).sum())
        keys = self._heap.keys()
        never = np.isneginf(self._visited_at[slots])
        # What has stood longest will stand longest: better than any scale on 2019 to 2021 of a
        # manual, where a year is too short for one visit to every page.
        calm = np.minimum(self._weight[slots] * unchanged, _CALM_MOST)
        keys[slots] = np.where(never, _NEVER - calm, self._dues(slots))
        self._heap.rekey(keys)

    def remove(self, page: int) -> None:
        """Forget a page."""
        slot = self._slots.remove(page)
        if slot != FREE:
            self._take_out(slot)
            self._rates -= 1.0 / float(self._scale[slot])
            self._scale[slot] = math.inf
            self._flying.pop(slot, None)
            self._news.pop(slot, None)

    def set_weight(self, page: int, weight: float) -> None:
        """Change the importance of a page; it is priced anew at the next pick."""
        slot = self._slots.find(page)
        if slot == FREE:
            return
        self._weight[slot] = weight
        if slot in self._pool or (slot in self._heap and self._heap.key(slot) > _NEVER / 2):
            self._pool.discard(slot)
            self._heap.push(slot, self._clock.now)

    # -- the next page -----------------------------------------------------------------------------

    def select(self, now: float) -> int | None:
        """Return the page most worth a visit."""
        at = self._clock.tell(now)
        self._picks_since_rekey += 1
        slot = self._heap.first()
        if slot == ABSENT or self._heap.key(slot) > _NEVER / 2:
            slot = self._worthiest(at)
        if slot == ABSENT:
            return None
        self._flying[slot] = self._take_out(slot)
        return self._slots.page_at[slot]

    def worths(self, pages: ArrayLike, now: float) -> Floats:
        """Return what a visit to each page held would be worth now without hints, seconds.

        Args:
            pages: page keys, all held.
            now: Unix seconds.
        """
        slots = np.array([self._slots.find(page) for page in np.asarray(pages).tolist()], np.int64)
        return self._worths(slots, now + self._clock.lead)

    def _worthiest(self, at: float) -> int:
        if self._level == 0.0 and len(self._heap) > _SMALL:
            self._rekey(at)
        self._ripen(at)
        if at >= self._refresh_at:
            self._refresh(at)
        slot, worth = self._pool.best()
        if len(self._heap) and (slot < 0 or worth < _NEAR * self._level):
            slot, worth = self._lower(at)
        if not len(self._told):
            return slot
        self._price_told(at)
        told, told_worth = self._told.best()
        if slot >= 0:
            worth *= float(self._urgency(np.array([slot]), at)[0])
        return told if told_worth >= worth else slot

    def _urgency(self, slots: NDArray[np.int64], at: float) -> Floats:
        """Return what silence leaves of the worth of pages."""
        since = np.maximum(at - self._visited_at[slots], 0.0)
        age, scale = self._age[slots].astype(np.float64), self._scale[slots].astype(np.float64)
        return hints.urgency(age, scale, since, coverage=self._coverage, worth=self._worth)

    def _ripen(self, at: float) -> None:
        """Move pages whose time has come from the heap to the pool."""
        heap = self._heap
        admitted = self._level * (_ADMITTED if len(self._slots) <= _MANY else _NEAR)
        for _ in range(_POPS):
            slot = heap.first()
            if slot == ABSENT or heap.key(slot) > at:
                break
            worth = self._worth_now(slot, at)
            if worth < admitted:
                heap.push(slot, self._later(slot, worth, at))
            else:
                heap.remove(slot)
                self._pool.put(slot, worth)
        if len(self._slots) > _SMALL and len(self._pool) > self._room():
            self._raise(at)

    def _worth_now(self, slot: int, at: float) -> float:
        since = max(at - float(self._visited_at[slot]), 0.0)
        worth = self._worth.of_one(float(self._age[slot]), float(self._scale[slot]), since)
        return worth * float(self._weight[slot])

    def _worths(self, slots: NDArray[np.int64], at: float) -> Floats:
        since = np.maximum(at - self._visited_at[slots], 0.0)
        age, scale = self._age[slots].astype(np.float64), self._scale[slots].astype(np.float64)
        return np.asarray(self._worth.of(age, scale, since) * self._weight[slots])

    def _refresh(self, at: float) -> None:
        """Price the pool anew, and say when that is due again."""
        slots = self._pool.slots
        if len(slots) == 0:
            return
        self._pool.worth[:] = self._worths(slots, at)
        least = at - float(self._visited_at[slots].max())
        self._refresh_at = at + _MOVED * max(least, 0.0)

    def _raise(self, at: float) -> None:
        """Raise the level to what the best of a full pool are worth; park the others."""
        self._refresh(at)
        slots, worth = self._pool.slots.copy(), self._pool.worth.copy()
        count = self._room() // 2
        kept = np.argpartition(-worth, count)
        self._level = float(worth[kept[count]])
        for place in kept[count:].tolist():
            slot = int(slots[place])
            self._pool.discard(slot)
            self._heap.push(slot, self._later(slot, float(worth[place]), at))

    def _later(self, slot: int, worth: float, at: float) -> float:
        """Return a time until which a page worth less than the level stays so.

        Where the density of gaps falls, worth grows at most with the square of the time since the
        visit: W(τ) = ∫ s f(s) ds ≥ f(τ) τ²/2. A power of 2.5 leaves room for a density that rises.
        """
        since = at - float(self._visited_at[slot])
        if worth <= 0.0 or since <= 0.0:
            return max(self._due(slot), at + _PAUSE_S)
        ratio = self._level / worth
        return at + since * max(math.pow(ratio, 0.4) - 1.0, _PAUSE)

    def _laters(self, slots: NDArray[np.int64], worth: Floats, at: float) -> Floats:
        """Return `_later` of many pages."""
        if self._level == 0.0:
            return np.full(len(slots), at)
        since = np.minimum(at - self._visited_at[slots], _CALM_MOST)
        with np.errstate(divide="ignore"):
            ratio = np.where(worth > 0.0, self._level / np.maximum(worth, 1e-300), 1.0)
        return np.asarray(at + np.maximum(since * np.maximum(ratio**0.4 - 1.0, _PAUSE), _PAUSE_S))

    def _room(self) -> int:
        return min(max(_POOL_LEAST, len(self._slots) // _POOL_SHARE), _POOL_MOST)

    def _lower(self, at: float) -> tuple[int, float]:
        """Find the best page where nothing in the pool is worth the level."""
        if self._picks_since_rekey * _REKEY_SHARE >= len(self._slots):
            self._rekey(at)
        elif len(self._pool) == 0:
            for _ in range(min(_AHEAD, len(self._heap))):
                slot = self._heap.first()
                self._heap.remove(slot)
                self._pool.put(slot, self._worth_now(slot, at))
        return self._pool.best()

    def _rekey(self, at: float) -> None:
        """Price all waiting pages; the best fill the pool, their least worth is the new level."""
        waiting = self._heap.members()
        worth = self._worths(waiting, at)
        count = min(self._room() // 2, len(waiting))
        best = np.argpartition(-worth, count - 1)[:count]
        for place in best.tolist():
            self._heap.remove(int(waiting[place]))
            self._pool.put(int(waiting[place]), float(worth[place]))
        self._level = float(worth[best].min()) if len(self._slots) > _SMALL else 0.0
        keys = self._heap.keys()
        keys[waiting] = np.maximum(self._dues(waiting), self._laters(waiting, worth, at))
        self._heap.rekey(keys)
        self._picks_since_rekey = 0

    # -- after a visit -----------------------------------------------------------------------------

    def visited(self, page: int, now: float, observation: Observation | None) -> None:
        """Learn from the visit and let the page wait until it is worth the price again."""
        slot = self._slots.find(page)
        if slot == FREE:
            return
        at = self._clock.of_visit(now)
        self._flying.pop(slot, None)
        self._take_out(slot)
        self._learn(slot, at, observation)
        self._visited_at[slot] = at
        if self._level == 0.0:
            self._pool.put(slot, 0.0)
        else:
            self._heap.push(slot, self._due(slot))
        if slot in self._news:
            told_at, trust = self._news.pop(slot)
            self.hinted(page, told_at, trust=trust)

    def _learn(self, slot: int, at: float, observation: Observation | None) -> None:
        since = max(at - float(self._visited_at[slot]), 0.0)
        scale, age = float(self._scale[slot]), float(self._age[slot])
        if observation is None:
            self._age[slot] = age + since / scale if math.isfinite(since) else 0.0
            return
        if observation.model is not None:
            scale = page_scale_s(self._weights, observation.model)
            unchanged = observation.model.known_age_s()
        elif observation.changed_at:
            unchanged = max(at - self._clock.lead - observation.changed_at[-1], 0.0)
        elif observation.changed or not math.isfinite(since):
            unchanged = 0.5 * since if math.isfinite(since) else 0.0
        else:
            unchanged = age * scale + since
        self._rates += 1.0 / scale - 1.0 / float(self._scale[slot])
        self._scale[slot], self._age[slot] = scale, unchanged / scale

    def released(self, page: int) -> None:
        """Put a selected page back where it was."""
        slot = self._slots.find(page)
        if slot == FREE or slot not in self._flying:
            return
        told = self._flying.pop(slot)
        if told is not None:
            self._told.put(slot, told)
        elif math.isinf(self._visited_at[slot]):
            self._heap.push(slot, self._heap.key(slot))
        else:
            self._heap.push(slot, self._clock.now)

    # -- hints -------------------------------------------------------------------------------------

    def covered(self, missed_share: float, lag_s: float) -> None:
        """Note how completely hints tell of the changes of these pages, all sources together.

        Args:
            missed_share: share of changes no source tells of, in [0, 1]; 1 = no source.
            lag_s: time until a change is told, polls and all, seconds: silence says nothing of it.
        """
        self._coverage = Coverage(missed_share, lag_s)

    def hinted(self, page: int, at: float, *, trust: float = 1.0) -> None:
        """Note that a page changed after its last visit; older news is dropped.

        For a page in flight it counts once the visit is over, if it tells of a later change. A
        page never visited and of unknown past is new, and first in any case.
        """
        slot = self._slots.find(page)
        changed_at = at + self._clock.lead
        if slot == FREE or trust <= 0.0 or changed_at <= self._visited_at[slot]:
            return
        if slot in self._flying:
            self._news[slot] = max((at, trust), self._news.get(slot, (at, trust)))
            return
        visited_at, age = float(self._visited_at[slot]), float(self._age[slot])
        if math.isinf(visited_at) and age == 0.0:
            return
        scale = float(self._scale[slot])
        belief = hints.believe(
            self._told.belief(slot),
            changed_at,
            trust=trust,
            calm_at=visited_at - age * scale,
            scale_s=scale,
            mean_hazard=self._rates / (self._worth.mean * len(self._slots)),
            coverage=self._coverage,
            worth=self._worth,
        )
        if slot not in self._told:
            self._take_out(slot)
        self._told.put(slot, belief)

    def belief(self, page: int) -> Belief | None:
        """Return what hints make believed of a page, None where nothing was told of it."""
        return self._told.belief(self._slots.find(page))

    def _price_told(self, at: float) -> None:
        """Price the told pages that are due for it."""
        places = self._told.due(at)
        if not len(places):
            return
        slots = self._told.slots(places)
        age, scale = self._age[slots].astype(np.float64), self._scale[slots].astype(np.float64)
        # A page never visited is stale under every reading.
        since = np.minimum(np.maximum(at - self._visited_at[slots], 0.0), _CALM_MOST)
        untold = self._worth.of(age, scale, since) * self._urgency(slots, at)
        worth = hints.price_told(
            self._told.beliefs(places),
            untold,
            at,
            since_s=np.where(np.isneginf(self._visited_at[slots]), 0.0, since),
            scale_s=scale,
            coverage=self._coverage,
            worth=self._worth,
        )
        self._told.priced(places, self._weight[slots] * worth)

    # -- where a page waits ------------------------------------------------------------------------

    def _take_out(self, slot: int) -> Belief | None:
        """Take a page out of wherever it waits; return what hints told of it."""
        self._heap.remove(slot)
        self._pool.discard(slot)
        return self._told.discard(slot)

    def _due(self, slot: int) -> float:
        """Return a time until which a page is worth less than the level."""
        weight = float(self._weight[slot])
        if weight <= 0.0:
            return math.inf
        wait = self._worth.wait_s(
            float(self._age[slot]), float(self._scale[slot]), self._level / weight
        )
        return float(self._visited_at[slot]) + wait

    def _dues(self, slots: NDArray[np.int64]) -> Floats:
        weight = self._weight[slots].astype(np.float64)
        age, scale = self._age[slots].astype(np.float64), self._scale[slots].astype(np.float64)
        with np.errstate(divide="ignore", over="ignore"):
            level = self._level / np.maximum(weight, 1e-30)
            wait = self._worth.waits_s(age, scale, level)
        return np.where(weight > 0, self._visited_at[slots] + wait, np.inf)

    def _extend(self, more: int) -> None:
        if more > 0:
            self._visited_at = np.concatenate([self._visited_at, np.full(more, -np.inf)])
            self._age = np.concatenate([self._age, np.zeros(more, np.float32)])
            self._scale = np.concatenate([self._scale, np.full(more, np.inf, np.float32)])
            self._weight = np.concatenate([self._weight, np.ones(more, np.float32)])
