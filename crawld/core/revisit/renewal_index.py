"""The exact index of a page whose changes are a renewal process, for visits without hints.

A visit shows the page's age a, the time since its last change. Let visits cost a price μ. After a
visit the best wait τ solves, with S the survival of an interval and g the gain per time,

    V(a) = max over τ of  ∫_0^τ S(a + s)/S(a) ds − μ − g τ + E[V(a') | a, τ],

where a' is the age that the next visit finds. The index of a page that was visited at age a and has
waited for τ is the price at which the best wait is τ: the highest price that a visit now deserves.

If V were the same for all ages, the index would be ∫_0^τ (S(a + s) − S(a + τ)) ds / S(a), the value
in Wolf et al. conditioned on the age. That is exact for Poisson pages. But it counts the fresh time
that the *last* visit gave. On a periodic page the next one gives a whole period whenever the last
one was; after a burst it gives the long calm that follows.

Times are in scales of the shape. The states are 48 ages, the waits 120 times.

Source: Whittle, J. Appl. Prob. 1988 (indices of restless processes); Jewell, Oper. Res. 1963
(semi-Markov policy iteration); the renewal function as in `change/renewal.py`. The form is ours.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.renewal import Renewal, renewal_function

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AGES: Final = np.concatenate([[0.0], np.geomspace(1e-3, 2e3, 47)])
"""Ages at a visit, in scales."""

WAITS: Final = np.concatenate([[0.0], np.geomspace(1e-3, 2e4, 119)])
"""Times since the visit, in scales; a page that has waited longer has the last value."""

_PRICES: Final = np.geomspace(1e-4, 3e3, 56)
_HIGHEST: Final = 8
"""Prices between the last of `_PRICES` at which visits are worth it, and the next."""

_POINTS: Final = 240
_ROUNDS: Final = 30
_TOLERANCE: Final = 1e-9

_ALIVE_LEAST: Final = 1e-4
"""An age that so few intervals reach tells more than the shape: from there on the process counts as
memoryless, with a mean of the age (as in `Renewal.conditional_survival`)."""


def index_values(shape: Renewal) -> Floats:
    """Return the index by age at the last visit and time since it, in scales.

    Args:
        shape: distribution of the interval between changes, in scales; one row.

    Returns:
        Shape (`AGES`, `WAITS`), not decreasing in the second; 0 at once after a visit.
    """
    prices, best = _best_waits(shape)
    index = np.zeros((len(AGES), len(WAITS)))
    order = 1e-9 * np.arange(len(prices))
    for age, waits in enumerate(best.T):
        finite = waits < WAITS[-1]
        if finite.any():
            # Of several prices with the same best wait, that wait reaches the lowest: on the way to
            # a regular change, the value must not rise before it.
            begins = np.log(waits[finite]) + order[finite]
            worth = np.log(prices[finite])
            reached = np.interp(np.log(WAITS[1:]), begins, worth, left=worth[0] - 2.0)
            index[age, 1:] = np.exp(reached)
    old = np.asarray(shape.survival(AGES)) < _ALIVE_LEAST
    index[old] = _memoryless(np.maximum(AGES[old], float(shape.mean())))
    return index


def _memoryless(mean: Floats) -> Floats:
    """Return the index of Poisson pages with these mean intervals."""
    waited = WAITS / mean[:, None]
    return np.asarray(mean[:, None] * (-np.expm1(-waited) - waited * np.exp(-waited)))


def _best_waits(shape: Renewal) -> tuple[Floats, Floats]:
    """Return prices, and the best wait after a visit at each of them.

    Returns:
        The waits have shape (prices, `AGES`) and do not decrease in the price; the last of `WAITS`
        stands for no visit at all. Few prices are beyond those at which no visit is worth it.
    """
    found = _age_distribution(shape)
    alive = np.maximum(np.asarray(shape.survival(AGES)), 1e-12)
    grown = shape.integrated_survival(AGES[:, None] + WAITS)
    fresh = (grown - shape.integrated_survival(AGES)[:, None]) / alive[:, None]
    chosen = np.full(len(AGES), len(WAITS) // 2)
    prices, places = [], [chosen]
    for price in _PRICES.tolist():
        if places[-1].min() == len(WAITS) - 1:
            break
        chosen = _iterate_policy(found, fresh, price, chosen)
        prices.append(price)
        places.append(chosen)
    # Without prices just below the last, the highest value would be a third too low.
    for price in np.geomspace(prices[-2], prices[-1], _HIGHEST)[1:-1].tolist():
        prices.insert(-1, price)
        places.insert(-1, _iterate_policy(found, fresh, price, places[-2]))
    return np.array(prices), np.maximum.accumulate(WAITS[np.array(places[1:])], axis=0)


def _iterate_policy(found: Floats, fresh: Floats, price: float, chosen: Ints) -> Ints:
    """Return the place in `WAITS` of the best wait for each age.

    Args:
        found: distribution of the age that the next visit finds, by age and wait.
        fresh: mean fresh time until that visit, by age and wait.
        chosen: the waits to start from.
    """
    states = np.arange(len(AGES))
    equations = np.zeros((len(AGES) + 1, len(AGES) + 1))
    equations[-1, 0] = 1.0
    known = np.zeros(len(AGES) + 1)
    for _ in range(_ROUNDS):
        equations[:-1, :-1] = np.eye(len(AGES)) - found[states, chosen]
        equations[:-1, -1] = WAITS[chosen]
        known[:-1] = fresh[states, chosen] - price
        solved = np.linalg.solve(equations, known)
        gain = fresh - price - solved[-1] * WAITS + found @ solved[:-1]
        gain[:, 0] = -np.inf
        better, now = gain.argmax(axis=1), gain[states, chosen]
        improved = gain[states, better] > now + _TOLERANCE * (1.0 + np.abs(now))
        if not improved.any():
            break
        chosen = np.where(improved, better, chosen)
    return chosen


def _age_distribution(shape: Renewal) -> Floats:
    """Return the distribution of the age that a visit finds, shape (`AGES`, `WAITS`, `AGES`).

    A page of age a is unchanged after τ with probability S(a + τ)/S(a), and then of age a + τ.
    Else its last change was s ago with density S(s) dM_a(τ − s); M_a: expected number of changes.
    """
    expected = renewal_function(shape, horizon=float(WAITS[-1]) * 1.5, points=_POINTS)
    times, changes = expected.grid, expected.expected
    middles = 0.5 * (times[1:] + times[:-1])
    lags = np.maximum(times[:, None] - middles, 0.0)
    after = np.interp(lags, times, changes)
    edges = np.concatenate([[0.0], 0.5 * (AGES[1:] + AGES[:-1]), [10.0 * WAITS[-1]]])
    kept = np.diff(shape.integrated_survival(edges)) / np.diff(edges)
    newest = np.maximum(WAITS[:, None] - edges[:-1], 0.0)
    oldest = np.maximum(WAITS[:, None] - edges[1:], 0.0)
    alive = np.maximum(np.asarray(shape.survival(AGES)), 1e-12)
    found = np.zeros((len(AGES), len(WAITS), len(AGES)))
    for place, age in enumerate(AGES.tolist()):
        first = 1.0 - np.minimum(shape.survival(age + times) / alive[place], 1.0)
        total = first + after @ np.diff(first)
        begun = np.interp(newest, times, total) - np.interp(oldest, times, total)
        unchanged = np.minimum(shape.survival(age + WAITS) / alive[place], 1.0)
        changed = np.maximum(begun, 0.0) * kept
        weight = changed.sum(axis=1, keepdims=True)
        share = np.divide(changed, weight, out=np.zeros_like(changed), where=weight > 0.0)
        found[place] = share * (1.0 - unchanged)[:, None]
        _add_at(found[place], age + WAITS, unchanged)
        found[place, :, 0] += 1.0 - found[place].sum(axis=1)
    return found


def _add_at(found: Floats, ages: Floats, weight: Floats) -> None:
    """Add weights at ages between those of the states, shared between the two next to them."""
    place = np.interp(ages, AGES, np.arange(len(AGES)))
    low = np.minimum(place.astype(np.int64), len(AGES) - 2)
    rows = np.arange(len(found))
    found[rows, low] += weight * (1.0 - (place - low))
    found[rows, low + 1] += weight * (place - low)
