"""Bayesian rate classes: the published failure reproduced, and the corrected method."""

import math

import pytest

from crawld.core.change.classes import PAGE_CLASSES, RateClasses
from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.change.rate import RateEvidence
from crawld.core.change.record import records_of

DAY_S = 86_400.0
DAILY_TO_WEEKLY = RateClasses(tuple(days * DAY_S for days in (1.0, 3.0, 7.0)))
DAILY_TO_QUARTERLY = RateClasses(tuple(days * DAY_S for days in (1.0, 30.0, 90.0)))


def daily_visits(days, period):
    """Return the evidence of visits every day to a page that changes every `period` days."""
    changed = float(days // period)
    return RateEvidence(
        changed=changed, changed_s=changed * DAY_S, unchanged_s=(days - changed) * DAY_S
    )


def published_on_change_only(classes, spacing_days, changes):
    """Return weights by the thesis: updated at changes, with the time since the last *change*."""
    weights = [0.0] * len(classes.mean_intervals_s)
    for _ in range(changes):
        weights = [
            weight + math.log(1.0 - math.exp(-spacing_days * DAY_S / mean_s))
            for weight, mean_s in zip(weights, classes.mean_intervals_s, strict=True)
        ]
    return classes.probabilities(weights)


@pytest.mark.parametrize(
    ("classes", "spacing_days", "changes", "printed"),
    [
        (DAILY_TO_WEEKLY, 1, 100, (1.0, 1.481e-35, 2.213e-68)),
        (DAILY_TO_WEEKLY, 5, 100, (0.99999999, 1.594e-9, 1.229e-29)),
        (DAILY_TO_WEEKLY, 10, 100, (0.974, 0.0259, 1.236e-12)),
        (DAILY_TO_QUARTERLY, 100, 1000, (1.0, 1.674e-16, 3.959e-174)),
    ],
)
def test_updating_on_change_only_always_ends_in_the_fastest_class(
    classes, spacing_days, changes, printed
):
    found = published_on_change_only(classes, spacing_days, changes)
    assert found == pytest.approx(printed, rel=1e-3, abs=0.0)


def test_the_first_update_is_as_printed():
    found = published_on_change_only(DAILY_TO_WEEKLY, 1e-6, 1)
    assert found == pytest.approx((0.677, 0.226, 0.097), abs=5e-4)


@pytest.mark.parametrize(("period", "days"), [(1, 1.0), (3, 3.0), (10, 7.0)])
def test_a_page_visited_daily_ends_in_its_own_class(period, days):
    weights = DAILY_TO_WEEKLY.weights(daily_visits(200, period))
    best = DAILY_TO_WEEKLY.most_probable(weights)
    assert DAILY_TO_WEEKLY.mean_intervals_s[best] == days * DAY_S
    assert DAILY_TO_WEEKLY.probabilities(weights)[best] > 0.9


def best_days(model):
    shares = model.class_probabilities()
    return max(shares, key=shares.get)


def test_a_page_can_change_its_class_after_years():
    model = PageModel(first_at=1.0, last_visit_at=1.0, last_change_at=1.0)
    for day in range(1, 2001):
        model.update(Observation(day * DAY_S, changed=False, interval_s=DAY_S))
    assert best_days(model) == 365.0
    for day in range(2001, 2201):
        model.update(Observation(day * DAY_S, changed=True, interval_s=DAY_S))
    assert best_days(model) <= 1.0


@pytest.mark.parametrize("interval_s", [0.0, 1e-300, 1e300])
def test_no_interval_breaks_the_weights(interval_s):
    evidence = RateEvidence(changed=1.0, changed_s=interval_s, unchanged_s=interval_s)
    weights = PAGE_CLASSES.weights(evidence)
    assert sum(PAGE_CLASSES.probabilities(weights)) == pytest.approx(1.0)


def test_exact_counts_choose_the_class_of_their_rate():
    weights = PAGE_CLASSES.weights(RateEvidence(30.0, 300 * DAY_S))
    assert PAGE_CLASSES.mean_intervals_s[PAGE_CLASSES.most_probable(weights)] == 10 * DAY_S


def test_a_class_dominates_once_it_outweighs_all_others():
    weights = DAILY_TO_WEEKLY.weights(RateEvidence())
    assert DAILY_TO_WEEKLY.dominant(weights) is None
    assert DAILY_TO_WEEKLY.credible_range(weights) == (0, 2)
    weights = DAILY_TO_WEEKLY.weights(daily_visits(60, 3))
    assert DAILY_TO_WEEKLY.dominant(weights) == 1
    assert DAILY_TO_WEEKLY.credible_range(weights) == (1, 1)
    assert DAILY_TO_WEEKLY.credible_range(weights, 1.0) == (0, 2)


@pytest.mark.parametrize("weights", [[0.0, -9.0, -9.0], [-9.0, -9.0, 0.0], [-9.0, 0.0, -9.0]])
def test_the_credible_range_contains_the_most_probable_class(weights):
    first, last = DAILY_TO_WEEKLY.credible_range(weights)
    assert first == last == weights.index(0.0)


def test_classes_without_a_mean_interval_are_refused():
    with pytest.raises(ValueError, match="mean interval"):
        RateClasses(())
    with pytest.raises(ValueError, match="above 0"):
        RateClasses((1.0, 0.0))


def logs(*shares):
    return [math.log(share) for share in shares]


@pytest.mark.parametrize(
    ("shares", "level", "expected"),
    [
        ((0.05, 0.15, 0.4, 0.3, 0.1), 0.6, (2, 3)),
        ((0.05, 0.15, 0.4, 0.3, 0.1), 0.8, (1, 3)),
        ((0.05, 0.15, 0.4, 0.3, 0.1), 0.9, (1, 4)),
        ((0.05, 0.15, 0.4, 0.3, 0.1), 0.99, (0, 4)),
        ((0.1, 0.3, 0.4, 0.15, 0.05), 0.8, (1, 3)),
        ((0.5, 0.3, 0.15, 0.05), 0.9, (0, 2)),
        ((0.05, 0.15, 0.3, 0.5), 0.9, (1, 3)),
        ((0.25, 0.5, 0.25), 0.75, (1, 2)),  # exactly enough; the slower of equal neighbours
        ((0.5, 0.25, 0.25), 0.5, (0, 0)),
    ],
)
def test_the_range_grows_to_the_more_probable_side(shares, level, expected):
    classes = RateClasses(tuple(float(3**k) for k in range(len(shares))))
    assert classes.credible_range(logs(*shares), level) == expected


def test_half_of_the_probability_does_not_dominate():
    assert RateClasses((0.5, 1.0)).dominant([0.0, 0.0]) is None
    assert RateClasses((0.5, 1.0)).dominant([0.0, -0.01]) == 0


def test_many_models_give_the_classes_of_each():
    models = []
    for period in (1, 3, 10, 30, 1000):
        models.append(PageModel(first_at=1.0, last_visit_at=1.0, last_change_at=1.0))
        for day in range(1, 201):
            changed = day % period == 0
            models[-1].update(Observation(day * DAY_S, changed=changed, interval_s=DAY_S))
    models[1].observe_changes([150 * DAY_S, 200.4 * DAY_S], 201 * DAY_S)
    records = records_of(model.to_bytes() for model in models)
    each = [model.class_probabilities() for model in models]
    assert PAGE_CLASSES.dominant_days(records) == [
        max(shares, key=shares.get) if max(shares.values()) > 0.5 else None for shares in each
    ]
    assert PAGE_CLASSES.dominant_days(records)[2:4] == [10.0, 30.0]
    mean = [sum(shares[days] for shares in each) / len(each) for days in each[0]]
    assert PAGE_CLASSES.shares(records).tolist() == pytest.approx(mean)
