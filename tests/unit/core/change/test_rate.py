"""Rate estimators compared with printed numbers and with simulations."""

import math

import numpy as np
import pytest

from crawld.core.change import rate
from crawld.core.change.gamma import digamma, gamma_cdf, gamma_quantile
from crawld.core.change.prior import DEFAULT_PRIOR, Gamma, fit_prior

DAY_S = 86_400.0
VISITS = 10
SEEN_SHARE = 1.0 - math.exp(-1.0)
"""Probability that a visit sees a change if one change an interval is expected."""


def expected(estimator):
    """Return the expectation over the binomial number of visits that saw a change."""
    return sum(
        math.comb(VISITS, x)
        * SEEN_SHARE**x
        * (1.0 - SEEN_SHARE) ** (VISITS - x)
        * float(estimator(x))
        for x in range(VISITS + 1)
    )


def expected_by_exposure(estimator):
    """Return mean and standard deviation of an estimator c(X) / T that knows Last-Modified.

    With a(s) = E[e^(-sd); changed] = (1 - e^(-1-s)) / (1 + s) and b(s) = E[e^(-s); unchanged] =
    e^(-1-s) of one interval, E[e^(-sT); X = x] = C(n, x) a^x b^(n-x). The mean of 1/T is its
    integral over s > 0; that of 1/T^2 has another factor s. s = u / (1 - u) makes it finite.
    """
    u, weight = np.polynomial.legendre.leggauss(200)
    u, weight = (u + 1) / 2, weight / 2
    s, weight = u / (1 - u), weight / (1 - u) ** 2
    a, b = -np.expm1(-1 - s) / (1 + s), np.exp(-1 - s)
    numerators = [float(estimator(x, 1.0)) for x in range(VISITS + 1)]
    masses = [math.comb(VISITS, x) * weight * a**x * b ** (VISITS - x) for x in range(VISITS + 1)]
    pairs = list(zip(numerators, masses, strict=True))
    mean = sum(c * mass.sum() for c, mass in pairs)
    square = sum(c**2 * (s * mass).sum() for c, mass in pairs)
    return mean, math.sqrt(square - mean**2)


def last_modified_reduced(changed, exposure_s):
    return rate.last_modified_bias_reduced(changed, VISITS, exposure_s)


PRINTED_RUNS = 10_000
"""Runs assumed behind the printed means, which are simulated: with this many, all three lie within
a standard error of ours. With 60,000 they would lie within two, so the third printed digit is
chance."""


def test_the_naive_estimator_has_the_printed_bias():
    assert round(expected(lambda x: rate.naive(x, VISITS)), 3) == 0.632


def test_the_bias_reduced_estimator_has_the_printed_mean():
    def once(x):
        return rate.bias_reduced(x, VISITS, 1.0)

    mean = expected(once)
    deviation = math.sqrt(expected(lambda x: once(x) ** 2) - mean**2)
    assert mean == pytest.approx(1.00308, abs=5e-6)
    assert abs(mean - 1.002) < deviation / math.sqrt(PRINTED_RUNS)


@pytest.mark.parametrize(
    ("estimator", "exact", "printed"),
    [(rate.last_modified_mle, 1.07420, 1.077), (last_modified_reduced, 1.00863, 1.012)],
)
def test_last_modified_estimators_have_the_printed_means(estimator, exact, printed):
    mean, deviation = expected_by_exposure(estimator)
    assert mean == pytest.approx(exact, abs=5e-6)
    assert abs(mean - printed) < deviation / math.sqrt(PRINTED_RUNS)
    # Simulated again, with pages that change once an interval on average.
    back, runs = np.random.default_rng(2003).exponential(1.0, (100_000, VISITS)), 100_000
    found = estimator((back < 1.0).sum(axis=1), np.minimum(back, 1.0).sum(axis=1))
    assert found.mean() == pytest.approx(mean, abs=3 * deviation / math.sqrt(runs))


@pytest.mark.parametrize(
    ("changed", "wanted"), [(0, 0.0), (VISITS, 9.0 / 5.0), (5, (4 - 5 / (10 * math.log(0.5))) / 5)]
)
def test_the_last_modified_correction_at_its_edges(changed, wanted):
    assert float(rate.last_modified_bias_reduced(changed, VISITS, 5.0)) == pytest.approx(wanted)


def test_regular_intervals_give_the_closed_form_of_the_irregular_estimate():
    found = rate.irregular_mle(np.full(6, DAY_S), np.full(4, DAY_S))
    assert found == pytest.approx(-math.log(0.4) / DAY_S, rel=1e-9)


@pytest.mark.parametrize(
    ("changed", "unchanged", "wanted"),
    [
        ([], [DAY_S], 0.0),
        ([], [], 0.0),
        ([DAY_S], [], math.inf),
        ([DAY_S, 5.0], [0.0], math.inf),
    ],
    ids=["never changed", "never visited", "always changed", "unchanged at once"],
)
def test_the_irregular_estimate_has_its_limits(changed, unchanged, wanted):
    assert rate.irregular_mle(np.array(changed), np.array(unchanged)) == wanted


def test_the_irregular_estimate_solves_its_equation_over_eight_decades():
    changed, unchanged = np.array([1e-2, 30.0, 4e6]), np.array([1.0, 500.0, 1e5])
    found = rate.irregular_mle(changed, unchanged)
    left = float((changed / np.expm1(np.minimum(found * changed, 700.0))).sum())
    assert left == pytest.approx(unchanged.sum(), rel=1e-8)


def test_the_exact_rate_decays():
    changed_at = np.concatenate((np.arange(0.0, 100.0), np.arange(100.0, 1000.0, 10.0))) * DAY_S
    known = {"observed_from": -1.0, "at": 1000.0 * DAY_S}
    flat = rate.exact_decayed(changed_at, memory_s=math.inf, **known) * DAY_S
    recent = rate.exact_decayed(changed_at, memory_s=90 * DAY_S, **known) * DAY_S
    assert flat == pytest.approx(0.19, abs=1e-3)
    assert recent == pytest.approx(0.1, rel=0.06)
    assert rate.exact_decayed(changed_at, observed_from=5.0, at=5.0, memory_s=1.0) == 0.0


def test_exact_evidence_is_conjugate():
    prior = Gamma(2.0, 10.0 * DAY_S)
    found = rate.posterior(prior, rate.RateEvidence(exact_changes=6.0, exact_exposure_s=30 * DAY_S))
    assert found == Gamma(8.0, 40.0 * DAY_S)
    assert found.mean * DAY_S == pytest.approx(0.2)


def test_a_page_that_always_changed_gets_a_finite_rate_from_the_prior():
    evidence = rate.RateEvidence(changed=100.0, changed_s=100 * DAY_S)
    found = rate.posterior(DEFAULT_PRIOR, evidence)
    assert 1.0 < found.mean * DAY_S < 5.3
    low, high = found.interval(0.9)
    assert low < found.mean < high < 20.0 / DAY_S


def test_a_page_that_never_changed_gets_a_rate_above_zero():
    found = rate.posterior(DEFAULT_PRIOR, rate.RateEvidence(unchanged_s=3650 * DAY_S))
    assert 0.0 < found.mean < 0.01 * DEFAULT_PRIOR.mean


def test_the_credible_interval_has_its_nominal_coverage():
    rng = np.random.default_rng(4)
    prior = Gamma(2.0, 20.0)
    true = rng.gamma(prior.shape, 1.0 / prior.exposure_s, 2000)
    changes = rng.poisson(true * 50.0)
    inside = 0
    for each, count in zip(true.tolist(), changes.tolist(), strict=True):
        low, high = Gamma(2.0 + count, 70.0).interval(0.8)
        inside += low <= each <= high
    assert inside / 2000 == pytest.approx(0.8, abs=0.03)


def test_the_prior_of_a_host_is_found_from_its_pages():
    rng = np.random.default_rng(5)
    exposure_s = rng.uniform(5.0, 100.0, 8000)
    groups = np.repeat([0, 1], 4000)
    true = np.where(groups == 0, rng.gamma(0.7, 1 / 5.0, 8000), rng.gamma(3.0, 1 / 300.0, 8000))
    fitted = fit_prior(
        rng.poisson(true * exposure_s).astype(float), exposure_s, groups=groups, steps=200
    )
    assert fitted[0].shape == pytest.approx(0.7, rel=0.1)
    assert fitted[0].mean == pytest.approx(0.14, rel=0.06)
    assert fitted[1].mean == pytest.approx(0.01, rel=0.06)


@pytest.mark.parametrize(
    ("changes", "exposure_s", "groups"),
    [
        ([], [], None),
        ([0.0, 0.0], [0.0, 0.0], [0, 1]),
        ([0.0] * 5, [1e6] * 5, [0, 0, 0, 2, 2]),
        ([1e6], [1.0], [0]),
    ],
    ids=["no page", "nothing seen", "no change, an empty group", "one wild page"],
)
def test_a_prior_is_bounded_for_any_pages(changes, exposure_s, groups):
    fitted = fit_prior(
        np.array(changes),
        np.array(exposure_s),
        groups=None if groups is None else np.array(groups),
    )
    assert np.isfinite(fitted.shape).all()
    assert (fitted.shape > 0).all()
    assert np.isfinite(fitted.exposure_s).all()
    assert (fitted.exposure_s > 0).all()


def test_special_functions_against_tabled_values():
    # Abramowitz & Stegun 1964, tables 6.1 and 26.7 (chi-squared quantiles halved).
    assert digamma(np.array([1.0, 2.0, 0.5])) == pytest.approx(
        [-0.5772156649, 0.4227843351, -1.9635100260], abs=1e-9
    )
    assert gamma_quantile(0.95, 5.0) == pytest.approx(18.3070 / 2, abs=1e-4)
    assert gamma_quantile(0.05, 0.5) == pytest.approx(0.00393214 / 2, rel=1e-4)
    assert gamma_cdf(gamma_quantile(0.001, 300.0), 300.0) == pytest.approx(0.001, rel=1e-6)
    with pytest.raises(ValueError, match="probability"):
        gamma_quantile(1.0, 2.0)


@pytest.mark.parametrize("pages", [1, 10, 100])
def test_minutes_without_a_change_say_little_about_a_host(pages):
    """The first visits of a new mirror are a minute apart: no rate follows from that."""
    fitted = fit_prior(np.zeros(pages), np.full(pages, 60.0))[0]
    assert fitted.mean == pytest.approx(DEFAULT_PRIOR.mean, rel=0.2)


def test_a_day_of_changes_is_believed():
    fitted = fit_prior(np.full(50, 4.0), np.full(50, DAY_S))[0]
    assert fitted.mean * DAY_S == pytest.approx(4.0, rel=0.1)
