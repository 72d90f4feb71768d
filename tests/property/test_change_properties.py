"""Properties of every history, rate and distribution."""

import math
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crawld.core.change import rate, renewal
from crawld.core.change.classes import PAGE_CLASSES
from crawld.core.change.gamma import gamma_cdf, gamma_quantile
from crawld.core.change.history import Observation, build_history, sample_visits
from crawld.core.change.model import PageModel
from crawld.core.change.prior import Gamma
from crawld.core.change.record import records_of

DAY_S = 86_400.0
BORN = 1_700_000_000.0

positive = st.floats(1e-3, 1e4)
priors = st.builds(Gamma, st.floats(0.05, 20.0), st.floats(60.0, 1e9))
evidences = st.builds(
    lambda exact, exact_s, changed, interval_s, unchanged_s: rate.RateEvidence(
        exact, exact_s, changed, changed * interval_s, unchanged_s
    ),
    st.floats(0.0, 1e4),
    st.floats(0.0, 1e8),
    st.just(0.0) | st.floats(1e-6, 1e3),
    st.floats(0.0, 1e8),
    st.floats(0.0, 1e8),
)
masses = st.lists(st.floats(0.0, 1.0), min_size=10, max_size=10).filter(lambda m: sum(m) > 0.01)
visits = st.lists(
    st.tuples(
        st.floats(-2 * DAY_S, 400 * DAY_S),
        st.booleans(),
        st.none() | st.floats(-1e9, 1e9),
    ),
    max_size=25,
)


@settings(max_examples=25)
@given(st.floats(math.log(1 / 60), math.log(3.0)), st.integers(0, 10**6))
def test_estimators_are_consistent_on_poisson_histories(log_rate, seed):
    """With 3,000 visits every estimator is within five standard errors."""
    true = math.exp(log_rate)
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.uniform(0.25, 0.75, 3000))
    changed_at = np.cumsum(rng.exponential(1.0 / true, int(at[-1] * true * 1.5) + 200))
    seen = sample_visits(changed_at, at)
    found = rate.irregular_mle(seen.interval_s[seen.changed], seen.interval_s[~seen.changed])
    spread = 5.0 * true / math.sqrt(max(int(seen.changed.sum()), 1))
    assert abs(found - true) < spread + 0.02 * true
    back = np.where(seen.changed, seen.at - seen.last_change_at, np.inf)
    by_last_modified = rate.last_modified_mle(
        int(seen.changed.sum()), float(np.minimum(back, seen.interval_s).sum())
    )
    assert abs(float(by_last_modified) - true) < spread + 0.02 * true


@given(priors, evidences)
def test_the_posterior_lies_between_prior_and_likelihood(prior, evidence):
    found = rate.posterior(prior, evidence)
    assert 0.0 < found.mean < math.inf

    def pull(at):
        """Return the derivative of the log likelihood times the rate."""
        expected = 0.0
        if evidence.changed > 0 and evidence.changed_s > 0:
            expected = evidence.changed * rate.expected_changes(
                at * evidence.changed_s / evidence.changed
            )
        elif evidence.changed > 0:
            expected = evidence.changed
        time_s = evidence.exact_exposure_s + evidence.changed_s + evidence.unchanged_s
        return evidence.exact_changes + expected - at * time_s

    slack = 1e-6 * (1.0 + abs(prior.shape) + evidence.exact_changes + evidence.changed)
    if found.mean > prior.mean * (1 + 1e-9):
        assert pull(found.mean) > -slack
    elif found.mean < prior.mean * (1 - 1e-9):
        assert pull(found.mean) < slack


@given(st.floats(0.001, 0.999), st.floats(0.05, 500.0))
def test_the_quantile_inverts_the_distribution(probability, shape):
    assert abs(gamma_cdf(gamma_quantile(probability, shape), shape) - probability) < 1e-8


@given(visits)
def test_the_stored_form_is_read_back_after_any_visits(steps):
    model = PageModel()
    at = BORN
    for step_s, changed, offset_s in steps:
        at += step_s
        last_change_at = None if offset_s is None else at + offset_s
        model.update(Observation(at, changed, last_change_at, step_s))
        assert 0.0 < model.change_rate_per_day < math.inf
        assert model.last_change_at <= model.last_visit_at
    packed = model.to_bytes()
    assert PageModel.from_bytes(packed).to_bytes() == packed
    assert records_of([packed])[0].tobytes() == packed
    assert abs(sum(model.class_probabilities().values()) - 1.0) < 1e-9
    low, high = model.interval(0.9)
    assert 0.0 <= low < high < math.inf


@given(st.lists(st.floats(-1e12, 1e12), max_size=60), st.integers(1, 20))
def test_a_history_is_sorted_unique_bounded_and_loses_no_count(timestamps, limit):
    history = build_history(timestamps, now=1e12, limit=limit)
    assert (np.diff(history.changed_at) > 0).all()
    assert history.changed_at.size <= limit
    assert history.changes == len(set(timestamps))


@given(masses, st.lists(st.floats(0.0, 1e9), min_size=2, max_size=20), st.floats(0.0, 1e9))
def test_survival_falls_and_the_value_of_a_visit_rises(mass, times, age):
    row = renewal.Renewal(renewal.EDGES_S, np.array(mass) / sum(mass))
    at = np.sort(np.array(times))
    survival, value = row.survival(at), row.visit_value(at)
    conditional = row.conditional_survival(age, at)
    assert (np.diff(survival) <= 1e-12).all()
    assert ((survival >= 0) & (survival <= 1 + 1e-12)).all()
    assert (np.diff(conditional) <= 1e-9).all()
    assert (np.diff(value) >= -1e-9 * (float(row.mean()) + age + 1.0)).all()
    limit = float(row.second_moment() / (2 * row.mean()))
    assert float(row.visit_value(1e10)) <= limit * (1 + 1e-9)


@given(masses)
@settings(max_examples=20)
def test_wald_identity_bounds_the_renewal_function(mass):
    """R(y) is never negative, and the mean at 0; M never falls."""
    row = renewal.Renewal(renewal.EDGES_S, np.array(mass) / sum(mass))
    mean = float(row.mean())
    table = renewal.renewal_function(row, horizon=5.0 * mean, points=96)
    y = np.linspace(0.0, 5.0 * mean, 40)
    assert (table.residual_life(y) >= 0.0).all()
    assert abs(float(table.residual_life(0.0)) - mean) <= 1e-9 * mean
    assert (np.diff(table.expected) >= -1e-6).all()


@given(st.lists(st.tuples(positive, st.booleans()), max_size=30))
def test_class_weights_stay_probabilities(steps):
    evidence = rate.RateEvidence()
    for days, changed in steps:
        if changed:
            evidence = replace(
                evidence, changed=evidence.changed + 1, changed_s=evidence.changed_s + days * DAY_S
            )
        else:
            evidence = replace(evidence, unchanged_s=evidence.unchanged_s + days * DAY_S)
        weights = PAGE_CLASSES.weights(evidence)
        assert abs(sum(PAGE_CLASSES.probabilities(weights)) - 1.0) < 1e-9
        assert max(weights) == 0.0
