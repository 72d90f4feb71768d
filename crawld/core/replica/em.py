"""EM without labelled data: some instances have a certain label, the others can flip to it.

PU: obvious positives are certain; unlabelled instances start negative and turn positive while
alpha(x, −) ≤ alpha_min of x. NU: obvious negatives are certain; unlabelled instances start positive
and turn negative while alpha(x, +) ≤ alpha_min of x. One procedure serves both: a *certain* label
and the *other* one.

alpha_min of x is the cut of the sorted alphas of its projected training set (the instances that
share a value with it) with the least entropy: the sum over both sides of size · entropy of the
labels there, no side empty.

Each pass is a batch: alphas and cuts of all, then all flips at once; EM ends when nothing flips.
This is deterministic; flipping instances one by one made the result depend on their order.

Source: Carvalho 2014, section 3.3, equation 3.8 (whose text says "minimises" for maximises the
gain, and whose program 4 prints the sign of NU reversed).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.hosts import Ids
from crawld.core.replica.lac import Rules
from crawld.core.replica.vectors import Floats

MOST_PASSES = 200
"""Guards against a bug only: every pass but the last permanently flips at least one vector."""

_CELLS = 500_000
"""Cuts computed at once: cells of a few words each. With more, memory grows and time does not."""


@dataclass(frozen=True, slots=True)
class TrainingVectors:
    """Input of EM, by distinct vector.

    Attributes:
        vectors: distinct vectors, shape (distinct, features).
        certain: number of instances of each with a certain label.
        unlabelled: number of the other instances of each.
        positive: whether the certain label is the positive one (PU) or the negative one (NU).
    """

    vectors: NDArray[np.int64]
    certain: Ids
    unlabelled: Ids
    positive: bool


@dataclass(slots=True)
class EmState:
    """A classifier after a pass.

    Attributes:
        flipped: vectors whose unlabelled instances now have the certain label.
        passes: number of passes, including the last, which flips nothing.
    """

    rules: Rules
    flipped: NDArray[np.bool_]
    passes: int


def run_em(training: TrainingVectors, *, alpha_min: float | None = None) -> EmState:
    """Run EM to its end (`em_passes` in one call)."""
    *_, last = em_passes(training, alpha_min=alpha_min)
    return last


def em_passes(training: TrainingVectors, *, alpha_min: float | None = None) -> Iterator[EmState]:
    """Run EM and yield the same object after each pass; the last is final.

    `alpha_min` is one threshold for all vectors; None: a cut per vector.
    """
    state = EmState(initial_rules(training), np.zeros(len(training.certain), dtype=bool), 0)
    while state.passes < MOST_PASSES:
        alpha = _other_alpha(state.rules, positive=training.positive)
        open_to_flip = np.flatnonzero((training.unlabelled > 0) & ~state.flipped)
        if alpha_min is not None:
            threshold = np.full(len(open_to_flip), alpha_min)
        else:
            labelled = training.certain + np.where(state.flipped, training.unlabelled, 0)
            rest = np.where(state.flipped, 0, training.unlabelled)
            threshold = _cuts(training.vectors, open_to_flip, alpha, labelled, rest)
        flips = open_to_flip[alpha[open_to_flip] <= threshold]
        for vector in flips.tolist():
            count = int(training.unlabelled[vector])
            state.rules.add_positive(vector, count if training.positive else -count)
        state.flipped[flips] = True
        state.passes += 1
        yield state
        if not len(flips):
            return


def initial_rules(training: TrainingVectors) -> Rules:
    """Return the rules before the first pass: the classifier without EM."""
    rules = Rules(training.vectors)
    positive = training.certain if training.positive else training.unlabelled
    rules.count(training.certain + training.unlabelled, positive)
    return rules


def _other_alpha(rules: Rules, *, positive: bool) -> Floats:
    """Return alpha of the other label."""
    scores = rules.scores()
    return 1.0 - scores if positive else scores


def _cuts(vectors: NDArray[np.int64], of: Ids, alpha: Floats, labelled: Ids, rest: Ids) -> Floats:
    """Return alpha_min for some of the vectors, from their projected training sets.

    Args:
        of: their indices.
        labelled: number of its instances that now have the certain label.
        rest: number of its instances with the other label.

    Returns:
        The greatest alpha below the best cut; less than every alpha if there is no cut.
    """
    order = np.argsort(alpha, kind="stable")
    ordered = alpha[order]
    ends = np.append(ordered[1:] > ordered[:-1], False)
    entropy = _Entropy(int(labelled.sum() + rest.sum()))
    found = np.empty(len(of))
    step = max(1, _CELLS // max(1, len(alpha)))
    ordered_vectors = vectors[order]
    for begin in range(0, len(of), step):
        block = of[begin : begin + step]
        shares = _share_a_value(vectors[block], ordered_vectors)
        certain = np.cumsum(shares * labelled[order], axis=1)
        other = np.cumsum(shares * rest[order], axis=1)
        found[begin : begin + step] = _best_cut(entropy, certain, other, ends, ordered)
    return found


class _Entropy:
    """Table of n · log₂ n, from which size · entropy is computed."""

    def __init__(self, most: int) -> None:
        n = np.arange(most + 1, dtype=np.float64)
        self._table = n * np.log2(np.maximum(n, 1.0))

    def of(self, one: Ids, other: Ids) -> Floats:
        """Return size · entropy of groups with these counts of the two labels."""
        table = self._table
        weighted: Floats = table[one + other] - table[one] - table[other]
        return weighted


def _best_cut(
    entropy: _Entropy, certain: Ids, other: Ids, ends: NDArray[np.bool_], alpha: Floats
) -> Floats:
    all_certain, all_other = certain[:, -1:], other[:, -1:]
    # A cut needs an instance of this projection on each side.
    left = certain + other
    allowed = ends & (left > 0) & (left < all_certain + all_other)
    cost = entropy.of(certain, other) + entropy.of(all_certain - certain, all_other - other)
    cost[~allowed] = np.inf
    best = np.argmin(cost, axis=1)
    has = np.isfinite(cost[np.arange(len(cost)), best])
    return np.where(has, alpha[best], -1.0)


def _share_a_value(some: NDArray[np.int64], vectors: NDArray[np.int64]) -> NDArray[np.bool_]:
    shares = np.zeros((len(some), len(vectors)), dtype=bool)
    for column in range(vectors.shape[1]):
        shares |= some[:, column : column + 1] == vectors[:, column]
    return shares
