"""Obvious pairs, and training of the model."""

import numpy as np

from crawld.core.replica import learning
from crawld.core.replica.baselines import area_under_roc
from crawld.core.replica.features import FIVE, HostFeatures
from crawld.core.replica.hosts import pair_keys
from crawld.core.replica.lac import DistinctVectors, supervised_scores
from crawld.core.replica.learning import TrainingPairs, obvious_positives, public_suffix, train
from tests.unit.core.replica.sample_hosts import hosts_of


def test_names_differing_by_www_or_by_top_level_with_equal_texts_are_obvious():
    pages = [(host, path, 50 + path) for host in (0, 1, 2) for path in (1, 2)]
    pages += [(3, 1, 77), (3, 2, 78), (4, 1, 51)]
    names = ("a.com", "www.a.com", "a.de", "a.co.uk", "b.com")
    hosts = hosts_of(names, pages)
    one, other = np.triu_indices(5, 1)
    measured = HostFeatures.of(hosts).pairs(pair_keys(one, other))
    which = obvious_positives(names, measured)
    found = {(int(a), int(b)) for a, b in zip(one[which], other[which], strict=True)}
    assert found == {(0, 1), (0, 2), (1, 2)}
    assert public_suffix("www.a.co.uk") == ".co.uk"
    assert public_suffix("localhost") == ""


def test_too_few_pairs_are_not_enough():
    hosts = hosts_of(("a.com", "www.a.com"), [(0, 1, 5), (1, 1, 5)])
    measured = HostFeatures.of(hosts).pairs(pair_keys(np.array([0]), np.array([1])))
    assert not TrainingPairs(measured, np.array([True]), measured).enough


def test_training_is_repeatable_and_scores_new_pairs(monkeypatch):
    rng = np.random.default_rng(5)
    pages = []
    for twin in range(60):
        for path in range(8):
            pages += [
                (2 * twin, 100 * twin + path, 7 * twin + path + 1_000_000),
                (2 * twin + 1, 100 * twin + path, 7 * twin + path + 1_000_000),
            ]
    pages += [(host, 50_000 + int(rng.integers(40)), host + 1) for host in range(120)]
    names = [f"{'www.' * (at % 2)}s{at // 2}x.com" for at in range(120)]
    hosts = hosts_of(names, pages)
    measure = HostFeatures.of(hosts)
    twins = pair_keys(np.arange(0, 120, 2), np.arange(1, 120, 2))
    others = pair_keys(np.arange(0, 118), np.arange(2, 120))
    measured = measure.pairs(np.concatenate((twins, others)))
    obvious = np.arange(len(measured.keys)) < 40
    sets = TrainingPairs(
        measured, obvious, measure.pairs(pair_keys(np.arange(0, 110), np.arange(9, 119)))
    )
    model, again = train(sets, FIVE), train(sets, FIVE)
    assert model.judge(measured).dominates.tolist() == again.judge(measured).dominates.tolist()
    scores = model.judge(measure.pairs(np.concatenate((twins[50:], others[50:60]))))
    for name, of_all in model.judge(measured).by_name().items():
        assert model.scores(measured, name).tolist() == of_all.tolist()
    assert scores.dominates[:10].min() > scores.dominates[10:].max()
    # Few obvious negatives: PU alone decides, and NU would say something else.
    few = model.judge(measured)
    assert few.negative.tolist() == few.positive.tolist()
    monkeypatch.setattr(learning, "LEAST_NEGATIVES", len(sets.negatives.keys))
    enough = train(sets, FIVE).judge(measured)
    assert enough.negative.tolist() != few.negative.tolist()
    assert enough.positive.tolist() == few.positive.tolist()
    truth = np.arange(len(measured.keys)) < 60
    upper = supervised_scores(DistinctVectors.of(measured.bins(FIVE)), truth)
    assert area_under_roc(upper, truth) == 1.0
