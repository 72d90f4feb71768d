"""The present rate of reports: a burst is noticed at once, chance is none."""

import math
from dataclasses import replace

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


@pytest.mark.parametrize("span_s", [1.0, 60.0, 240.0, 3_600.0])
def test_the_rate_does_not_depend_on_how_often_a_source_is_read(span_s):
    # The changes of a long span were not all made at its end.
    assert rate(seen(*[0.05 * span_s] * 400, span_s=span_s)) == pytest.approx(0.05, rel=0.05)


def test_parts_of_one_report_are_those_of_its_span():
    parts = Arrivals()
    for _ in range(100):
        parts.add(2.0, 60.0)
    whole = replace(parts)
    whole.add(5.0, 600.0)
    for count, span_s in ((1.0, 0.0), (3.0, 0.0), (1.0, 600.0)):
        parts.add(count, span_s)
        assert rate(parts) < 0.04
    assert parts == whole
    assert Arrivals.from_dict(parts.as_dict()) == parts
