"""Cross-validation of the replica classifiers, their curves, and NU with few obvious negatives.

The upper bound is a classifier trained on the truth, so it is scored on pairs that it was not
trained on: each tenth of the pairs by the other nine. PU, NU and PNU see no truth; the same tenths
give them an area each, and Wilcoxon's signed rank test compares two classifiers over the tenths.

Source: Carvalho 2014, chapter 4 (ten-fold cross-validation, Wilcoxon's test, ROC and
precision-recall curves).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.baselines import area_under_roc
from crawld.core.replica.em import TrainingVectors, run_em
from crawld.core.replica.features import FIVE, Feature
from crawld.core.replica.hosts import Ids
from crawld.core.replica.lac import DistinctVectors, Rules
from crawld.core.replica.learning import distinct_vectors
from crawld.core.replica.pareto import count_dominated
from crawld.core.replica.vectors import Floats
from crawld.lab.replicas import Trial

FOLDS: Final = 10

FALSE_RATE_GRID: Final = (1e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5)
RECALL_GRID: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

NEGATIVE_SHARES: Final = (1.0, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Shares of the obvious negatives that NU is trained with."""


def folds_of(trial: Trial, seed: int) -> Ids:
    """Return the fold of each candidate; each has as many replicas, as far as they divide."""
    random = np.random.default_rng([seed, 11])
    fold = np.zeros(len(trial.truth), np.int64)
    for kind in (trial.truth, ~trial.truth):
        at = np.flatnonzero(kind)
        fold[at] = random.permutation(len(at)) % FOLDS
    return fold


def held_out_upper(trial: Trial, features: Sequence[Feature], fold: Ids) -> Floats:
    """Return the scores of a classifier trained on the truth of the other folds."""
    vectors = DistinctVectors.of(trial.sets.candidates.bins(features))
    rules = Rules(vectors.vectors)
    scores = np.zeros(len(trial.truth))
    for number in range(FOLDS):
        others = fold != number
        rules.count(vectors.count_among(others), vectors.count_among(others & trial.truth))
        scores[~others] = rules.score(vectors.vectors)[vectors.number[~others]]
    return scores


def fold_areas(trial: Trial, scores: Floats | Ids, fold: Ids) -> list[float]:
    """Return the area under the ROC curve on each fold, without obvious positives."""
    inside = [trial.judged & (fold == number) for number in range(FOLDS)]
    return [area_under_roc(scores[part], trial.truth[part]) for part in inside]


def signed_rank_test(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the two-sided probability of differences like these, were there none in truth.

    Exact, by all signs: the number of folds is small. Equal values are left out.

    Source: Wilcoxon, Biometrics Bulletin 1945.

    >>> signed_rank_test([2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 1.0, 1.0, 1.0, 1.0])
    0.0625
    """
    apart = np.array(one) - np.array(other)
    apart = apart[apart != 0.0]
    if len(apart) == 0:
        return 1.0
    _, place, count = np.unique(np.abs(apart), return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2.0)[place]
    signs = np.array(list(product((0, 1), repeat=len(rank))))
    sums = signs @ rank
    found = float(rank[apart > 0].sum())
    least = min(found, float(rank.sum()) - found)
    return min(1.0, 2.0 * float(np.mean(sums <= least + 1e-9)))


def roc_points(trial: Trial, scores: Floats | Ids) -> list[float]:
    """Return the share of replicas found at each false-positive rate of the grid."""
    others = np.sort(scores[trial.judged & ~trial.truth])
    replicas = scores[trial.judged & trial.truth]
    at = [len(others) - 1 - int(rate * len(others)) for rate in FALSE_RATE_GRID]
    return [float((replicas > others[max(place, 0)]).mean()) for place in at]


def precision_points(trial: Trial, scores: Floats | Ids) -> list[float]:
    """Return the precision at each recall of the grid."""
    replicas = np.sort(scores[trial.judged & trial.truth])[::-1]
    others = np.sort(scores[trial.judged & ~trial.truth])
    found = []
    for recall in RECALL_GRID:
        wanted = max(1, int(np.ceil(recall * len(replicas))))
        threshold = replicas[wanted - 1]
        right = int((replicas >= threshold).sum())
        wrong = len(others) - int(np.searchsorted(others, threshold, side="left"))
        found.append(right / (right + wrong))
    return found


def scarce_negatives(
    trial: Trial, seed: int, features: Sequence[Feature] = FIVE
) -> dict[str, tuple[float, float, float, float]]:
    """Return what NU does with a share of the obvious negatives.

    Returns:
        By share: obvious negatives, area under the curve of NU, that of PNU, and share of the pairs
        that are not replicas that NU leaves with the positive label they began with.
    """
    vectors, certain, unlabelled, negatives = distinct_vectors(trial.sets, features)
    first = run_em(TrainingVectors(vectors.vectors, certain, unlabelled, positive=True))
    by_pu = first.rules.scores()
    random = np.random.default_rng([seed, 12])
    others = trial.judged & ~trial.truth
    at = vectors.number[: len(trial.truth)]
    found = {}
    for share in NEGATIVE_SHARES:
        kept = random.binomial(negatives, share)
        state = run_em(TrainingVectors(vectors.vectors, kept, unlabelled, positive=False))
        left: NDArray[np.bool_] = ~state.flipped[at]
        by_nu = state.rules.scores()
        both = count_dominated(by_pu, by_nu, (by_pu, by_nu, certain + unlabelled))
        found[f"{share:g}"] = (
            float(kept.sum()),
            trial.auc(by_nu[at]),
            trial.auc(both[at]),
            float(left[others].mean()),
        )
    return found


def collection(trial: Trial) -> dict[str, float]:
    """Return the size of the collection and of its groups of replicas."""
    pages = trial.pages
    pairs, _ = trial.web.true_pairs()
    return {
        "hosts": float(len(pages)),
        "pages": float(pages.sum()),
        "pages of a host, median": float(np.median(pages)),
        "pages of a host, largest": float(pages.max()),
        "true pairs": float(len(pairs)),
        "candidates per host": float(2 * len(trial.truth) / len(pages)),
        "obvious negatives": float(len(trial.sets.negatives.keys)),
    }
