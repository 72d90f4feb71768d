"""Trains the replica model from obvious pairs, by PU and NU learning, and scores pairs with it.

No pair is labelled by hand. Obvious positives are pairs whose names differ by `www.` alone, or by
the top-level domain alone with two equal texts under equal paths (language versions and parked
domains also differ by it, and anyone may register one). Obvious negatives are pairs that share only
values common to more hosts than the candidate cap; random pairs share nothing and would only teach
fullpath = 0.

Source: Carvalho 2014, section 3.3; both sets were chosen with a prototype.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.calibration import Calibration
from crawld.core.replica.candidates import CandidateIndex
from crawld.core.replica.em import TrainingVectors, run_em
from crawld.core.replica.features import ALL, Feature, PairFeatures
from crawld.core.replica.hosts import Ids, pair_hosts
from crawld.core.replica.lac import DistinctVectors, Rules
from crawld.core.replica.names import registered_label
from crawld.core.replica.pareto import count_dominated
from crawld.core.replica.vectors import Floats

NEGATIVES = 20_000
"""Obvious negatives drawn."""

LEAST_POSITIVES = 20
"""With fewer obvious positives no model is trained, and conservative rules decide."""

LEAST_NEGATIVES = 5_000
"""With fewer obvious negatives NU is not used, and the order of PNU is that of PU. NU turns pairs
negative that resemble known negatives; with few of them most stay positive. On webs of 2,500 hosts
the area of PNU was between .82 and .999 with 10 to 1,000 negatives, that of PU .986 to .999."""

LEAST_CANDIDATES = 200
"""With fewer candidates no model is trained."""


def obvious_positives(names: Sequence[str], measured: PairFeatures) -> NDArray[np.bool_]:
    """Return which pairs are replicas by their names (plus two equal texts in doubtful cases)."""
    bare = [name.removeprefix("www.") for name in names]
    without_top = [bare_name.removesuffix(public_suffix(bare_name)) for bare_name in bare]
    one, other = (side.tolist() for side in pair_hosts(measured.keys))
    same = np.array([bare[a] == bare[b] for a, b in zip(one, other, strict=True)], dtype=bool)
    alike = np.array(
        [without_top[a] == without_top[b] for a, b in zip(one, other, strict=True)], dtype=bool
    )
    return same | (alike & (measured.content.equal >= 2))


def public_suffix(name: str) -> str:
    """Return the public suffix of a name with its dot; empty if no label precedes it."""
    registered = registered_label(name)
    _, found, suffix = name.rpartition(f"{registered}.") if registered else ("", "", "")
    return f".{suffix}" if found else ""


def obvious_negatives(index: CandidateIndex, seed: int, most: int = NEGATIVES) -> Ids:
    """Return keys of pairs that share only values common to very many hosts."""
    pairs = index.paths.long_list_pairs(most, seed)
    return np.setdiff1d(pairs, index.candidates().keys)


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores of pairs by a model, one value per pair.

    Attributes:
        positive: score of the positive label by PU.
        negative: the same by NU; by PU with few obvious negatives.
        dominates: number of reference pairs that it dominates.
        probability: that it is a replica, in [0, 1].
    """

    positive: Floats
    negative: Floats
    dominates: Ids
    probability: Floats

    def by_name(self) -> dict[str, Floats]:
        """Return the scores by the name of the classifier."""
        return {
            "PU": self.positive,
            "NU": self.negative,
            "PNU": self.dominates.astype(np.float64),
        }


@dataclass(frozen=True, slots=True)
class ReplicaModel:
    """PU and NU after EM, with the reference for their scores.

    Attributes:
        features: the columns it reads.
        positive_rules: the rules of PU.
        negative_rules: those of NU.
        reference: both scores of each distinct training vector, and its candidate count.
        calibration: converts the dominated share of the reference and the texts to a probability.
        passes: EM passes of PU and NU together.
    """

    features: tuple[Feature, ...]
    positive_rules: Rules
    negative_rules: Rules
    reference: tuple[Floats, Floats, Ids]
    calibration: Calibration
    passes: int

    def judge(self, measured: PairFeatures) -> PairScores:
        """Return the scores of some pairs, whether it was trained on them or not."""
        vectors = DistinctVectors.of(measured.bins(self.features))
        first = self.positive_rules.score(vectors.vectors)
        second = self.negative_rules.score(vectors.vectors)
        at = vectors.number
        beaten = count_dominated(first, second, self.reference)[at]
        share = beaten / max(1, int(self.reference[2].sum()))
        probability = self.calibration.probability(share, measured.content)
        return PairScores(first[at], second[at], beaten, probability)

    def scores(self, measured: PairFeatures, name: str) -> Floats:
        """Return the scores of some pairs by one classifier; see `PairScores.by_name`."""
        vectors = DistinctVectors.of(measured.bins(self.features))
        if name == "PU":
            return self.positive_rules.score(vectors.vectors)[vectors.number]
        second = self.negative_rules.score(vectors.vectors)
        if name == "NU":
            return second[vectors.number]
        first = self.positive_rules.score(vectors.vectors)
        beaten: Floats = count_dominated(first, second, self.reference).astype(np.float64)
        return beaten[vectors.number]


@dataclass(frozen=True, slots=True)
class TrainingPairs:
    """The pairs for training.

    Attributes:
        candidates: all candidates, with features.
        obvious: which of them are obvious positives.
        negatives: obvious negatives, with features; none of them a candidate.
    """

    candidates: PairFeatures
    obvious: NDArray[np.bool_]
    negatives: PairFeatures

    @property
    def enough(self) -> bool:
        """Whether there are enough pairs to train a model."""
        return (
            int(self.obvious.sum()) >= LEAST_POSITIVES
            and len(self.obvious) >= LEAST_CANDIDATES
            and len(self.negatives.keys) >= LEAST_POSITIVES
        )


def distinct_vectors(
    sets: TrainingPairs, features: Sequence[Feature]
) -> tuple[DistinctVectors, Ids, Ids, Ids]:
    """Return the distinct vectors of all pairs; count positives, unlabelled and negatives."""
    bins = np.concatenate((sets.candidates.bins(features), sets.negatives.bins(features)))
    vectors = DistinctVectors.of(bins)
    candidate = np.arange(len(bins)) < len(sets.obvious)
    positive = candidate.copy()
    positive[: len(sets.obvious)] = sets.obvious
    return (
        vectors,
        vectors.count_among(positive),
        vectors.count_among(candidate & ~positive),
        vectors.count_among(~candidate),
    )


def train(sets: TrainingPairs, features: tuple[Feature, ...] = ALL) -> ReplicaModel:
    """Train a model, by PU alone with few obvious negatives; equal pairs give equal models."""
    vectors, certain, unlabelled, negatives = distinct_vectors(sets, features)
    pu = run_em(TrainingVectors(vectors.vectors, certain, unlabelled, positive=True))
    nu = pu
    if int(negatives.sum()) >= LEAST_NEGATIVES:
        nu = run_em(TrainingVectors(vectors.vectors, negatives, unlabelled, positive=False))
    first, second = pu.rules.scores(), nu.rules.scores()
    reference = (first, second, certain + unlabelled)
    share = count_dominated(first, second, reference) / max(1, int(reference[2].sum()))
    calibration = Calibration.of(
        share[vectors.number[: len(sets.obvious)]], sets.candidates.content, sets.obvious
    )
    return ReplicaModel(
        tuple(features),
        pu.rules,
        nu.rules,
        reference,
        calibration,
        pu.passes + (0 if nu is pu else nu.passes),
    )
