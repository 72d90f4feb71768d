"""Measures the quality of the replica search on a simulated web, compared with the truth.

All figures are over the candidates that are not obvious positives, unless stated otherwise. Only
the measures and the upper bound use the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.baselines import area_under_roc, normpaths
from crawld.core.replica.candidates import find_candidates
from crawld.core.replica.em import TrainingVectors, initial_rules, run_em
from crawld.core.replica.features import ALL, FIVE, Feature, HostFeatures, PairFeatures
from crawld.core.replica.groups import connected_groups
from crawld.core.replica.hosts import Ids, pair_hosts
from crawld.core.replica.lac import DistinctVectors, supervised_scores
from crawld.core.replica.learning import (
    PairScores,
    ReplicaModel,
    TrainingPairs,
    distinct_vectors,
    obvious_negatives,
    obvious_positives,
    train,
)
from crawld.core.replica.pareto import count_dominated, rank_sum
from crawld.core.replica.vectors import Floats
from crawld.core.replica.verdict import (
    PROBED_EQUAL,
    PROBED_PROBABILITY,
    PairEvidence,
    looks_like_replica,
    may_be_replica,
)
from crawld.simweb.replica_parameters import Cause, WebParameters
from crawld.simweb.replica_web import ReplicaWeb, make_web

CROWD_SIZES = (10, 100, 1_000, 10_000)
DRAWS = 4_000
FALSE_RATES = (0.0, 0.001, 0.005)
_MEASURED_AT_ONCE = 20_000
FIXED_ALPHAS = tuple(step / 10 for step in range(1, 10))
"""As in table 4.1 of the source."""


@dataclass(frozen=True)
class Trial:
    """One web and the models trained on it.

    Attributes:
        sets: candidates and the training pairs.
        truth: which candidates are replicas.
        models: `five` and `all`.
        scores: scores of the candidates by each model.
    """

    web: ReplicaWeb
    sets: TrainingPairs
    truth: NDArray[np.bool_]
    models: Mapping[str, ReplicaModel]
    scores: Mapping[str, PairScores]

    @cached_property
    def pages(self) -> Ids:
        """Pages fetched from each host."""
        return np.bincount(self.web.hosts.page_host, minlength=len(self.web.hosts))

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which candidates are not obvious positives."""
        return ~self.sets.obvious

    def auc(self, scores: Floats | Ids) -> float:
        """Return the area under the ROC curve of one score per candidate."""
        return area_under_roc(scores[self.judged], self.truth[self.judged])

    def upper(self, features: Sequence[Feature]) -> Floats:
        """Return the scores of a classifier trained on the truth."""
        return supervised_scores(
            DistinctVectors.of(self.sets.candidates.bins(features)), self.truth
        )


FEATURE_SETS = {"five": FIVE, "all": ALL}


def prepare(
    parameters: WebParameters, seed: int
) -> tuple[ReplicaWeb, TrainingPairs, NDArray[np.bool_]]:
    """Return a web, its training pairs, and which candidates are replicas."""
    web = make_web(parameters, seed)
    index = find_candidates(web.hosts)
    keys = index.candidates().keys
    measure = HostFeatures.of(web.hosts)
    # All at once, half a million pairs take 1.7 GB.
    parts = [keys[at : at + _MEASURED_AT_ONCE] for at in range(0, len(keys), _MEASURED_AT_ONCE)]
    measured = PairFeatures.joined([measure.pairs(part) for part in parts])
    sets = TrainingPairs(
        measured,
        obvious_positives(web.hosts.names, measured),
        measure.pairs(obvious_negatives(index, seed)),
    )
    return web, sets, np.isin(keys, web.true_pairs()[0])


def run_trial(parameters: WebParameters, seed: int) -> Trial:
    """Make a web, find its candidates and train on them."""
    web, sets, truth = prepare(parameters, seed)
    models = {name: train(sets, features) for name, features in FEATURE_SETS.items()}
    scores = {name: model.judge(sets.candidates) for name, model in models.items()}
    return Trial(web, sets, truth, models, scores)


def accuracy(trial: Trial) -> dict[str, float]:
    """Return all areas under the curve, recall by cause, and the figures of the gate."""
    found: dict[str, float] = {}
    for name, features in FEATURE_SETS.items():
        suffix = "" if name == "all" else f"_{name}"
        scores = trial.scores[name]
        found[f"auc_pnu{suffix}"] = trial.auc(scores.dominates)
        found[f"auc_pu{suffix}"] = trial.auc(scores.positive)
        found[f"auc_nu{suffix}"] = trial.auc(scores.negative)
        found[f"auc_upper{suffix}"] = trial.auc(trial.upper(features))
        found[f"auc_probability{suffix}"] = trial.auc(probability_scores(scores))
        found[f"auc_rank_sum{suffix}"] = trial.auc(rank_sum(scores.positive, scores.negative))
    found["auc_normpaths"] = trial.auc(normpaths(trial.web.hosts, trial.sets.candidates.keys))
    true_keys, causes = trial.web.true_pairs()
    known = np.isin(true_keys, trial.sets.candidates.keys)
    found["candidate_recall"] = float(known.mean())
    for cause in Cause:
        of_cause = np.array([one is cause for one in causes])
        found[f"candidate_recall_{cause.value}"] = float(known[of_cause].mean())
    return found | gate_figures(trial)


def gate_figures(trial: Trial) -> dict[str, float]:
    """Return the effect of the verdicts.

    `gated_recall` is the share of all true pairs, without the obvious ones and with those that
    phase 1 missed, whose pages are compared one by one, and rest where they agree.
    `false_prunings` is the number of wrong pairs that look like replicas, over all candidates.
    """
    shared, declared = judged_candidates(trial)
    true_keys, _ = trial.web.true_pairs()
    obvious = int((trial.sets.obvious & trial.truth).sum())
    return {
        "gated_recall": float((shared & trial.truth & trial.judged).sum())
        / max(1, len(true_keys) - obvious),
        "gated_recall_obvious": float((shared & trial.truth & ~trial.judged).sum())
        / max(1, obvious),
        "gated_pairs": float(shared.sum()),
        "false_prunings": float((declared & ~trial.truth).sum()),
    }


def judged_candidates(trial: Trial) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which candidates may be replicas, and which of them look like replicas."""
    shared, declared = (np.zeros(len(trial.truth), dtype=bool) for _ in range(2))
    for at in np.flatnonzero(has_evidence(trial)).tolist():
        evidence = evidence_of(trial, at)
        declared[at] = looks_like_replica(evidence)
        shared[at] = declared[at] or may_be_replica(evidence)
    return shared, declared


def has_evidence(trial: Trial) -> NDArray[np.bool_]:
    """Return which candidates have any evidence; only those can pass the gate or be undecided."""
    hosts, measured = trial.web.hosts, trial.sets.candidates
    declared = {min(pair) << 32 | max(pair) for pair in {*hosts.redirects, *hosts.canonicals}}
    worth: NDArray[np.bool_] = (
        (measured.content.equal >= PROBED_EQUAL)
        | np.isin(measured.keys, np.array(sorted(declared), dtype=np.int64))
        | (trial.scores["all"].probability >= PROBED_PROBABILITY)
    )
    return worth


def evidence_of(trial: Trial, at: int) -> PairEvidence:
    """Return the evidence on a candidate, as the daemon would."""
    hosts, content = trial.web.hosts, trial.sets.candidates.content
    key = int(trial.sets.candidates.keys[at])
    a, b = key >> 32, key & 0xFFFFFFFF
    return PairEvidence(
        names=(hosts.names[a], hosts.names[b]),
        pages=(int(trial.pages[a]), int(trial.pages[b])),
        common=int(content.common[at]),
        compared=int(content.compared[at]),
        equal=int(content.equal[at]),
        redirects=(hosts.redirects.get((a, b), 0), hosts.redirects.get((b, a), 0)),
        canonicals=(hosts.canonicals.get((a, b), 0), hosts.canonicals.get((b, a), 0)),
        probability=float(trial.scores["all"].probability[at]),
    )


# --- the published tables --------------------------------------------------------------------


def detection(
    trial: Trial, scores: Floats | Ids, among: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the mean of 1/rank of one replica among k random non-replicas, and its half interval.

    Order within ties is random. The rank is drawn from the urn: how many of the k are above the
    replica, and how many are equal. A web with fewer than k non-replicas uses all.

    Returns:
        The mean over `DRAWS` and 1.96 standard errors of it.
    """
    judged = trial.judged
    replicas = scores[judged & trial.truth]
    others = np.sort(scores[judged & ~trial.truth])
    drawn = rng.choice(replicas, DRAWS)
    above = len(others) - np.searchsorted(others, drawn, side="right")
    beside = len(others) - np.searchsorted(others, drawn, side="left") - above
    among = min(among, len(others))
    over = rng.hypergeometric(above, len(others) - above, among)
    ties = rng.hypergeometric(beside, len(others) - above - beside, among - over)
    reciprocal = 1.0 / (1 + over + rng.integers(0, ties + 1))
    return float(reciprocal.mean()), float(1.96 * reciprocal.std() / np.sqrt(DRAWS))


def url_reduction(
    trial: Trial, scores: Floats | Ids, false_rate: float, *, of_compared: bool = False
) -> float:
    """Return the share of all fetched pages that pruning at a false-positive rate would save.

    The threshold passes that share of the non-replicas. In every group closed over the *true*
    pairs above it, all pages except those of the largest host are saved. As published, losses by
    false pairs are not subtracted.

    Args:
        of_compared: divide by the pages of the hosts that have a candidate, instead of all.
    """
    judged = trial.judged
    others = np.sort(scores[judged & ~trial.truth])[::-1]
    threshold = others[min(int(false_rate * len(others)), len(others) - 1)]
    chosen = judged & trial.truth & (scores > threshold)
    one, other = pair_hosts(trial.sets.candidates.keys[chosen])
    saved = sum(
        int(trial.pages[list(group)].sum() - trial.pages[list(group)].max())
        for group in connected_groups(zip(one.tolist(), other.tolist(), strict=True))
    )
    if not of_compared:
        return saved / int(trial.pages.sum())
    compared = np.unique(np.concatenate(pair_hosts(trial.sets.candidates.keys)))
    return saved / int(trial.pages[compared].sum())


def single_features(trial: Trial) -> dict[str, list[float]]:
    """Return the areas under the curve of PU and NU with each feature alone."""
    return {feature.name: _areas(trial, (feature,)) for feature in ALL}


def leave_one_out(trial: Trial) -> dict[str, list[float]]:
    """Return the areas under the curve of PU and NU without each of the five published features."""
    return {
        feature.name: _areas(trial, tuple(other for other in FIVE if other is not feature))
        for feature in FIVE
    }


def variants(trial: Trial, features: Sequence[Feature] = FIVE) -> dict[str, float]:
    """Return the area under the curve without EM, and with one alpha for all."""
    vectors, certain, unlabelled, negatives = distinct_vectors(trial.sets, features)
    at = vectors.number[: len(trial.truth)]
    pu = TrainingVectors(vectors.vectors, certain, unlabelled, positive=True)
    nu = TrainingVectors(vectors.vectors, negatives, unlabelled, positive=False)
    first, second = initial_rules(pu).scores(), initial_rules(nu).scores()
    found = {
        "pu, no EM": trial.auc(first[at]),
        "nu, no EM": trial.auc(second[at]),
        "pnu, no EM": trial.auc(
            count_dominated(first, second, (first, second, certain + unlabelled))[at]
        ),
    }
    for alpha in FIXED_ALPHAS:
        found[f"pu, alpha_min {alpha}"] = trial.auc(run_em(pu, alpha_min=alpha).rules.scores()[at])
        found[f"nu, alpha_min {alpha}"] = trial.auc(run_em(nu, alpha_min=alpha).rules.scores()[at])
    return found


def reliability(trial: Trial) -> dict[str, tuple[int, float, float]]:
    """Return pairs, mean probability and share of replicas, by range of probability."""
    probability = trial.scores["all"].probability[trial.judged]
    truth = trial.truth[trial.judged]
    found = {}
    edges = (0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.01)
    for low, high in pairwise(edges):
        inside = (probability >= low) & (probability < high)
        if inside.any():
            found[f"{low:g} to {min(high, 1):g}"] = (
                int(inside.sum()),
                float(probability[inside].mean()),
                float(truth[inside].mean()),
            )
    return found


def _areas(trial: Trial, features: tuple[Feature, ...]) -> list[float]:
    vectors, certain, unlabelled, negatives = distinct_vectors(trial.sets, features)
    at = vectors.number[: len(trial.truth)]
    return [
        trial.auc(
            run_em(TrainingVectors(vectors.vectors, known, unlabelled, positive)).rules.scores()[at]
        )
        for known, positive in ((certain, True), (negatives, False))
    ]


def probability_scores(scores: PairScores) -> Floats:
    """Return probabilities, with equal ones in order of the rank."""
    order = scores.dominates / (1.0 + scores.dominates.max(initial=0))
    ranked: Floats = np.round(scores.probability, 9) + 1e-10 * order
    return ranked


def compared_scores(trial: Trial) -> dict[str, Floats | Ids]:
    """Return the scores that the published tables compare."""
    measured: PairFeatures = trial.sets.candidates
    return {
        "NormPaths": normpaths(trial.web.hosts, measured.keys),
        "PU": trial.scores["five"].positive,
        "NU": trial.scores["five"].negative,
        "PNU": trial.scores["five"].dominates,
        "PNU, all": trial.scores["all"].dominates,
        "probability": probability_scores(trial.scores["all"]),
        "upper": trial.upper(FIVE),
    }
