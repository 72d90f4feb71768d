"""The age-aware change model: a time scale for each page, and one shape for all pages.

The interval between changes of a page is scale x shape. The scale is log-linear in the recent
changes of the page at its last change (decayed counts over 1, 10 and 90 days, its last two gaps,
how long it is known). The shape of gap/scale is pooled over all pages, so that the short gaps of a
burst and the long gap after it are learned from all of them. With the age since the last change,
this gives a conditional survival and a value of a visit that no constant rate can give.

Works on arrays of pages. For a page without changes, time is counted from its first visit.
Source: log-linear (accelerated failure time) regression, e.g. Kalbfleisch & Prentice 2002, ch. 7;
the choice of features is this project's; Buckley & James, Biometrika 1979 (open gaps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crawld.core.change import renewal
from crawld.core.change.decayed_counts import decayed_counts
from crawld.core.change.record import WINDOWS_S, Records
from crawld.core.change.scale_growth import WAITS, fit_growth
from crawld.core.units import DAY_S

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FEATURES = ("constant", "count_1d", "count_10d", "count_90d", "gap", "gap_before", "known")

SHAPE_EDGES = renewal.exponential_edges(44, 4.0455e-4, 2.0**0.5)
"""Edges of gap / scale, from 1/2,500 of the scale to 4,096 of it. Bins twice as wide hide from
INDEX most of what a page with a period tells: .05 to .1 of freshness."""

_GAP_RANGE_S = (60.0, 3650.0 * DAY_S)
_WEIGHT_RANGE_S = (3600.0, 365.0 * DAY_S)
_RIDGE = 3.0
_PAGE_WEIGHT = 50.0
_ROUNDS = 4
_DEFAULT_GAPS = 5.0
"""Intervals that the default shape counts for."""

_SMOOTH_GAPS = 1_000.0
"""Intervals that a shape with bins twice as wide counts for. On a wiki of 59 pages, narrow bins
alone predict changes within a day worse than a constant rate."""

_TAIL_FROM, _TAIL_GAPS = 0.99, 2.0
"""Age in scales from which so many more intervals count as known, at each age: of those that have
lasted so long, which last as long again on average."""

_TAIL_ENDS = 1.0 - (SHAPE_EDGES[:-1] / SHAPE_EDGES[1:]) ** 2
"""Share of them that ends in each bin: survival falls with the square of the age."""


@dataclass(frozen=True, slots=True, eq=False)
class ScaleModel:
    """Weights of the log scale, and the pooled shape.

    Attributes:
        weights: one for each of `FEATURES`; the result is the natural logarithm of seconds.
        shape: distribution of gap / scale, one row.
        growth: logarithm of how the scale of a page grows until its next visit
            (`scale_growth.py`).
    """

    weights: FloatArray
    shape: renewal.Renewal
    growth: FloatArray

    def scale_s(self, records: Records) -> FloatArray:
        """Return the scale of each page, seconds, in the order of `records`."""
        known_s = records["last_change_at"] - records["first_at"]
        rows = features(records["counts"], records["gaps_s"], known_s)
        return _scales(rows, self.weights)

    def mean_s(self, records: Records) -> FloatArray:
        """Return the mean interval between changes after each page's last change, seconds."""
        return np.asarray(self.scale_s(records) * float(self.shape.mean()), np.float64)

    def unchanged(self, records: Records, now: float) -> FloatArray:
        """Return the probability that each page is unchanged since its last visit."""
        scale_s = self.scale_s(records)
        age, since = _ages(records, now)
        return self.shape.conditional_survival(age / scale_s, since / scale_s)

    def as_dict(self) -> dict[str, list[float]]:
        """Return plain values for JSON."""
        return {
            "weights": self.weights.tolist(),
            "mass": self.shape.mass.tolist(),
            "growth": self.growth.tolist(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, list[float]]) -> ScaleModel:
        """Return the model of `as_dict`.

        Raises:
            ValueError: the number of features or bins is of another version.
        """
        weights, mass = np.array(values["weights"]), np.array(values["mass"])
        growth = np.array(values.get("growth", ()))
        sizes = (len(FEATURES),), (len(SHAPE_EDGES) - 1,), (len(WAITS),)
        if (weights.shape, mass.shape, growth.shape) != sizes:
            raise ValueError("a scale model of another version; fit it again")
        return cls(weights, renewal.Renewal(SHAPE_EDGES, mass), growth)


def _ages(records: Records, now: float) -> tuple[FloatArray, FloatArray]:
    age = np.maximum(records["last_visit_at"] - records["last_change_at"], 0.0)
    return age, np.maximum(now - records["last_visit_at"], 0.0)


def features(counts: FloatArray, gaps_s: FloatArray, known_s: FloatArray) -> FloatArray:
    """Return the regression row of each page at its last change.

    Args:
        counts: decayed changes over the `WINDOWS_S`, shape (pages, 3).
        gaps_s: last two gaps, newest first, 0 if missing, shape (pages, 2).
        known_s: time from the start of observation to the last change, shape (pages,).

    Returns:
        Shape (pages, 7), in the order of `FEATURES`; a missing gap is estimated from the counts.
    """
    log_counts = np.log(np.maximum(counts, 0.5))
    usual = math.log(WINDOWS_S[-1]) - log_counts[:, 2]
    log_gaps = np.log(np.clip(gaps_s, *_GAP_RANGE_S))
    log_gaps = np.where(gaps_s > 0, log_gaps, usual[:, None])
    known = np.log(0.05 - np.expm1(-np.maximum(known_s, 0.0) / WINDOWS_S[-1]))
    return np.column_stack((np.ones(len(counts)), log_counts, log_gaps, known))


def fit_scale(changed_at: FloatArray, offsets: IntArray, *, at: float | FloatArray) -> ScaleModel:
    """Fit weights and shape to complete histories.

    Least squares on the logarithm of each gap. A gap still open enters the shape as censored and
    the regression at its expected logarithm under the last shape (Buckley & James), repeatedly. A
    gap is weighted by the square root of its length: visits meet long gaps more often than short
    ones, and unweighted the bursts dominate (measured: worse at every horizon). A page weighs at
    most `_PAGE_WEIGHT` changes. `_RIDGE` pulls towards the default weights, so that few pages give
    a plausible model and no page gives the default.

    Args:
        changed_at: times of changes, page after page, strictly increasing within a page.
        offsets: one more than pages.
        at: time up to which the histories are complete, of all pages or of each, >= every change.

    Returns:
        The model. Cost: about 0.4 us a change; use a sample of a very large site.

    Source: Buckley & James, Biometrika 1979 (censored least squares).
    """
    events = _events(changed_at, offsets, at)
    rows = features(events.counts, events.gaps_s, events.known_s)
    weights, shape = _DEFAULT_WEIGHTS, renewal.Renewal(SHAPE_EDGES, _DEFAULT_SHAPE_MASS)
    if changed_at.size == 0:
        return ScaleModel(weights, shape, np.zeros(len(WAITS)))
    for _ in range(_ROUNDS):
        log_gap = _complete_gaps(events, _scales(rows, weights), shape)
        length_s = np.clip(np.exp(log_gap), *_WEIGHT_RANGE_S)
        weight = events.weight * np.sqrt(length_s)
        weight /= weight.mean()
        weights = _least_squares(rows, log_gap, weight)
        shape = _pooled_shape(events, _scales(rows, weights))
    log_scale = np.log(_scales(rows, weights))
    growth = fit_growth(changed_at, offsets, log_scale, weight, at=at, shape=shape)
    return ScaleModel(weights, shape, growth)


def _scales(rows: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.clip(rows @ weights, 0.0, 25.0)), np.float64)


def _least_squares(rows: FloatArray, log_gap: FloatArray, weight: FloatArray) -> FloatArray:
    pull = np.eye(len(FEATURES)) * _RIDGE
    normal = rows.T @ (rows * weight[:, None]) + pull
    return np.linalg.solve(normal, rows.T @ (log_gap * weight) + pull @ _DEFAULT_WEIGHTS)


def _complete_gaps(events: _Events, scale_s: FloatArray, shape: renewal.Renewal) -> FloatArray:
    """Return the logarithm of every gap; for an open gap, the expected one."""
    log_gap = np.log(np.clip(events.next_s, *_GAP_RANGE_S))
    open_ = events.next_s <= 0
    ages = events.open_s[open_] / scale_s[open_]
    share = renewal.bin_share_beyond(ages, SHAPE_EDGES) * shape.mass
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    guess = share @ _LOG_MIDDLES + np.log(scale_s[open_])
    least = np.log(np.clip(events.open_s[open_], *_GAP_RANGE_S))
    log_gap[open_] = np.clip(guess, least, math.log(_GAP_RANGE_S[1]))
    return log_gap


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """Every change: the state of the page at it, the gap after it (0 = open) and its weight."""

    counts: FloatArray
    gaps_s: FloatArray
    known_s: FloatArray
    next_s: FloatArray
    open_s: FloatArray
    weight: FloatArray


def _events(changed_at: FloatArray, offsets: IntArray, at: float | FloatArray) -> _Events:
    length = np.diff(offsets)
    page_of = np.repeat(np.arange(len(length)), length)
    rank = np.arange(changed_at.size) - offsets[page_of]
    until = np.broadcast_to(at, length.shape)[page_of]
    last = rank == length[page_of] - 1
    step = np.diff(changed_at, append=np.nan)
    before = (
        np.where(rank > 0, np.concatenate(([0.0], step[:-1])), 0.0) if changed_at.size else step
    )
    earlier = np.where(rank > 1, np.concatenate(([0.0], before[:-1])), 0.0) if before.size else step
    return _Events(
        _decayed_counts(before, rank),
        np.column_stack((before, earlier)),
        changed_at - changed_at[offsets[page_of]],
        np.where(last, 0.0, step),
        np.where(last, np.maximum(until - changed_at, 0.0), 0.0),
        np.minimum(1.0, _PAGE_WEIGHT / np.maximum(length[page_of], 1)),
    )


def _decayed_counts(before_s: FloatArray, rank: IntArray) -> FloatArray:
    """Return the decayed counts right after each change: c = c e^(-gap / window) + 1."""
    counts = np.empty((rank.size, len(WINDOWS_S)))
    starts = rank == 0
    for index, window_s in enumerate(WINDOWS_S):
        counts[:, index] = decayed_counts(np.where(starts, 0.0, np.exp(-before_s / window_s)))
    return counts


def _pooled_shape(events: _Events, scale_s: FloatArray) -> renewal.Renewal:
    closed, open_ = events.next_s > 0, events.open_s > 0
    lasted = np.where(closed, events.next_s, events.open_s) / scale_s
    counts = renewal.bin_counts(lasted[closed], SHAPE_EDGES, events.weight[closed])
    estimate = renewal.fit(
        (),
        edges=SHAPE_EDGES,
        open_gaps=lasted[open_],
        open_weights=events.weight[open_],
        prior=counts + _smoothed(counts) + _DEFAULT_SHAPE_MASS * _DEFAULT_GAPS,
    )
    begun = renewal.bin_counts(lasted, SHAPE_EDGES, events.weight)
    return _with_tail(estimate, np.cumsum(begun[::-1])[::-1])


def _with_tail(shape: renewal.Renewal, reached: FloatArray) -> renewal.Renewal:
    """Return a shape whose hazard from one scale on is drawn towards that of the assumed tail.

    Without it, the open interval that is longer than all complete ones lasts to the last edge: a
    page that falls silent teaches that a few intervals in 100,000 last 4,000 scales, and the hope
    for them outweighs the rest in the value of a visit.

    Args:
        reached: weight of the intervals, complete or open, that reached each bin.
    """
    alive = shape.survival_at_edges()[:-1]
    ends = np.divide(shape.mass, alive, out=np.ones_like(alive), where=alive > 0.0)
    drawn = (ends * reached + _TAIL_ENDS * _TAIL_GAPS) / (reached + _TAIL_GAPS)
    ends = np.where(SHAPE_EDGES[:-1] < _TAIL_FROM, ends, drawn)
    ends[-1] = 1.0
    mass = ends * np.concatenate(([1.0], np.cumprod(1.0 - ends[:-1])))
    return renewal.Renewal(SHAPE_EDGES, mass / mass.sum())


def _smoothed(counts: FloatArray) -> FloatArray:
    """Return a prior of `_SMOOTH_GAPS` intervals with the density of pairs of bins."""
    width = np.diff(SHAPE_EDGES)
    of_pairs = np.repeat(counts.reshape(-1, 2).sum(axis=1), 2)
    of_widths = np.repeat(width.reshape(-1, 2).sum(axis=1), 2)
    return np.asarray(of_pairs * width / of_widths * _SMOOTH_GAPS / max(counts.sum(), 1e-9))


# Without data the scale is the mean of what the 90-day count and the gaps suggest. Half of it is
# the mean interval: about 90 days for a page without a known change.
_DEFAULT_WEIGHTS = np.array([0.5 * math.log(90 * DAY_S), 0.0, 0.0, -0.5, 0.25, 0.25, 0.0])
_DEFAULT_SHAPE_MASS = renewal.exponential_mass(np.array(2.0), SHAPE_EDGES)
_LOG_MIDDLES = 0.5 * np.log(SHAPE_EDGES[1:] * np.maximum(SHAPE_EDGES[:-1], 1e-4))
