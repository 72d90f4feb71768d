"""Poll intervals: not too short, not too long, and no polls that gain nothing."""

import math

import numpy as np
import pytest

from crawld.core.change.hawkes import POISSON
from crawld.core.change.reliability import Reliability
from crawld.core.revisit.forecast import HintQuality, survival_curves
from crawld.core.revisit.polling import SHARE_MOST, combine_quality, hint_quality, plan_polls

DAY = 86_400.0


def pages(count=100, rate=1 / DAY):
    return survival_curves(np.full(count, rate), model=POISSON)


def test_the_planned_interval_is_the_best():
    source, slots = HintQuality(5.0, 0.02, 0.95), 100 / DAY
    found = plan_polls(pages(), slots, source)
    for factor in (0.2, 0.5, 2.0, 5.0):
        every = found.interval_s * factor
        left = max(slots - 1 / every, 1e-9)
        quality = HintQuality(5.0 + every / 2, 0.02, 0.95)
        assert pages().forecast(left, quality).freshness <= found.freshness + 1e-4
    assert found.gain > 0.1


def test_expensive_polls_are_rarer_and_limited_to_their_share():
    source, slots = HintQuality(5.0, 0.02, 0.95), 100 / DAY
    cheap, dear = (plan_polls(pages(), slots, source, requests=cost) for cost in (1.0, 5.0))
    assert dear.interval_s > cheap.interval_s
    for slots_per_s in (1e-5, 1e-4, 1e-3):
        interval_s = plan_polls(pages(), slots_per_s, source).interval_s
        assert interval_s is None or 1 / (interval_s * slots_per_s) <= SHARE_MOST + 1e-9


@pytest.mark.parametrize(
    ("rate", "slots", "source"),
    [
        (1e-9, 1.0, HintQuality(5.0)),  # nothing changes
        (1 / DAY, 10.0, HintQuality(5.0)),  # far more slots than needed
        (1 / DAY, 1e-3, HintQuality(5.0, 1.0, 0.9)),  # reports nothing
        (1 / DAY, 1e-3, HintQuality(5.0, 0.9, 0.02)),  # mostly false
    ],
)
def test_a_source_that_gains_nothing_is_not_polled(rate, slots, source):
    found = plan_polls(pages(rate=rate), slots, source)
    assert found.interval_s is None
    assert found.freshness == found.without


def test_a_second_source_gains_less():
    slots, good = 100 / DAY, HintQuality(60.0, 0.05, 0.95)
    alone = plan_polls(pages(), slots, good)
    beside = plan_polls(pages(), slots, good, beside=HintQuality(60.0, 0.1, 0.95))
    assert beside.gain < 0.5 * alone.gain


def test_combined_sources_miss_what_both_miss():
    both = combine_quality(HintQuality(10.0, 0.2, 0.9), HintQuality(100.0, 0.5, 0.5))
    assert both.missed_share == pytest.approx(0.1)
    assert both.lag_s == pytest.approx((0.8 * 10 + 0.1 * 100) / 0.9)
    assert 0.5 < both.trust < 0.9
    assert combine_quality(HintQuality(1.0), None) == HintQuality(1.0)


def test_a_sample_stands_for_all_pages():
    slots, source = 1000 / DAY, HintQuality(5.0, 0.02, 0.95)
    whole = plan_polls(pages(1000), slots, source)
    sample = plan_polls(pages(100), slots, source, covered=1000)
    assert sample.freshness == pytest.approx(whole.freshness, abs=1e-3)


def test_hint_quality_comes_from_the_reliability():
    reliability = Reliability()
    reliability.learn_lag(30.0)
    quality = hint_quality(reliability, interval_s=100.0)
    assert quality.lag_s == pytest.approx(reliability.lag_s() + 50.0)
    assert (quality.trust, quality.missed_share) == (reliability.trust, reliability.missed_share)
    assert math.isclose(quality.missed_share, 0.1)


def test_no_pages_are_not_polled():
    assert plan_polls(survival_curves([], model=POISSON), 1.0, HintQuality(5.0)).interval_s is None
