"""Bounds of freshness and of the peak request rate."""

import numpy as np
import pytest

from crawld.core.revisit.bounds import peak_probability, polite_bound, unpolite_bound
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.lab.webbase import synthetic_web


def test_bounds_are_equal_if_no_host_is_held():
    web = synthetic_web(5_000, 5, 3)
    low = 1e-6
    assert polite_bound(web, low) == pytest.approx(unpolite_bound(web, low))
    assert polite_bound(web, 1.0) < unpolite_bound(web, 1.0)


def test_the_bound_without_ceilings_keeps_the_weights():
    rate, weight = np.array([1.0, 1.0]), np.array([1.0, 1e6])
    web = PagesByHost(rate, np.array([0, 2]), np.array([0.1]), weight)
    # All visits go to the page that counts.
    assert unpolite_bound(web, 1.0) == pytest.approx(1.0 - np.exp(-1.0), rel=1e-4)


def test_a_peak_of_a_window_counts_the_certain_requests_apart():
    # .25 requests per second and 10 s: two are certain, the third is a bit of .5.
    half = peak_probability([0.5] * 40, 1.0, 30.0)
    assert peak_probability([0.25] * 40, 10.0, 80.0 + 30.0) == pytest.approx(half)
    assert 0.0 < half < 1.0
    assert peak_probability([0.25] * 4, 8.0, 9.0) == 0.0
    assert peak_probability([0.25] * 4, 10.0, 12.0) == pytest.approx(0.5**4)
    assert peak_probability([0.5], 1.0, 1.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("peak", "expected"), [(5.0, 1.0), (10.0, 1.0), (101.0, 0.0), (30.0, 2.12e-7)]
)
def test_limits_of_the_peak_bound(peak, expected):
    assert peak_probability([0.1] * 100, 1.0, peak) == pytest.approx(expected, rel=1e-2)
