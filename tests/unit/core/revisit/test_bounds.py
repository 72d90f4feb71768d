"""The bound of the peak request rate."""

import pytest

from crawld.core.revisit.bounds import peak_probability


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
