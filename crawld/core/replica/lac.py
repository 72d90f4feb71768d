"""The lazy associative classifier, on distinct vectors with instance counts.

A rule is a set of features with values. It counts the instances it covers (`total`) and the
positive ones among them. For an instance, every rule whose body is a non-empty part of its values
votes with confidence positive/total; the score is the mean of the votes, and alpha of the other
label is one minus the score. Rules are never mined again: those of a vector are looked up once in a
table, and a changed label updates only their integer counts, so that any sequence of changes gives
exactly the counts of a rebuild.

Source: Veloso, Meira & Zaki 2006 (lazy associative classification); Carvalho 2014, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.hosts import Ids
from crawld.core.replica.vectors import Floats

_PART = 256
"""Vectors whose rules are numbered at once."""

_DIGITS = 12
"""Scores are rounded to this many decimals, so that equal counts are equal scores."""


@dataclass(frozen=True, slots=True)
class DistinctVectors:
    """The distinct vectors of many instances.

    Attributes:
        vectors: shape (distinct, features), in lexicographic order.
        number: index of the vector of each instance.
        count: number of instances of each vector.
    """

    vectors: NDArray[np.int64]
    number: Ids
    count: Ids

    @classmethod
    def of(cls, vectors: NDArray[np.int64]) -> DistinctVectors:
        """Return the distinct rows of some vectors."""
        # One number per row: sorting the rows themselves takes ten times as long.
        digits = (int(vectors.max(initial=0)) + 1) ** np.arange(vectors.shape[1])[::-1]
        _, first, number, count = np.unique(
            vectors @ digits, return_index=True, return_inverse=True, return_counts=True
        )
        return cls(vectors[first], number, count)

    def count_among(self, which: NDArray[np.bool_]) -> Ids:
        """Return the number of instances of each distinct vector among some of the instances."""
        return np.bincount(self.number[which], minlength=len(self.vectors))


class Rules:
    """The rules of some vectors and their counts."""

    def __init__(self, vectors: NDArray[np.int64]) -> None:
        """Number the rules of distinct vectors; all counts are 0."""
        count, width = vectors.shape
        base = int(vectors.max(initial=0)) + 2
        bodies = (np.arange(1, 2**width)[:, None] >> np.arange(width)) & 1
        # A value is a digit above 0; a feature outside the body is the digit 0.
        digits = (vectors + 1) * base ** np.arange(width)
        # In parts, since a product of integer matrices holds the interpreter lock until it is done.
        keys = [digits[at : at + _PART] @ bodies.T for at in range(0, count, _PART)]
        self.keys, number = np.unique(np.concatenate(keys), return_inverse=True)
        self.table: NDArray[np.int32] = number.reshape(count, -1).astype(np.int32)
        self.total = np.zeros(len(self.keys), dtype=np.int64)
        self.positive = np.zeros(len(self.keys), dtype=np.int64)
        self._width, self._base, self._bodies = width, base, bodies

    def count(self, total: Ids, positive: Ids) -> None:
        """Set all counts, from the instances of each vector and the positive ones."""
        rules, bodies = self.table.ravel(), self.table.shape[1]
        for counts, of in ((self.total, total), (self.positive, positive)):
            # Sums of integers below 2⁵³ are exact in floats, and this is faster than `np.add.at`.
            counts[:] = np.bincount(rules, np.repeat(of, bodies), minlength=len(counts))

    def add_positive(self, vector: int, positive: int) -> None:
        """Add a number of positive instances, possibly negative, to one vector."""
        # The rules of a vector are distinct, so that plain indexing adds to each.
        self.positive[self.table[vector]] += positive

    def scores(self) -> Floats:
        """Return the score of the positive label for each vector: the mean vote of its rules."""
        confidence = self.positive / np.maximum(self.total, 1)
        return _rounded(_votes(confidence, self.total > 0, self.table))

    def score(self, vectors: NDArray[np.int64]) -> Floats:
        """Return the scores of other vectors, by their known rules.

        Unknown rules do not vote; a vector without known rules scores 0.
        """
        # In parts, as above.
        parts = [self._score(vectors[at : at + _PART]) for at in range(0, len(vectors), _PART)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _score(self, vectors: NDArray[np.int64]) -> Floats:
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
    """Return the score of each instance by a classifier trained on the true labels."""
    rules = Rules(vectors.vectors)
    rules.count(vectors.count, vectors.count_among(truth))
    return rules.scores()[vectors.number]
