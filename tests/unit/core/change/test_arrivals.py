"""The present rate of reports: a burst is noticed at once, chance is none."""

import math

import pytest

from crawld.core.change.arrivals import RECENT_S, Arrivals


def rate(arrivals):
    shape, exposure_s = arrivals.posterior()
    return shape / exposure_s


def seen(*counts, span_s=5.0):
    arrivals = Arrivals()
    for count in counts:
        arrivals.add(count, span_s)
    return arrivals


def test_a_steady_rate_is_learned():
    steady = seen(*[1.0, 0.0, 2.0, 1.0] * 60)
    assert rate(steady) == pytest.approx(0.2, rel=0.05)
    # Its exposure is that of the last minutes: nothing was forgotten.
    assert steady.posterior()[1] > 0.9 * RECENT_S


def test_a_storm_after_a_calm_is_known_after_two_polls():
    assert rate(seen(*[0.0] * 200)) < 0.002
    assert rate(seen(*[0.0] * 200, 2.0, 3.0)) > 0.1


def test_a_single_change_is_no_storm():
    assert rate(seen(*[0.0] * 2_000, 1.0)) < 0.05


@pytest.mark.parametrize(("count", "span_s"), [(1e6, 1e-9), (0.0, 1e12), (1e9, 1e9), (0.0, 0.0)])
def test_any_report_leaves_a_possible_rate(count, span_s):
    arrivals = seen(*[1.0] * 50)
    arrivals.add(count, span_s)
    assert math.isfinite(rate(arrivals))
    assert rate(arrivals) > 0.0
