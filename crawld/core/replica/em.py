"""EM without labels: some instances are certain, the rest starts with the other label and flips.

PU: obvious positives are certain; what is unlabelled starts negative and turns positive while
alpha(x, −) ≤ alpha_min of x. NU: obvious negatives are certain, the unlabelled starts positive and
turns negative while alpha(x, +) ≤ alpha_min of x. One procedure serves both: a *certain* label and
the *other* one.

alpha_min of x is the cut of the sorted alphas of its projected training set (the instances that
share a value with it) that leaves the least entropy: the sum over both sides of size · entropy of
the labels there, no side empty.

Passes are batches: alphas and cuts of all, then all flips at once, until nothing flips. This order
is deterministic; one instance after the other made the result depend on their order.

Source: Carvalho 2014, section 3.3, equation 3.8 (whose text says "minimises" for maximises the
gain, and whose program 4 prints the sign of NU the other way round).
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
"""Every pass flips at least one vector for good, so this only guards against a bug."""

_CELLS = 2_000_000
"""Cuts weighed at once: 2 million cells of a few words each."""


@dataclass(frozen=True, slots=True)
class TrainingVectors:
    """What EM starts from, by distinct vector.

    Attributes:
        vectors: distinct vectors, shape (distinct, features).
        certain: instances of each whose label is certain.
        unlabelled: the other instances of each.
        positive: whether the certain label is the positive one (PU) or the negative one (NU).
    """

    vectors: NDArray[np.int64]
    certain: Ids
    unlabelled: Ids
    positive: bool


@dataclass(slots=True)
class EmState:
    """A classifier after its last pass.

    Attributes:
        rules: its rules with their counts.
        flipped: vectors whose unlabelled instances have the certain label now.
        passes: passes it took, the last without a flip included.
    """

    rules: Rules
    flipped: NDArray[np.bool_]
    passes: int


def run_em(training: TrainingVectors, *, alpha_min: float | None = None) -> EmState:
    """Run EM to its end (`em_passes` in one call)."""
    *_, last = em_passes(training, alpha_min=alpha_min)
    return last


def em_passes(training: TrainingVectors, *, alpha_min: float | None = None) -> Iterator[EmState]:
    """Run EM a pass at a time; each value is the state after one.

    Args:
        training: what to start from.
        alpha_min: one threshold for all instead of a cut for each.

    Yields:
        The same object after each pass; the last is final.
    """
    state = EmState(initial_rules(training), np.zeros(len(training.certain), dtype=bool), 0)
    near = None if alpha_min is not None else _Projections(training.vectors)
    while state.passes < MOST_PASSES:
        alpha = _other_alpha(state.rules, positive=training.positive)
        open_to_flip = np.flatnonzero((training.unlabelled > 0) & ~state.flipped)
        if near is None:
            threshold = np.full(len(open_to_flip), alpha_min)
        else:
            labelled = training.certain + np.where(state.flipped, training.unlabelled, 0)
            rest = np.where(state.flipped, 0, training.unlabelled)
            threshold = near.cuts(open_to_flip, alpha, labelled, rest)
        flips = open_to_flip[alpha[open_to_flip] <= threshold]
        for vector in flips.tolist():
            count = int(training.unlabelled[vector])
            state.rules.change(vector, count if training.positive else -count)
        state.flipped[flips] = True
        state.passes += 1
        yield state
        if not len(flips):
            return


def initial_rules(training: TrainingVectors) -> Rules:
    """Return the rules before the first pass; alone they are the classifier without EM."""
    rules = Rules(training.vectors)
    positive = training.certain if training.positive else training.unlabelled
    rules.count(training.certain + training.unlabelled, positive)
    return rules


def _other_alpha(rules: Rules, *, positive: bool) -> Floats:
    """Return alpha of the label that is not the certain one."""
    scores = rules.scores()
    return 1.0 - scores if positive else scores


class _Projections:
    """Which vectors share a value, and the best cut of each one's projected training set."""

    def __init__(self, vectors: NDArray[np.int64]) -> None:
        self._vectors = vectors

    def cuts(self, of: Ids, alpha: Floats, labelled: Ids, rest: Ids) -> Floats:
        """Return alpha_min for each of some vectors.

        Args:
            of: the vectors asked for.
            alpha: alpha of each vector.
            labelled: its instances with the certain label, as things stand.
            rest: its instances with the other label.

        Returns:
            The greatest alpha left of the best cut; below every alpha where there is no cut.
        """
        order = np.argsort(alpha, kind="stable")
        ordered = alpha[order]
        ends = np.append(ordered[1:] > ordered[:-1], False)
        entropy = _Entropy(int(labelled.sum() + rest.sum()))
        found = np.empty(len(of))
        step = max(1, _CELLS // max(1, len(alpha)))
        vectors = self._vectors[order]
        for begin in range(0, len(of), step):
            block = of[begin : begin + step]
            shares = _share_a_value(self._vectors[block], vectors)
            certain = np.cumsum(shares * labelled[order], axis=1)
            other = np.cumsum(shares * rest[order], axis=1)
            found[begin : begin + step] = _best_cut(entropy, certain, other, ends, ordered)
        return found


class _Entropy:
    """n · log₂ n of counts: what entropies times sizes are made of."""

    def __init__(self, most: int) -> None:
        n = np.arange(most + 1, dtype=np.float64)
        self._table = n * np.log2(np.maximum(n, 1.0))

    def of(self, one: Ids, other: Ids) -> Floats:
        """Return size · entropy of groups with so many of one label and of the other."""
        table = self._table
        weighted: Floats = table[one + other] - table[one] - table[other]
        return weighted


def _best_cut(
    entropy: _Entropy, certain: Ids, other: Ids, ends: NDArray[np.bool_], alpha: Floats
) -> Floats:
    all_certain, all_other = certain[:, -1:], other[:, -1:]
    # A cut needs something on each side, of this projection.
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
