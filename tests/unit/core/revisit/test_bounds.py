"""Bounds of freshness and of the peak request rate."""

import pytest

from crawld.core.revisit.bounds import peak_probability, polite_bound, unpolite_bound
from crawld.lab.webbase import synthetic_web


def test_bounds_are_equal_if_no_host_is_held():
    web = synthetic_web(5_000, 5, 3)
    low = 1e-6
    assert polite_bound(web, low) == pytest.approx(unpolite_bound(web, low))
    assert polite_bound(web, 1.0) < unpolite_bound(web, 1.0)


@pytest.mark.parametrize(
    ("peak", "expected"), [(5.0, 1.0), (10.0, 1.0), (101.0, 0.0), (30.0, 2.12e-7)]
)
def test_limits_of_the_peak_bound(peak, expected):
    assert peak_probability([0.1] * 100, 1.0, peak) == pytest.approx(expected, rel=1e-2)
