"""Probabilities from examples of which a part of the pages is held out."""

import numpy as np
import pytest

from crawld.core.replica.features import ALL, PairFeatures, SharedContent
from crawld.core.replica.held_out import LEAST_EXAMPLES, TEXT, HeldOut, text_kinds

LEVELS = 3


def pairs_of(compared, agreeing, *, seed=0, rarity=1.0):
    """Return pairs by their compared and agreeing pages, drawn into nested samples."""
    rng = np.random.default_rng(seed)
    compared, agreeing = np.array(compared), np.array(agreeing)
    sampled, sample_agreeing = np.zeros((2, len(compared), LEVELS), dtype=np.int64)
    for at, (many, alike) in enumerate(zip(compared, agreeing, strict=True)):
        agrees = rng.permutation(np.arange(many) < alike)
        for level, one_in in enumerate((16, 4, 2)):
            inside = np.arange(many) % one_in == 0
            sampled[at, level] = inside.sum()
            sample_agreeing[at, level] = (inside & agrees).sum()
    none = np.zeros(len(compared), dtype=np.int64)
    content = SharedContent(
        common=compared, compared=compared, equal=agreeing, expected=compared,
        partial=none.astype(float), weight=rarity * agreeing, rare=none, rare_equal=none,
        root=none - 1, agreeing=agreeing,
        telling=rarity * agreeing, sampled=sampled, sample_agreeing=sample_agreeing,
    )  # fmt: skip
    keys = np.arange(len(compared)) | (np.arange(len(compared)) * 7 << 32)
    return PairFeatures(keys, np.zeros((len(compared), len(ALL))), content)


def web(seed, replicas=200, versions=400, others=2_000, alike=(0.2, 0.6)):
    """Return pairs of replicas, of look-alikes with some equal texts, and of others."""
    rng = np.random.default_rng(seed)
    shares = [rng.uniform(0.9, 1.0, replicas), rng.uniform(*alike, versions), np.zeros(others)]
    share = np.concatenate(shares)
    compared = rng.integers(14, 60, len(share))
    truth = np.arange(len(share)) < replicas
    return pairs_of(compared, np.round(share * compared).astype(int), seed=seed), truth


def no_scores(_):
    return {}


def test_probabilities_are_calibrated_on_another_web():
    pairs, _ = web(1)
    held_out = HeldOut.of(pairs, no_scores)
    assert held_out.evidence == TEXT
    others, truth = web(2)
    # Of the other web only a sixteenth, a quarter or half of the pages is known.
    said, true = [], []
    for level in range(LEVELS):
        content = others.content
        known = content._replace(
            compared=content.sampled[:, level], agreeing=content.sample_agreeing[:, level]
        )
        found = held_out.probability(PairFeatures(others.keys, others.values, known), {})
        said.append(found)
        true.append(truth)
    said, true = np.concatenate(said), np.concatenate(true)
    known = ~np.isnan(said)
    assert known.mean() > 0.9
    decile = np.minimum((10 * said[known]).astype(int), 9)
    for number in np.unique(decile):
        inside = decile == number
        if inside.sum() >= 50:
            assert said[known][inside].mean() == pytest.approx(true[known][inside].mean(), abs=0.1)


def test_the_evidence_that_predicts_held_out_pages_best_is_chosen():
    pairs, truth = web(3, replicas=400, alike=(0.5, 0.7))
    rng = np.random.default_rng(3)

    def scores(some):
        good = truth[np.searchsorted(pairs.keys, some.keys)] + rng.normal(0.0, 0.1, len(some.keys))
        return {"good": good, "noise": rng.random(len(some.keys))}

    held_out = HeldOut.of(pairs, scores)
    assert held_out.evidence == "good"
    assert held_out.errors["good"] < 0.8 * held_out.errors[TEXT]
    # A score that says nothing costs precision, and is not believed.
    without = HeldOut.of(pairs, lambda some: {"noise": rng.random(len(some.keys))})
    assert without.evidence == TEXT


def test_nothing_is_said_where_nothing_is_known():
    pairs, _ = web(4)
    held_out = HeldOut.of(pairs, no_scores)
    # Texts that many hosts show were on no example.
    common = pairs_of([20, 20], [20, 5], rarity=0.2)
    assert np.isnan(held_out.probability(common, {})).all()
    assert np.isnan(held_out.probability(pairs_of([0], [0]), {})).all()
    assert not np.isnan(held_out.probability(pairs_of([20], [20]), {})).any()


def test_hosts_with_other_pages_of_their_own_are_no_replicas():
    pairs, _ = web(6)
    half = pairs.content._replace(expected=2 * pairs.content.common)
    assert HeldOut.of(PairFeatures(pairs.keys, pairs.values, half), no_scores) is None


@pytest.mark.parametrize(("replicas", "others"), [(LEAST_EXAMPLES - 1, 500), (500, 0)])
def test_too_few_examples_of_a_label_give_nothing(replicas, others):
    pairs, _ = web(5, replicas=replicas, versions=0, others=others)
    assert HeldOut.of(pairs, no_scores) is None


def test_kinds_tell_number_share_and_commonness_apart():
    content = pairs_of([9] * 6, [9] * 6).content
    compared, agreeing = np.array([0, 2, 2, 9, 9, 9]), np.array([0, 0, 2, 0, 4, 9])
    kinds = text_kinds(content, compared, agreeing)
    assert len(set(kinds.tolist())) == 6
    common = text_kinds(content._replace(telling=content.telling * 0.2), compared, agreeing)
    assert set(kinds[1:].tolist()).isdisjoint(common[1:].tolist())
    other_roots = text_kinds(content._replace(root=content.root + 1), compared, agreeing)
    assert set(kinds[1:].tolist()).isdisjoint(other_roots[1:].tolist())


def test_hosts_with_one_manual_and_other_roots_are_no_replicas():
    pairs, truth = web(7, versions=0)
    content = pairs.content
    roots = np.where(truth & (np.arange(len(truth)) % 2 == 0), 0, 1)
    agreeing = np.where(truth, np.round(0.85 * content.compared).astype(int), content.agreeing)
    known = pairs_of(content.compared, agreeing, seed=7).content._replace(root=roots)
    held_out = HeldOut.of(PairFeatures(pairs.keys, pairs.values, known), no_scores)
    found = held_out.probability(PairFeatures(pairs.keys, pairs.values, known), {})
    assert np.nanmax(found[roots == 0]) < 0.3
    assert np.nanmean(found[truth & (roots == 1)]) > 0.7
