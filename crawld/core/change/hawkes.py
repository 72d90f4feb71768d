"""The self-exciting change model: each change makes the next more likely for a time.

With c_k the excitement in kernel k, counted at the last known change, the hazard t after it is

    h(t) = base + Σ_k (weight_k / τ_k) c_k exp(−t / τ_k),

and the next change is more than s away with probability S(s) = exp(−Λ(s)),

    Λ(s) = base s + Σ_k weight_k c_k (1 − exp(−s / τ_k)).

At a change, c_k ← c_k exp(−gap / τ_k) + 1. So the shortest kernel is a burst of edits, the longest
one the rate of the page, drawn to the rate of the site by `base`.

Between changes the hazard falls. The visit that answers a known change at a price μ is then due
when 1/h reaches μ: while h > 1/μ, the next change is too near, and waiting for it saves the price.
In general that index is

    W(d) = inf over d' > d of  ∫_d^d' S(x) dx / (S(d) − S(d')),

which is 1/h(d) for a falling hazard. Ranking by the mean time to the next change instead counts the
calm after the burst, and visits too early.

The state of a page is four excitements and the time of its last change: 24 bytes. Nothing more is
stored: the two longer kernels are windows of the decayed counts that a stored model has anyway
(`record.py`); the shorter ones follow from its last two gaps and the count of the last day.

Source: Hawkes, Biometrika 1971 (the process); Ozaki, Ann. Inst. Statist. Math. 1979 (its
likelihood); Lewis & Mohler, 2011 (EM). The index and the shared constants are this project's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from crawld.core.change.decayed_counts import decayed_counts
from crawld.core.change.model import PageModel
from crawld.core.change.record import WINDOWS_S, Records
from crawld.core.units import YEAR_S

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BURST_S, SESSION_S = 600.0, 6 * 3600.0
"""Time constants of a burst of edits, and of the hours after it. With a day instead of six hours,
lively articles of 2007 are up to .0025 staler, those of 2006 the same."""

KERNELS_S: Final = (BURST_S, SESSION_S, *WINDOWS_S[1:])
"""Time constants τ of the kernels, the shortest first."""

_TAUS = np.array(KERNELS_S)
_OLDER = 2.0 * (WINDOWS_S[0] / SESSION_S - 1.0)
"""Decay of an unknown change beyond that of the day's count, for each day of the last two gaps."""

_PRIOR_CHANGES: Final = 1_000.0
"""Changes that the shared constants count for in a fit."""

_PRIOR_S: Final = 10.0 * YEAR_S
"""Time of all pages that the shared `base` counts for in a fit."""

_ROUNDS, _CONVERGED = 200, 1e-4


@dataclass(frozen=True, slots=True)
class Hawkes:
    """A fitted model of a site, or the shared one.

    Attributes:
        base: hazard of a page without excitement, 1/s.
        weights: changes that a change causes in each kernel, ≥ 0.
    """

    base: float
    weights: tuple[float, ...]

    def rates(self) -> tuple[float, ...]:
        """Return the hazard that one change adds at first in each kernel, 1/s."""
        return tuple(w / tau for w, tau in zip(self.weights, KERNELS_S, strict=True))

    def hazard(self, excitement: Floats, age_s: Floats) -> Floats:
        """Return the hazards of pages, 1/s.

        Args:
            excitement: c_k at the last change, shape (kernels, pages).
            age_s: time since it, ≥ 0, shape (pages,).
        """
        rates = np.array(self.rates())
        return np.asarray(self.base + rates @ (excitement * np.exp(-age_s / _TAUS[:, None])))

    def cumulative_hazard(self, excitement: Floats, age_s: Floats) -> Floats:
        """Return Λ of pages, from the last change to an age; arguments as in `hazard`."""
        weights = np.array(self.weights)
        grown = excitement * -np.expm1(-age_s / _TAUS[:, None])
        return np.asarray(self.base * age_s + weights @ grown)

    def survival(self, excitement: Floats, age_s: Floats) -> Floats:
        """Return the probability of no change within an age; arguments as in `hazard`."""
        return np.asarray(np.exp(-self.cumulative_hazard(excitement, age_s)))

    def as_dict(self) -> dict[str, list[float]]:
        """Return plain values for JSON."""
        return {"base": [self.base], "excitation": list(self.weights)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Sequence[float]]) -> Hawkes:
        """Return the model of `as_dict`.

        Raises:
            ValueError: the number of kernels is of another version.
        """
        base, weights = list(values.get("base", ())), tuple(values.get("excitation", ()))
        if len(base) != 1 or len(weights) != len(KERNELS_S):
            raise ValueError("a self-exciting model of another version; fit it again")
        return cls(base[0], weights)


POISSON: Final = Hawkes(0.0, (0.0, 0.0, 0.0, 0.0))
"""Changes that cause no others."""

SHARED: Final = Hawkes(1.5e-7, (0.388, 0.092, 0.127, 0.403))
"""Fitted to 271 articles of an encyclopedia up to 2006, each with 50 changes in that year; for
sites without a past."""


def excitements(before_s: Floats, starts: npt.NDArray[np.bool_], taus_s: Sequence[float]) -> Floats:
    """Return the excitement right after each change, page after page.

    Args:
        before_s: gap before each change, seconds.
        starts: whether a change is the first of its page.

    Returns:
        Shape (changes, kernels).
    """
    result = np.empty((len(before_s), len(taus_s)))
    for index, tau_s in enumerate(taus_s):
        result[:, index] = decayed_counts(np.where(starts, 0.0, np.exp(-before_s / tau_s)))
    return result


def excitements_of(records: Records) -> Floats:
    """Return the excitement of pages at their last change, shape (pages, kernels).

    Of the changes before the last three, only those of the last day are known, by their decayed
    count: they are taken for twice as old as the two gaps together. On lively articles the
    second kernel is wrong by a tenth on average.
    """
    gaps = records["gaps_s"].astype(np.float64)
    known = records["change_known"].astype(np.float64)
    day, *longer = records["counts"].T.astype(np.float64)
    recent = [_last_three(gaps, tau_s) for tau_s in (BURST_S, SESSION_S, WINDOWS_S[0])]
    older = np.maximum(day - recent[2], 0.0) * np.exp(-_OLDER * gaps.sum(axis=1) / WINDOWS_S[0])
    return np.column_stack((known * recent[0], known * (recent[1] + older), *longer))


def _last_three(gaps_s: Floats, tau_s: float) -> Floats:
    """Return the excitement of the last three changes, fewer where a gap is missing (0)."""
    newest, before = np.where(gaps_s > 0.0, np.exp(-gaps_s / tau_s), 0.0).T
    return np.asarray(1.0 + newest * (1.0 + before))


def excitement_of(model: PageModel) -> tuple[float, ...]:
    """Return `excitements_of` for one page, in plain floats."""
    newest, before = model.gaps_s
    recent = []
    for tau_s in (BURST_S, SESSION_S, WINDOWS_S[0]):
        linked = math.exp(-newest / tau_s) if newest > 0.0 else 0.0
        recent.append(1.0 + linked * (1.0 + (math.exp(-before / tau_s) if before > 0.0 else 0.0)))
    day, *longer = model.counts
    if not model.change_known:
        return 0.0, 0.0, *longer
    older = max(day - recent[2], 0.0) * math.exp(-_OLDER * (newest + before) / WINDOWS_S[0])
    return recent[0], recent[1] + older, *longer


def unchanged_probability(model: PageModel, site: Hawkes, now: float) -> float:
    """Return the probability that a page is unchanged since its last visit.

    It is S(age now) / S(age at the visit), in the state of the page at its last known change.
    """
    before_s = model.known_age_s()
    now_s = before_s + max(now - model.last_visit_at, 0.0)
    hazard = site.base * (now_s - before_s)
    for count, weight, tau_s in zip(excitement_of(model), site.weights, KERNELS_S, strict=True):
        hazard += weight * count * (math.exp(-before_s / tau_s) - math.exp(-now_s / tau_s))
    return math.exp(-hazard)


def fit_hawkes(changed_at: Floats, offsets: Ints, *, at: float | Floats) -> Hawkes:
    """Fit a site's own model, drawn to the shared one.

    EM: each change is shared between what may have caused it in proportion to the hazards; a weight
    is then the changes that its kernel caused, per change that could cause them. The shared
    constants count as `_PRIOR_CHANGES` more changes, so that few changes give nearly them.

    Args:
        changed_at: times of changes, page after page, strictly increasing within a page.
        offsets: one more than pages.
        at: time up to which the histories are complete, of all pages or of each, >= every change.

    Source: Dempster, Laird & Rubin 1977; Lewis & Mohler, 2011; a Gamma prior for each parameter.
    """
    length = np.diff(offsets)
    first, last = (np.zeros(len(changed_at), np.bool_) for _ in range(2))
    filled = np.flatnonzero(length)
    first[offsets[:-1][filled]] = last[offsets[1:][filled] - 1] = True
    after_s = np.append(np.diff(changed_at), 0.0)[: len(changed_at)]
    until = np.broadcast_to(at, length.shape)[filled]
    after_s[last] = np.maximum(until - changed_at[last], 0.0)
    before_s = np.concatenate(([0.0], after_s[:-1]))[: len(changed_at)]
    counts = excitements(before_s, first, KERNELS_S)
    left = np.exp(-after_s[:, None] / _TAUS)
    exposure = (counts * (1.0 - left)).sum(axis=0)
    causes = (counts * left / _TAUS)[~last]
    return _maximize(causes, exposure, float(after_s.sum()))


def _maximize(causes: Floats, exposure: Floats, exposure_s: float) -> Hawkes:
    """Return the parameters of the greatest posterior.

    Args:
        causes: hazard that each kernel gives a change, per unit of its weight.
        exposure: changes that could have caused others, by kernel. exposure_s: time of all pages.
    """
    shared = np.array(SHARED.weights)
    weights, base = shared, SHARED.base
    for _ in range(_ROUNDS):
        share = 1.0 / (base + causes @ weights)
        caused = weights * (causes.T @ share)
        new = (shared * _PRIOR_CHANGES + caused) / (_PRIOR_CHANGES + exposure)
        new_base = (SHARED.base * _PRIOR_S + base * share.sum()) / (_PRIOR_S + exposure_s)
        moved = float(np.abs(new / np.maximum(weights, 1e-12) - 1.0).max())
        weights, base = new, float(new_base)
        if moved < _CONVERGED:
            break
    return Hawkes(base, tuple(weights.tolist()))
