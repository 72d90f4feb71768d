"""What the hints of a page say: which of them are true, and what a visit is worth then.

A hint may be false and a change may go unreported, so a hinted page is not simply stale. Three
hypotheses are kept, as of the latest hint:

    known     no hint since the visit is true: the last change is the one known at the visit
    earlier   an earlier hint is true, the latest is not
    latest    the latest hint is true

1. A hint of a page whose hazard of change is h (mixed over the hypotheses) is true with probability
   p = h q / (h q + H (1 − q)), where q is the trust in its source and H the mean hazard of all
   pages: false hints hit all pages alike, true ones hit pages that change often.
2. Then `latest` has weight p, `earlier` that of the two former hint hypotheses, `known` the rest,
   and the excitement of the page (`change/hawkes.py`) grows by p. Under `latest` it is 1 − p more,
   under `earlier` p less, under `known` it is that of the visit.
3. The absence of further hints is evidence too: a hypothesis under which the page changes often
   loses weight while no hint arrives, with its survival to the power 1 − m (m: share of changes
   never reported).
4. The value of a visit is, under `earlier` and `latest`, the index 1/h of a page that is stale,
   times the probability P that one of them is true: P/h is the fresh time that the visit buys, and
   P²/h what is left of it after the loss of what the next hint would have told. (In the model of
   constant rates: w − (1 − P) ψ after one hint, with w = ψ = P/h.) Under `known` it is the value
   without hints, lowered because no hint came.

With trust 1 the page is stale since the latest hint; with trust 0 the hints change nothing.

Source: Bayes' rule over a change-point; the form of noisy signals is Busa-Fekete et al. 2025.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.hawkes import KERNELS_S, Hawkes
from crawld.core.revisit.visit_value import VisitValueTable

Floats = NDArray[np.float64]

SAME_CHANGE_S: Final = 60.0
"""Hints closer in time than this report the same change."""

_LEAST = 1e-12
_TAUS = np.array(KERNELS_S)


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


class KnownChange(NamedTuple):
    """The last change of a page that a visit has found.

    Attributes:
        at: its time; −inf if none is known.
        excitement: of the page after it, by kernel.
    """

    at: float
    excitement: Sequence[float]


class Belief(NamedTuple):
    """Belief about one hinted page.

    Attributes:
        at: time of the latest hint's change.
        known, earlier, latest: probability of each hypothesis at that time.
        excitement: expected, just after it, by kernel.
    """

    at: float
    known: float
    earlier: float
    latest: float
    excitement: tuple[float, ...]

    def as_row(self) -> tuple[float, ...]:
        """Return plain numbers, `WIDTH` of them."""
        return (*self[:4], *self.excitement)

    @classmethod
    def from_row(cls, row: Sequence[float]) -> Belief:
        """Return the belief of `as_row`."""
        return cls(row[0], row[1], row[2], row[3], tuple(row[4:]))


WIDTH: Final = 4 + len(KERNELS_S)
"""Numbers of one belief."""


def update_belief(
    belief: Belief | None,
    at: float,
    *,
    trust: float,
    known: KnownChange,
    is_stale: bool,
    mean_hazard: float,
    coverage: Coverage,
    model: Hawkes,
) -> Belief:
    """Return the belief about a page after one more hint.

    Args:
        belief: before the hint; None if it is the first since the visit.
        at: reported time of the change.
        trust: share of the source's hints that are true, > 0.
        is_stale: whether the copy is stale in any case, as that of a page never visited.
        mean_hazard: of all pages, 1/s.
    """
    if belief is None:
        if is_stale:
            return _first_of_stale(at, known)
        belief = Belief(known.at, 1.0, 0.0, 0.0, tuple(known.excitement))
    elif belief.latest > 0.0 and abs(at - belief.at) <= SAME_CHANGE_S:
        return _confirmed(belief, trust)
    weights, hazards, excitement = _until(belief, at, known, coverage, model)
    hazard = sum(w * h for w, h in zip(weights, hazards, strict=True))
    true = hazard * trust / (hazard * trust + mean_hazard * (1.0 - trust) + _LEAST * _LEAST)
    return Belief(
        max(at, belief.at),
        weights[0] * (1.0 - true),
        (weights[1] + weights[2]) * (1.0 - true),
        true,
        tuple(x + true for x in excitement),
    )


def _first_of_stale(at: float, known: KnownChange) -> Belief:
    gap_s = at - known.at
    if gap_s <= SAME_CHANGE_S:
        return Belief(known.at, 0.0, 0.0, 1.0, tuple(known.excitement))
    grown = (
        x * math.exp(-gap_s / tau_s) + 1.0
        for x, tau_s in zip(known.excitement, KERNELS_S, strict=True)
    )
    return Belief(at, 0.0, 0.0, 1.0, tuple(grown))


def _confirmed(old: Belief, trust: float) -> Belief:
    """Return a belief after a second hint of the same change: false only if both hints are."""
    doubt = 1.0 - trust
    more = trust * (old.known + old.earlier)
    excitement = tuple(x + more for x in old.excitement)
    return Belief(old.at, old.known * doubt, old.earlier * doubt, old.latest + more, excitement)


def _until(
    belief: Belief, at: float, known: KnownChange, coverage: Coverage, model: Hawkes
) -> tuple[list[float], list[float], list[float]]:
    """Return weight and hazard of each hypothesis just before a time, and the excitement then."""
    reported, p = 1.0 - coverage.missed_share, belief.latest
    since_s = max(at - belief.at, 0.0)
    known_s = belief.at - known.at if belief.at > known.at else 0.0
    silent_s = max(since_s - coverage.lag_s, 0.0)
    grown, hazards, left = [0.0] * 3, [model.base] * 3, []
    for index, tau_s in enumerate(KERNELS_S):
        weight, x = model.weights[index], belief.excitement[index]
        of_known = known.excitement[index] * math.exp(-known_s / tau_s)
        kept = math.exp(-since_s / tau_s)
        past = -math.expm1(-silent_s / tau_s)
        for place, c in enumerate((of_known, x - p, x + 1.0 - p)):
            hazards[place] += weight / tau_s * c * kept
            grown[place] += weight * c * past
        left.append(x * kept)
    weights = [w * math.exp(-reported * g) for w, g in zip(belief[1:4], grown, strict=True)]
    total = max(sum(weights), _LEAST)
    return [w / total for w in weights], hazards, left


def hinted_values(
    beliefs: Floats,
    unhinted: Floats,
    at: float,
    *,
    known_at: Floats,
    known_excitement: Floats,
    coverage: Coverage,
    model: Hawkes,
) -> Floats:
    """Return the values of visits to hinted pages now, seconds.

    Args:
        beliefs: `Belief.as_row` of each, shape (WIDTH, pages).
        unhinted: value of each if no hint is true, seconds.
        known_at: time of the last change that a visit has found; −inf if none.
        known_excitement: `KnownChange.excitement`, shape (kernels, pages).
    """
    hinted_at, weights, excitement = beliefs[0], beliefs[1:4], beliefs[4:]
    since_s = np.maximum(at - hinted_at, 0.0)
    silent_s = np.maximum(since_s - coverage.lag_s, 0.0)
    until_s = np.maximum(hinted_at - known_at, 0.0)
    of_known = known_excitement * np.exp(-until_s / _TAUS[:, None])
    p = weights[2]
    hypotheses = of_known, np.maximum(excitement - p, 0.0), excitement + (1.0 - p)
    grown = np.stack([model.cumulative_hazard(c, silent_s) for c in hypotheses])
    now = weights * np.exp(-(1.0 - coverage.missed_share) * (grown - grown.min(axis=0)))
    now /= np.maximum(now.sum(axis=0), _LEAST)
    changed = now[1] + now[2]
    earlier, latest = (1.0 / model.hazard(c, since_s) for c in hypotheses[1:])
    return np.asarray(now[0] * unhinted + changed * (now[1] * earlier + now[2] * latest))
