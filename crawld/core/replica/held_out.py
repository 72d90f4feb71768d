"""Probabilities validated on held-out pages: which evidence to believe, and how far.

The pages that two hosts have in common are split. One part is *held out*: where it has enough
pages, they tell whether the hosts are replicas. Nested samples of the other part are what a search
may know of a pair: a few texts, or many. On these examples every kind of evidence (the scores of
PU, NU and PNU, or the texts alone) predicts the held-out pages of pairs that it was not fitted on;
the one with the least squared error is used.

A probability is the share of replicas among the examples with the same texts known (their number,
the share that agrees, how common they are) and a score in the same bin, drawn towards that of all
examples with the same texts. Where there are too few of these, nothing is known, and none is given.

Source: Brier 1950 for the error; Zadrozny & Elkan 2001 for binning; James & Stein 1961 for
drawing estimates together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.features import ALL, PairFeatures, SharedContent
from crawld.core.replica.hosts import Ids
from crawld.core.replica.vectors import Floats
from crawld.core.replica.verdict import ROOT_SHARE

LEAST_HELD_OUT = 6
"""Pages held out of a pair before they tell whether its hosts are replicas."""

REPLICA_SHARE = 0.8
"""Share of the held-out pages that agree in a replica, times the share of the paths that two copies
would both have, as far as they were crawled (`SharedContent.expected`), which both have."""

LEAST_EXAMPLES = 20
"""Examples with the same texts known before anything is known of such pairs, and of each label
before any probability is given."""

MOST_PAIRS = 20_000
"""Pairs used as examples."""

TEXT = "text"
"""The name of the evidence without a classifier."""

_COUNTS = (1, 4, 8)
_SHARES = (0.05, 0.3, 0.6, 0.8, 0.95)
_COMMON = 0.5
_QUANTILES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
_KINDS = 4 * (len(_COUNTS) + 1) * (len(_SHARES) + 1)
_PULL_OF_ALL, _PULL_OF_KIND = 2.0, 4.0
_MIX = np.uint64(0x9E3779B97F4A7C15)
_EQUAL = [feature.name for feature in ALL].index("equal")

Scores = Callable[[PairFeatures], Mapping[str, Floats]]
"""Returns the scores of pairs by each classifier, by its name."""


def text_kinds(content: SharedContent, compared: Ids, agreeing: Ids) -> Ids:
    """Return the kind of what is known of the texts of each pair, below `_KINDS`."""
    count = np.searchsorted(np.array(_COUNTS), compared, side="right")
    share = np.searchsorted(np.array(_SHARES), agreeing / np.maximum(compared, 1), side="right")
    common = _is_common(content).astype(np.int64)
    root = (content.root == 0).astype(np.int64)
    inside = ((root * 2 + common) * (len(_COUNTS) + 1) + count) * (len(_SHARES) + 1) + share
    return np.where(compared > 0, inside, 0)


def _is_common(content: SharedContent) -> NDArray[np.bool_]:
    """Return of which pairs the texts that agree are those of many hosts."""
    common: NDArray[np.bool_] = content.telling < _COMMON * content.agreeing
    return common


@dataclass(frozen=True, slots=True)
class _Table:
    """Probability by kind of texts and bin of a score; NaN where nothing is known."""

    edges: Floats
    cells: Floats

    @classmethod
    def of(cls, kind: Ids, score: Floats, label: NDArray[np.bool_]) -> _Table:
        edges = np.unique(np.quantile(score, _QUANTILES)) if len(score) else np.zeros(0)
        bins = len(edges) + 1
        cell = kind * bins + np.searchsorted(edges, score, side="right")
        count = np.bincount(cell, minlength=_KINDS * bins).reshape(_KINDS, bins)
        found = np.bincount(cell, label, minlength=_KINDS * bins).reshape(_KINDS, bins)
        whole = label.mean() if len(label) else 0.0
        of_kind, in_kind = found.sum(axis=1, keepdims=True), count.sum(axis=1, keepdims=True)
        share = (of_kind + _PULL_OF_ALL * whole) / (in_kind + _PULL_OF_ALL)
        cells = (found + _PULL_OF_KIND * share) / (count + _PULL_OF_KIND)
        cells[in_kind[:, 0] < LEAST_EXAMPLES] = np.nan
        return cls(edges, cells)

    def probability(self, kind: Ids, score: Floats) -> Floats:
        found: Floats = self.cells[kind, np.searchsorted(self.edges, score, side="right")]
        return found


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The evidence that predicts held-out pages best, with its table.

    Attributes:
        evidence: `TEXT`, or the name of a classifier's score.
        errors: mean squared error of each kind of evidence on pairs that it was not fitted on.
    """

    evidence: str
    errors: Mapping[str, float]
    table: _Table

    @classmethod
    def of(cls, pairs: PairFeatures, scores: Scores) -> HeldOut | None:
        """Choose and fit; None if the pairs hold too few examples of replicas or of others."""
        content = pairs.content
        held = content.compared - content.sampled[:, -1]
        usable = np.flatnonzero(held >= LEAST_HELD_OUT)
        if len(usable) > MOST_PAIRS:
            usable = usable[:: len(usable) // MOST_PAIRS + 1]
        pairs = pairs.part(usable)
        content = pairs.content
        agreeing = content.agreeing - content.sample_agreeing[:, -1]
        covered = np.minimum(content.common / np.maximum(content.expected, 1.0), 1.0)
        least = np.where(content.root == 0, REPLICA_SHARE + ROOT_SHARE, REPLICA_SHARE)
        is_replica = agreeing * covered >= least * held[usable]
        if min(is_replica.sum(), (~is_replica).sum()) < LEAST_EXAMPLES:
            return None
        levels = content.sampled.shape[1]
        label = np.tile(is_replica, levels)
        mixed = (pairs.keys.astype(np.uint64) * _MIX) >> np.uint64(63)
        fold = np.tile(mixed.astype(bool), levels)
        known = [
            (content.sampled[:, level], content.sample_agreeing[:, level])
            for level in range(levels)
        ]
        kind = np.concatenate([text_kinds(content, *of_level) for of_level in known])
        by_level = [scores(_as_sampled(pairs, *of_level)) for of_level in known]
        columns = {name: np.concatenate([one[name] for one in by_level]) for name in by_level[0]}
        columns = {TEXT: np.zeros(len(kind)), **columns}
        errors = {
            name: _held_out_error(kind, score, label, fold) for name, score in columns.items()
        }
        best = min(errors, key=errors.__getitem__)
        return cls(best, errors, _Table.of(kind, columns[best], label))

    def probability(self, pairs: PairFeatures, scores: Mapping[str, Floats]) -> Floats:
        """Return the probability of pairs, NaN where nothing is known; `scores` are theirs."""
        content = pairs.content
        kind = text_kinds(content, content.compared, content.agreeing)
        score = np.zeros(len(kind)) if self.evidence == TEXT else scores[self.evidence]
        found = self.table.probability(kind, score)
        # Texts of many hosts prove nothing (walls, error pages, parked names), nor do no texts.
        found[(content.compared == 0) | _is_common(content)] = np.nan
        return found


def _as_sampled(pairs: PairFeatures, compared: Ids, agreeing: Ids) -> PairFeatures:
    """Return the pairs as they are if only a sample of their texts is known."""
    values = pairs.values.copy()
    values[:, _EQUAL] = agreeing / np.maximum(compared, 1)
    return PairFeatures(pairs.keys, values, pairs.content)


def _held_out_error(
    kind: Ids, score: Floats, label: NDArray[np.bool_], fold: NDArray[np.bool_]
) -> float:
    """Return the mean squared error on each half of the pairs of a table fitted on the other.

    Where a table knows nothing, the share of replicas among all is taken.
    """
    total = 0.0
    for side in (fold, ~fold):
        table = _Table.of(kind[~side], score[~side], label[~side])
        predicted = table.probability(kind[side], score[side])
        whole = label[~side].mean() if (~side).any() else 0.0
        predicted = np.where(np.isnan(predicted), whole, predicted)
        total += float(((predicted - label[side]) ** 2).sum())
    return total / len(label)
