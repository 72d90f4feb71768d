"""B-SVM, a baseline of `crawld bench replica`: a biased SVM on positive and unlabeled pairs.

Unlabeled pairs count as negatives at a lower cost. The costs are those with the best recall²/Pr[+]
on held-out positives, which needs no negatives. Input are the same bins as for crawld's
classifiers, one column per value.

Source: Liu, Dai, Li, Lee & Yu 2003 (biased SVM); Lee & Liu 2003 (the criterion).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

from crawld.core.replica.features import Feature
from crawld.core.replica.learning import TrainingPairs, distinct_vectors
from crawld.core.replica.vectors import Floats

_COSTS = (0.01, 0.1, 1.0)
_BIASES = (10.0, 100.0, 1_000.0)
_HELD_OUT = 4
"""One of this many positives is held out while the costs are chosen."""


def biased_svm(sets: TrainingPairs, features: Sequence[Feature], seed: int) -> Floats:
    """Return the decision value of each candidate."""
    vectors, certain, unlabelled, _ = distinct_vectors(sets, features)
    columns = OneHotEncoder(sparse_output=False).fit_transform(vectors.vectors)
    rng = np.random.default_rng(seed)
    held_out = rng.binomial(certain, 1.0 / _HELD_OUT)

    def fit(positive: np.ndarray, cost: float, bias: float) -> Floats:
        both = np.concatenate((columns, columns))
        label = np.repeat([1, 0], len(columns))
        weight = np.concatenate((positive * bias, unlabelled))
        use = weight > 0
        model = LinearSVC(C=cost, dual=False, max_iter=2_000, random_state=seed)
        model.fit(both[use], label[use], sample_weight=weight[use] / weight[use].mean())
        values: Floats = model.decision_function(columns)
        return values

    def criterion(cost: float, bias: float) -> float:
        values = fit(certain - held_out, cost, bias)
        recall = float(held_out[values > 0].sum()) / max(1, int(held_out.sum()))
        flagged = float(unlabelled[values > 0].sum()) / max(1, int(unlabelled.sum()))
        return recall**2 / max(flagged, 1e-9)

    cost, bias = max(product(_COSTS, _BIASES), key=lambda choice: criterion(*choice))
    values: Floats = fit(certain, cost, bias)[vectors.number[: len(sets.obvious)]]
    return values
