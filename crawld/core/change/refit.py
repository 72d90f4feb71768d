"""Builds and refits page models in bulk: from histories, with new priors and rates.

Works on arrays of packed records (`record.RECORD_DTYPE`). Each function gives what the single-page
`PageModel` would, up to rounding. A job reads the records, calls `refit` and writes the results.

Invariant: the given records are never changed; results are new arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crawld.core.change import renewal
from crawld.core.change.prior import DEFAULT_PRIOR, GammaPriors, fit_prior
from crawld.core.change.rate import LEAST_COUNT
from crawld.core.change.record import MEMORY_S, RECORD_DTYPE, VERSION, WINDOWS_S, Records
from crawld.core.units import DAY_S

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_ROUNDS = 3
_NEWTON_STEPS = 25


@dataclass(frozen=True, slots=True, eq=False)
class Refit:
    """Refitted models.

    Attributes:
        records: the models with new priors and rates, in the given order.
        priors: the prior of each group.
        rate_per_day: posterior mean rate of each page.
    """

    records: Records
    priors: GammaPriors
    rate_per_day: FloatArray


def refit(records: Records, *, groups: IntArray | None = None) -> Refit:
    """Return new records with the posterior rate of each page, under a prior fitted to each group.

    Censored changes count as their expected number at the current rate, which in turn depends on
    the prior, so both steps are repeated (three rounds are enough for the third digit). The cost is
    linear in pages.

    Args:
        records: page models, an array of `record.RECORD_DTYPE`; visited or not.
        groups: host or section of each page, 0 … G - 1; None = all in one group.
    """
    fitted = records.copy()
    group_of = np.zeros(len(records), np.int64) if groups is None else groups
    evidence = _Evidence.of(records)
    priors = GammaPriors(np.array([DEFAULT_PRIOR.shape]), np.array([DEFAULT_PRIOR.exposure_s]))
    rate = records["rate"].astype(np.float64)
    for _ in range(_ROUNDS):
        changes = evidence.certain + evidence.changed * _expected(rate * evidence.interval_s)
        priors = fit_prior(changes, evidence.exposure_s, groups=group_of, steps=12)
        rate = evidence.rate(priors.shape[group_of], priors.exposure_s[group_of])
    fitted["prior_shape"] = priors.shape[group_of]
    fitted["prior_exposure_s"] = priors.exposure_s[group_of]
    fitted["rate"] = rate
    return Refit(fitted, priors, rate * DAY_S)


@dataclass(frozen=True, slots=True, eq=False)
class _Evidence:
    """`rate.RateEvidence` of many pages: exact and censored changes, and their exposure."""

    certain: FloatArray
    changed: FloatArray
    interval_s: FloatArray
    exposure_s: FloatArray

    @classmethod
    def of(cls, records: Records) -> _Evidence:
        changed = records["changed"].astype(np.float64)
        changed_s = records["changed_s"].astype(np.float64)
        interval_s = np.divide(
            changed_s, changed, out=np.zeros_like(changed), where=changed >= LEAST_COUNT
        )
        exposure_s = records["exact_exposure_s"] + changed_s + records["unchanged_s"]
        return cls(records["exact_changes"].astype(np.float64), changed, interval_s, exposure_s)

    def rate(self, shape: FloatArray, prior_exposure_s: FloatArray) -> FloatArray:
        """Return the posterior mean rate, as `rate.posterior` does, for all pages at once."""
        certain = shape + self.certain
        exposure_s = prior_exposure_s + self.exposure_s
        rate = np.asarray((certain + self.changed) / exposure_s, np.float64)
        open_ = np.flatnonzero((self.changed >= LEAST_COUNT) & (self.interval_s > 0))
        part, certain, exposure_s = rate[open_], certain[open_], exposure_s[open_]
        changed, interval_s = self.changed[open_], self.interval_s[open_]
        for _ in range(_NEWTON_STEPS if open_.size else 0):
            expected = part * interval_s
            gap = certain + changed * _expected(expected) - part * exposure_s
            step = gap / (changed * interval_s * _expected_slope(expected) - exposure_s)
            part = np.where(part > step, part - step, 0.5 * part)
            if float(np.max(np.abs(step) / part)) < 1e-9:
                break
        rate[open_] = part
        return rate


def _expected(x: FloatArray) -> FloatArray:
    small = x < 1e-6
    safe = np.where(small, 1.0, x)
    return np.where(small, 1.0 + 0.5 * x, safe / -np.expm1(-safe))


def _expected_slope(x: FloatArray) -> FloatArray:
    small = x < 1e-3
    safe = np.where(small, 1.0, np.minimum(x, 700.0))
    kept = -np.expm1(-safe)
    return np.where(small, 0.5 + x / 6.0, (kept - safe * np.exp(-safe)) / (kept * kept))


def from_histories(changed_at: FloatArray, offsets: IntArray, *, at: float) -> Records:
    """Build the models of pages whose every change up to `at` is known.

    Equals `PageModel.observe_changes` on new models, for all pages at once. It also serves one page
    with a long history (a backfill), whose visit counts the caller then carries over.

    Args:
        changed_at: times of changes, page after page, strictly increasing within a page; the first
            of a page is its creation. All <= `at`.
        offsets: one more than pages; page i owns `changed_at[offsets[i]:offsets[i + 1]]`.

    Returns:
        An array of `record.RECORD_DTYPE`; a page without changes counts as never seen.
    """
    pages = len(offsets) - 1
    records = blank_records(pages)
    length = np.diff(offsets)
    seen = np.flatnonzero(length)
    page_of = np.repeat(np.arange(pages), length)
    first_at, last_at = changed_at[offsets[seen]], changed_at[offsets[seen + 1] - 1]
    records["change_known"][seen] = 1
    records["visits"][seen] = 1
    records["changed_visits"][seen] = length[seen] > 1
    records["first_at"][seen] = first_at
    records["last_visit_at"][seen] = at
    records["last_change_at"][seen] = last_at
    _enter_counts(records, changed_at, page_of)
    _enter_gaps(records, changed_at, offsets, page_of, at=at)
    _enter_evidence(records, changed_at, page_of, at=at)
    prior_shape = records["prior_shape"].astype(np.float64)
    prior_exposure_s = records["prior_exposure_s"].astype(np.float64)
    records["rate"] = _Evidence.of(records).rate(prior_shape, prior_exposure_s)
    return records


def blank_records(pages: int) -> Records:
    """Return the models of pages never seen."""
    records = np.zeros(pages, dtype=RECORD_DTYPE)
    records["version"] = VERSION
    records["prior_shape"] = DEFAULT_PRIOR.shape
    records["prior_exposure_s"] = DEFAULT_PRIOR.exposure_s
    records["rate"] = DEFAULT_PRIOR.mean
    return records


def _enter_counts(records: Records, changed_at: FloatArray, page_of: IntArray) -> None:
    back_s = records["last_change_at"][page_of] - changed_at
    for index, window_s in enumerate(WINDOWS_S):
        decayed = np.bincount(page_of, np.exp(-back_s / window_s), minlength=len(records))
        records["counts"][:, index] = decayed


def _enter_gaps(
    records: Records, changed_at: FloatArray, offsets: IntArray, page_of: IntArray, *, at: float
) -> None:
    inside = np.diff(page_of) == 0
    gaps, gap_page = np.diff(changed_at)[inside], page_of[1:][inside]
    cell = np.clip(np.searchsorted(renewal.EDGES_S, gaps, side="right") - 1, 0, renewal.BINS - 1)
    weights = np.exp((changed_at[1:][inside] - at) / MEMORY_S)
    cells = np.bincount(
        gap_page * renewal.BINS + cell, weights, minlength=len(records) * renewal.BINS
    )
    records["bins"] = cells.reshape(-1, renewal.BINS)
    for index in range(2):
        enough = np.flatnonzero(np.diff(offsets) > index + 1)
        end = offsets[enough + 1] - 1 - index
        records["gaps_s"][enough, index] = changed_at[end] - changed_at[end - 1]


def _enter_evidence(
    records: Records, changed_at: FloatArray, page_of: IntArray, *, at: float
) -> None:
    span_s = np.where(records["visits"] > 0, at - records["first_at"], 0.0)
    later = changed_at > records["first_at"][page_of]
    weights = np.exp((changed_at[later] - at) / MEMORY_S)
    records["exact_changes"] = np.bincount(page_of[later], weights, minlength=len(records))
    records["exact_exposure_s"] = MEMORY_S * -np.expm1(-span_s / MEMORY_S)


def fit_renewals(records: Records) -> renewal.Renewal:
    """Return `PageModel.renewal` of many pages, in the order of `records`."""
    prior = renewal.exponential_mass(records["rate"].astype(np.float64)) + 1e-3
    open_gap_s = np.maximum(records["last_visit_at"] - records["last_change_at"], 0.0)
    return renewal.fit_counts(records["bins"].astype(np.float64), open_gap_s, prior=prior)
