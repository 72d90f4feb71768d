"""The lazy associative classifier, over distinct vectors with counts and with integer rules.

A rule is a set of features with their values and counts the instances it covers (`total`) and
those of them that are positive. For an instance every rule whose body is a non-empty part of its
values votes with confidence positive/total; its score is the mean of the votes, alpha of the other
label one minus it. Rules are never mined again: those of a vector are looked up once in a table,
and a label that changes touches those rules only, with integers, so that any sequence of changes
leaves exactly the counts of a rebuild.

Source: Veloso, Meira & Zaki 2006 (lazy associative classification); Carvalho 2014, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.hosts import Ids
from crawld.core.replica.vectors import Floats

_PART = 256
"""Vectors whose rules are numbered at one go."""

_DIGITS = 12
"""Scores are rounded to this many decimals, so that equal counts are equal scores."""


@dataclass(frozen=True, slots=True)
class DistinctVectors:
    """Distinct vectors among many.

    Attributes:
        vectors: shape (distinct, features), in lexicographic order.
        number: which of them each instance is.
        count: instances of each.
    """

    vectors: NDArray[np.int64]
    number: Ids
    count: Ids

    @classmethod
    def of(cls, vectors: NDArray[np.int64]) -> DistinctVectors:
        """Return the distinct rows of some vectors."""
        # One number a row: sorting rows as such takes ten times as long.
        digits = (int(vectors.max(initial=0)) + 1) ** np.arange(vectors.shape[1])[::-1]
        _, first, number, count = np.unique(
            vectors @ digits, return_index=True, return_inverse=True, return_counts=True
        )
        return cls(vectors[first], number, count)

    def counted(self, which: NDArray[np.bool_]) -> Ids:
        """Return how many of some of the instances each distinct vector stands for."""
        return np.bincount(self.number[which], minlength=len(self.vectors))


class Rules:
    """The rules of some vectors and their counts."""

    def __init__(self, vectors: NDArray[np.int64]) -> None:
        """Number the rules that distinct vectors take part in; every count is 0."""
        count, width = vectors.shape
        base = int(vectors.max(initial=0)) + 2
        bodies = (np.arange(1, 2**width)[:, None] >> np.arange(width)) & 1
        # A value is a digit above 0 and a feature outside the body the digit 0.
        digits = (vectors + 1) * base ** np.arange(width)
        # By parts, since a product of integer matrices holds the interpreter until it is done.
        keys = [digits[at : at + _PART] @ bodies.T for at in range(0, count, _PART)]
        self.keys, number = np.unique(np.concatenate(keys), return_inverse=True)
        self.table: NDArray[np.int32] = number.reshape(count, -1).astype(np.int32)
        self.total = np.zeros(len(self.keys), dtype=np.int64)
        self.positive = np.zeros(len(self.keys), dtype=np.int64)
        self._width, self._base, self._bodies = width, base, bodies

    def count(self, total: Ids, positive: Ids) -> None:
        """Count everything from nothing: instances of each vector, and the positive ones."""
        rules, bodies = self.table.ravel(), self.table.shape[1]
        for counts, of in ((self.total, total), (self.positive, positive)):
            # Sums of integers below 2⁵³ are exact in floats, and this is faster than `np.add.at`.
            counts[:] = np.bincount(rules, np.repeat(of, bodies), minlength=len(counts))

    def change(self, vector: int, positive: int) -> None:
        """Take the positive instances of one vector to be that many more, or fewer."""
        # The rules of a vector are all different, so plain indexing adds to each.
        self.positive[self.table[vector]] += positive

    def scores(self) -> Floats:
        """Return the score of the positive label for each vector: the mean vote of its rules."""
        confidence = self.positive / np.maximum(self.total, 1)
        return _rounded(_votes(confidence, self.total > 0, self.table))

    def score(self, vectors: NDArray[np.int64]) -> Floats:
        """Return the scores of other vectors, by the rules that are known of theirs.

        A body never seen has no vote; a vector of which no rule is known scores 0.
        """
        inside = np.minimum(vectors, self._base - 2)
        wanted = ((inside + 1) * self._base ** np.arange(self._width)) @ self._bodies.T
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        known = (self.keys[at] == wanted) & (self.total[at] > 0)
        votes = np.where(known, self.positive[at] / np.maximum(self.total[at], 1), 0.0)
        return _rounded(votes.sum(axis=1) / np.maximum(known.sum(axis=1), 1))


def _rounded(scores: Floats) -> Floats:
    rounded: Floats = np.round(scores, _DIGITS)
    return rounded


def _votes(confidence: Floats, seen: NDArray[np.bool_], table: NDArray[np.int32]) -> Floats:
    known = seen[table]
    votes = np.where(known, confidence[table], 0.0).sum(axis=1)
    mean: Floats = votes / np.maximum(known.sum(axis=1), 1)
    return mean


def supervised_scores(vectors: DistinctVectors, truth: NDArray[np.bool_]) -> Floats:
    """Return the score of each instance by the classifier that is told the true labels."""
    rules = Rules(vectors.vectors)
    rules.count(vectors.count, vectors.counted(truth))
    return rules.scores()[vectors.number]
