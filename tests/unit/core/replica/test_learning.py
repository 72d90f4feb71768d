"""LAC computed by hand, EM on small sets, domination, calibration, obvious pairs."""

import numpy as np
import pytest

from crawld.core.replica.baselines import area_under_roc, normpaths
from crawld.core.replica.calibration import Calibration, agreement_kinds
from crawld.core.replica.em import TrainingVectors, em_passes, initial_rules, run_em
from crawld.core.replica.features import FIVE, HostFeatures, SharedContent
from crawld.core.replica.hosts import Hosts, pair_keys
from crawld.core.replica.lac import DistinctVectors, Rules, supervised_scores
from crawld.core.replica.learning import TrainingPairs, obvious_positives, public_suffix, train
from crawld.core.replica.pareto import count_dominated, rank_sum


def test_score_is_the_mean_vote_of_the_rules():
    vectors = np.array([[1, 1], [1, 2]])
    rules = Rules(vectors)
    rules.count(np.array([4, 6]), np.array([3, 0]))
    # {1,.}: 3/10, {.,1}: 3/4, {1,1}: 3/4; {1,.}: 3/10, the other two 0.
    assert rules.scores().tolist() == pytest.approx([(0.3 + 0.75 + 0.75) / 3, 0.1])


def test_a_label_change_updates_only_the_rules_of_its_vector():
    vectors = np.array([[1, 1], [1, 2], [2, 2]])
    rules = Rules(vectors)
    rules.count(np.array([4, 6, 2]), np.zeros(3, dtype=np.int64))
    rules.add_positive(1, 6)
    again = Rules(vectors)
    again.count(np.array([4, 6, 2]), np.array([0, 6, 0]))
    assert rules.positive.tolist() == again.positive.tolist()
    assert rules.scores().tolist() == again.scores().tolist()


def test_vectors_never_seen_are_scored_by_the_rules_they_share():
    rules = Rules(np.array([[1, 1], [2, 2]]))
    rules.count(np.array([2, 2]), np.array([2, 0]))
    seen = rules.score(np.array([[1, 1], [1, 2], [7, 7]]))
    assert seen.tolist() == [1.0, 0.5, 0.0]


def test_distinct_vectors_and_their_counts():
    vectors = DistinctVectors.of(np.array([[1, 2], [0, 5], [1, 2]]))
    assert vectors.vectors.tolist() == [[0, 5], [1, 2]]
    assert vectors.number.tolist() == [1, 0, 1]
    assert vectors.counted(np.array([True, True, False])).tolist() == [1, 1]


def training_data():
    """Return vectors (all share a value); the first three look like the certain ones."""
    vectors = np.array(
        [[0, 1, 1, 1], [0, 1, 1, 2], [0, 2, 1, 1], [0, 8, 9, 8], [0, 9, 9, 8], [0, 8, 9, 9]]
    )
    certain = np.array([30, 20, 20, 0, 0, 0])
    unlabelled = np.array([3, 4, 5, 400, 300, 500])
    return vectors, certain, unlabelled


@pytest.mark.parametrize("positive", [True, False])
def test_only_vectors_like_the_certain_ones_flip(positive):
    learnt = run_em(TrainingVectors(*training_data(), positive=positive))
    assert learnt.flipped.tolist() == [True, True, True, False, False, False]
    scores = learnt.rules.scores()
    alike, rest = (scores[:3], scores[3:]) if positive else (scores[3:], scores[:3])
    assert alike.min() > rest.max()


def test_flips_are_permanent_and_the_last_pass_has_none():
    states = [
        int(state.flipped.sum())
        for state in em_passes(TrainingVectors(*training_data(), positive=True))
    ]
    assert states == sorted(states)
    assert states[-1] == states[-2]


def test_a_fixed_threshold_flips_the_vectors_below_it():
    training = TrainingVectors(*training_data(), positive=True)
    alpha = 1.0 - initial_rules(training).scores()
    flips = np.sum(alpha <= 0.5)
    assert next(em_passes(training, alpha_min=0.5)).flipped.sum() == flips
    assert not run_em(training, alpha_min=-1.0).flipped.any()


def test_a_single_vector_has_no_cut():
    # One vector alone: every alpha is equal and there is nothing to cut.
    training = TrainingVectors(np.array([[1, 1]]), np.array([5]), np.array([9]), positive=True)
    assert not run_em(training).flipped.any()


def test_equal_points_do_not_dominate_each_other():
    first = np.array([0.1, 0.1, 0.5, 0.5])
    second = np.array([0.9, 0.9, 0.9, 0.1])
    assert count_dominated(first, second).tolist() == [0, 0, 3, 0]
    weight = np.array([10, 1, 1, 1])
    reference = (first, second, weight)
    assert count_dominated(first, second, reference).tolist() == [0, 0, 12, 0]


def test_rank_sum():
    assert rank_sum(np.array([1.0, 2.0, 2.0]), np.array([3.0, 1.0, 2.0])).tolist() == [4, 3.5, 4.5]


def test_area_under_roc_of_chance_and_of_truth():
    positive = np.array([True, False, True, False])
    assert area_under_roc(np.zeros(4), positive) == 0.5
    assert area_under_roc(positive.astype(float), positive) == 1.0


def content_of(equal, compared=10):
    ten = np.full(len(equal), compared)
    return SharedContent(ten, ten, np.array(equal), ten)


def test_probability_rises_with_the_rank_and_with_the_texts():
    # Of certain replicas 6 in 10 are alike. At the upper rank 600 of 1,000 pairs are replicas too,
    # the rest only looks so; at the lower one nothing is.
    like_replicas = [9] * 6 + [2] * 2 + [0] * 2
    equal = np.array(like_replicas * 40 + like_replicas * 60 + [0] * 400 + [0] * 1_000)
    share = np.repeat([1.0, 0.9, 0.1], [400, 1_000, 1_000])
    certain = np.arange(len(equal)) < 400
    calibration = Calibration.of(share, content_of(equal), certain)

    def at(rank, equal, compared=10):
        return calibration.probability(np.array([rank]), content_of([equal], compared))[0]

    assert at(0.9, 9) > 0.95
    assert at(0.9, 0) == pytest.approx(120 / 520, abs=0.03)
    assert at(0.9, 0, compared=0) == pytest.approx(0.6, abs=0.03)
    assert at(0.1, 0) < 0.01
    assert at(0.05, 9) == 0.0
    for equal in range(11):
        assert at(0.1, equal) <= at(0.9, equal) <= at(0.9, min(equal + 1, 10))


def test_calibration_without_pairs_gives_0():
    none = np.zeros(0)
    calibration = Calibration.of(none, content_of([]), none.astype(bool))
    assert calibration.probability(np.array([0.5]), content_of([9])).tolist() == [0.0]


def test_agreement_kinds_rise_with_the_agreement():
    content = SharedContent(
        *(np.array(c) for c in ([9] * 6, [0, 3, 3, 9, 9, 9], [0, 0, 1, 0, 3, 9], [9] * 6))
    )
    kinds = agreement_kinds(content).tolist()
    assert kinds == sorted(set(kinds))


def hosts_named(*names, pages):
    host, path, text = (np.array(column) for column in zip(*pages, strict=True))
    empty = np.zeros(0)
    return Hosts(
        names,
        ("",) * len(names),
        host.astype(np.int64),
        path.astype(np.uint64),
        text.astype(np.uint64),
        empty.astype(np.int64),
        empty.astype(np.uint64),
    )


def test_names_differing_by_www_or_by_top_level_with_equal_texts_are_obvious():
    pages = [(host, path, 50 + path) for host in (0, 1, 2) for path in (1, 2)]
    pages += [(3, 1, 77), (3, 2, 78), (4, 1, 51)]
    names = ("a.com", "www.a.com", "a.de", "a.co.uk", "b.com")
    hosts = hosts_named(*names, pages=pages)
    one, other = np.triu_indices(5, 1)
    measured = HostFeatures.of(hosts).pairs(pair_keys(one, other))
    which = obvious_positives(names, measured)
    found = {(int(a), int(b)) for a, b in zip(one[which], other[which], strict=True)}
    assert found == {(0, 1), (0, 2), (1, 2)}
    assert public_suffix("www.a.co.uk") == ".co.uk"
    assert public_suffix("localhost") == ""


def test_normpaths_adds_one_over_the_length_of_each_list():
    pages = [(0, 1, 5), (1, 1, 5), (2, 1, 5), (0, 2, 6), (1, 2, 6), (2, 2, 9)]
    hosts = hosts_named("a", "b", "c", pages=pages)
    keys = pair_keys(np.array([0, 0, 1]), np.array([1, 2, 2]))
    assert normpaths(hosts, keys).tolist() == pytest.approx([1 / 3 + 1 / 2, 1 / 3, 1 / 3])


def test_too_few_pairs_are_not_enough():
    hosts = hosts_named("a.com", "www.a.com", pages=[(0, 1, 5), (1, 1, 5)])
    measured = HostFeatures.of(hosts).pairs(pair_keys(np.array([0]), np.array([1])))
    assert not TrainingPairs(measured, np.array([True]), measured).enough


def test_training_is_repeatable_and_scores_new_pairs():
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
    hosts = hosts_named(*names, pages=pages)
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
    assert scores.dominates[:10].min() > scores.dominates[10:].max()
    truth = np.arange(len(measured.keys)) < 60
    upper = supervised_scores(DistinctVectors.of(measured.bins(FIVE)), truth)
    assert area_under_roc(upper, truth) == 1.0
