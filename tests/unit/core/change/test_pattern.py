"""The pattern of a page's changes: drawn intervals, real pages, and what says nothing."""

import numpy as np
import pytest

from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.change.pattern import ChangePattern, change_pattern, pattern_of
from crawld.core.change.renewal import bin_counts
from crawld.lab.histories import read_histories
from tests.lab.test_histories import DATA

DAY_S = 86_400.0
RATES = [0.05, 0.3, 1.0, 4.0]


def bins(gaps_days):
    return bin_counts(np.asarray(gaps_days) * DAY_S).astype(int).tolist()


def patterns(draw, rate, pages, size):
    rng = np.random.default_rng(7)
    return [pattern_of(bins(draw(rng, size) / rate)) for _ in range(pages)]


def bursty(rng, size):
    return rng.exponential(1.0, size) * np.where(rng.random(size) < 0.8, 0.02, 4.92)


def regular(rng, size):
    return 1.0 + 0.05 * rng.uniform(-1.0, 1.0, size)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("size", [25, 100, 1000])
def test_poisson_pages_are_random(rate, size):
    found = patterns(lambda rng, size: rng.exponential(1.0, size), rate, 400, size)
    # 1 % are expected to be taken for others.
    assert sum(each is not ChangePattern.RANDOM for each in found if each) <= 14
    assert found.count(None) == 0


@pytest.mark.parametrize("rate", RATES)
def test_bursts_are_seen(rate):
    found = patterns(bursty, rate, 200, 50)
    assert found.count(ChangePattern.BURSTY) >= 195


@pytest.mark.parametrize("rate", RATES)
def test_regular_pages_are_seen(rate):
    found = patterns(regular, rate, 200, 50)
    assert found.count(ChangePattern.REGULAR) >= 195


def test_few_intervals_say_nothing():
    assert pattern_of(bins([1.0] * 19)) is None
    assert pattern_of(bins([1.0] * 20)) is not None


def test_articles_are_bursty():
    histories = read_histories(DATA / "wikipedia_extract.csv.gz")
    found = []
    for times in histories.page_times:
        if len(times) > 50:
            model = PageModel()
            model.observe_changes(times.tolist(), float(times[-1]) + DAY_S)
            found.append(change_pattern(model))
    told = [pattern for pattern in found if pattern is not None]  # the others: too few of late
    assert len(told) > 14
    assert told.count(ChangePattern.BURSTY) >= 0.8 * len(told)


def test_changes_found_by_visits_say_nothing():
    model = PageModel()
    for day in range(60):
        model.update(Observation(at=1e9 + day * DAY_S, interval_s=DAY_S, changed=True))
    assert sum(model.bins) > 45
    assert change_pattern(model) is None
