"""The age-aware model: each page a scale of time of its own, all pages one shape.

The interval between changes of a page is scale x shape: the scale is log-linear in what the page
did lately (decayed counts over 1, 10 and 90 days, its last two gaps, how long it is known), taken
at its last change; the shape of gap/scale is pooled over all pages, so that a burst's short gaps
and its long silence afterwards are learnt from everybody. With the age since the last change it
gives the conditional survival, and the value of a visit, that no constant rate can.

Knows arrays over pages; a page without any change yet counts from its first sight.
Source: log-linear (accelerated failure time) regression, e.g. Kalbfleisch & Prentice 2002, ch. 7;
the choice of features is this project's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crawld.core.change import renewal
from crawld.core.change.record import DAY_S, WINDOWS_S, Records

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FEATURES = ("constant", "count_1d", "count_10d", "count_90d", "gap", "gap_before", "known")

SHAPE_EDGES = renewal.exponential_edges(28, 1.0 / 1024.0, 2.0)
"""Edges of gap / scale: from a thousandth of the scale to 260,000 of it."""

_GAP_RANGE_S = (60.0, 3650.0 * DAY_S)
_RIDGE = 3.0
_PAGE_WEIGHT = 50.0


@dataclass(frozen=True, slots=True, eq=False)
class ScaleModel:
    """Weights of the log scale and the pooled shape.

    Attributes:
        weights: one a name in `FEATURES`; natural logarithm of seconds.
        shape: distribution of gap / scale, one row.
    """

    weights: FloatArray
    shape: renewal.Renewal

    def scale_s(self, records: Records) -> FloatArray:
        """Return the scale of each page, seconds, in the order of `records`."""
        known_s = records["last_change_at"] - records["first_at"]
        rows = features(records["counts"], records["gaps_s"], known_s)
        return np.asarray(np.exp(np.clip(rows @ self.weights, 0.0, 25.0)), np.float64)

    def mean_s(self, records: Records) -> FloatArray:
        """Return the mean interval between changes after a change like each page's last."""
        return np.asarray(self.scale_s(records) * float(self.shape.mean()), np.float64)

    def unchanged(self, records: Records, now: float) -> FloatArray:
        """Return the probability that each page is as it was at its last visit."""
        scale_s = self.scale_s(records)
        age, since = _ages(records, now)
        return self.shape.conditional_survival(age / scale_s, since / scale_s)

    def visit_value_s(self, records: Records, now: float) -> FloatArray:
        """Return the age-aware marginal value W of visiting each page now, seconds."""
        scale_s = self.scale_s(records)
        age, since = _ages(records, now)
        return scale_s * self.shape.visit_value_at(age / scale_s, since / scale_s)

    def as_dict(self) -> dict[str, list[float]]:
        """Return plain values for JSON."""
        return {"weights": self.weights.tolist(), "mass": self.shape.mass.tolist()}

    @classmethod
    def from_dict(cls, values: dict[str, list[float]]) -> ScaleModel:
        """Return the model of `as_dict`.

        Raises:
            ValueError: another number of features or bins than this version has.
        """
        weights, mass = np.array(values["weights"]), np.array(values["mass"])
        if weights.shape != (len(FEATURES),) or mass.shape != (len(SHAPE_EDGES) - 1,):
            raise ValueError("a scale model of another version; fit it again")
        return cls(weights, renewal.Renewal(SHAPE_EDGES, mass))


def _ages(records: Records, now: float) -> tuple[FloatArray, FloatArray]:
    age = np.maximum(records["last_visit_at"] - records["last_change_at"], 0.0)
    return age, np.maximum(now - records["last_visit_at"], 0.0)


def features(counts: FloatArray, gaps_s: FloatArray, known_s: FloatArray) -> FloatArray:
    """Return the regression row of each page at its last change.

    Args:
        counts: decayed changes over the `WINDOWS_S`, shape (pages, 3).
        gaps_s: last two gaps, newest first, 0 where missing, shape (pages, 2).
        known_s: time from the start of observation to the last change, shape (pages,).

    Returns:
        Shape (pages, 7), in the order of `FEATURES`; a missing gap is what the counts suggest.
    """
    log_counts = np.log(np.maximum(counts, 0.5))
    usual = math.log(WINDOWS_S[-1]) - log_counts[:, 2]
    log_gaps = np.log(np.clip(gaps_s, *_GAP_RANGE_S))
    log_gaps = np.where(gaps_s > 0, log_gaps, usual[:, None])
    known = np.log(0.05 - np.expm1(-np.maximum(known_s, 0.0) / WINDOWS_S[-1]))
    return np.column_stack((np.ones(len(counts)), log_counts, log_gaps, known))


def fit_scale(instants: FloatArray, offsets: IntArray, *, at: float) -> ScaleModel:
    """Fit weights and shape to complete histories.

    Least squares on the logarithm of each gap, gaps still open entering the shape as censored. A
    page with many changes weighs as `_PAGE_WEIGHT` of them; `_RIDGE` pulls towards `usual gap`,
    so that few pages give a sane model and none the default one.

    Args:
        instants: change instants, page after page, strictly increasing inside a page.
        offsets: one more than pages.
        at: instant up to which the histories are complete, >= every instant.

    Returns:
        The model.
    """
    events = _events(instants, offsets, at)
    rows = features(events.counts, events.gaps_s, events.known_s)
    closed = events.next_s > 0
    x = rows[closed]
    y = np.log(np.clip(events.next_s[closed], *_GAP_RANGE_S))
    weight = events.weight[closed]
    pull = np.eye(len(FEATURES)) * _RIDGE
    normal = x.T @ (x * weight[:, None]) + pull
    weights = np.linalg.solve(normal, x.T @ (y * weight) + pull @ _DEFAULT_WEIGHTS)
    scale_s = np.exp(np.clip(rows @ weights, 0.0, 25.0))
    shape = _pooled_shape(events, scale_s)
    return ScaleModel(weights, shape)


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """Every change: the page's state at it, the gap that followed (0 = open) and its weight."""

    counts: FloatArray
    gaps_s: FloatArray
    known_s: FloatArray
    next_s: FloatArray
    open_s: FloatArray
    weight: FloatArray


def _events(instants: FloatArray, offsets: IntArray, at: float) -> _Events:
    length = np.diff(offsets)
    page_of = np.repeat(np.arange(len(length)), length)
    rank = np.arange(instants.size) - offsets[page_of]
    last = rank == length[page_of] - 1
    step = np.diff(instants, append=np.nan)
    before = np.where(rank > 0, np.concatenate(([0.0], step[:-1])), 0.0) if instants.size else step
    earlier = np.where(rank > 1, np.concatenate(([0.0], before[:-1])), 0.0) if before.size else step
    return _Events(
        _decayed_counts(before, rank),
        np.column_stack((before, earlier)),
        instants - instants[offsets[page_of]],
        np.where(last, 0.0, step),
        np.where(last, np.maximum(at - instants, 0.0), 0.0),
        np.minimum(1.0, _PAGE_WEIGHT / np.maximum(length[page_of], 1)),
    )


def _decayed_counts(before_s: FloatArray, rank: IntArray) -> FloatArray:
    """Return the decayed counts right after each change: c = c e^(-gap / window) + 1."""
    counts = np.empty((rank.size, len(WINDOWS_S)))
    starts = rank == 0
    for index, window_s in enumerate(WINDOWS_S):
        kept = np.where(starts, 0.0, np.exp(-before_s / window_s)).tolist()
        count = 0.0
        column = []
        for share in kept:
            count = count * share + 1.0
            column.append(count)
        counts[:, index] = column
    return counts


def _pooled_shape(events: _Events, scale_s: FloatArray) -> renewal.Renewal:
    closed = events.next_s > 0
    at = np.searchsorted(SHAPE_EDGES, events.next_s[closed] / scale_s[closed], side="right") - 1
    bins = len(SHAPE_EDGES) - 1
    counts = np.bincount(np.clip(at, 0, bins - 1), events.weight[closed], minlength=bins)
    open_ = events.open_s > 0
    return renewal.fit(
        (),
        edges=SHAPE_EDGES,
        open_gaps=events.open_s[open_] / scale_s[open_],
        prior=counts + _DEFAULT_SHAPE_MASS * 5.0,
    )


_DEFAULT_WEIGHTS = np.array([math.log(45 * DAY_S), 0.0, 0.0, -0.5, 0.25, 0.25, 0.0])
_DEFAULT_SHAPE_MASS = renewal.exponential_mass(np.array(0.5), SHAPE_EDGES)
