"""What the model of one page learns from visits, with any server and any clock."""

import json
import math
import struct
from dataclasses import replace

import numpy as np
import pytest

from crawld.core.change import renewal
from crawld.core.change.history import Observation, sample_visits
from crawld.core.change.model import PageModel
from crawld.core.change.prior import DEFAULT_PRIOR
from crawld.core.change.record import (
    MEMORY_S,
    RECORD_DTYPE,
    RECORD_STRUCT,
    VERSION,
    is_current,
    records_of,
    upgraded,
)

DAY_S = 86_400.0
BORN = 1_700_000_000.0


def poisson(mean_days, days, seed=1):
    size = int(3 * days / mean_days) + 30
    gaps = np.random.default_rng(seed).exponential(mean_days * DAY_S, size)
    return BORN + np.cumsum(gaps)


def visited(changed_at, days, *, every_days=1.0, last_modified=False):
    model = PageModel()
    model.update(Observation(BORN, False))
    at = BORN + np.arange(0.0, days, every_days) * DAY_S
    for observation in sample_visits(changed_at, at).observations(with_last_change=last_modified):
        model.update(observation)
    return model


def test_the_stored_form_is_small_and_equal_for_one_page_and_many():
    assert RECORD_STRUCT.size == RECORD_DTYPE.itemsize <= 200
    model = visited(poisson(3, 60), 60, last_modified=True)
    record = records_of([model.to_bytes()])[0]
    assert record["version"] == VERSION
    for name in ("visits", "changed_visits", "last_change_at", "exact_changes", "unchanged_s"):
        assert record[name] == getattr(model, name)
    assert record["bins"].tolist() == pytest.approx(model.bins)
    assert record["counts"].tolist() == pytest.approx(model.counts)
    assert float(record["rate"]) == pytest.approx(model.rate)


def test_foreign_bytes_are_refused():
    packed = PageModel().to_bytes()
    for wrong in (b"", packed[:-1], bytes([VERSION + 1]) + packed[1:]):
        with pytest.raises(ValueError, match="page model"):
            PageModel.from_bytes(wrong)
        with pytest.raises(ValueError, match="page model"):
            records_of([wrong])


@pytest.mark.parametrize("last_modified", [False, True], ids=["censored", "last-modified"])
@pytest.mark.parametrize("mean_days", [2.0, 10.0])
def test_the_rate_is_found(mean_days, last_modified):
    model = visited(poisson(mean_days, 600), 600, last_modified=last_modified)
    low, high = model.interval(0.99)
    assert low < 1.0 / mean_days < high
    assert low < model.change_rate_per_day < high


def test_exact_times_are_more_precise_than_visits():
    changed_at = poisson(0.2, 300)
    changed_at = changed_at[changed_at < BORN + 300 * DAY_S]
    exact = PageModel()
    exact.observe_changes(changed_at.tolist(), BORN + 300 * DAY_S)
    seen = visited(changed_at, 300)
    width = [high - low for low, high in (exact.interval(0.9), seen.interval(0.9))]
    assert exact.change_rate_per_day == pytest.approx(5.0, rel=0.15)
    assert width[0] < width[1]


def test_one_visit_may_count_several_changes():
    model = PageModel()
    model.update(Observation(BORN, False))
    found = [BORN + 3 * DAY_S, BORN + DAY_S, BORN + 3 * DAY_S, BORN - 5, BORN + 90 * DAY_S]
    model.observe_changes(found, BORN + 4 * DAY_S)
    assert model.last_change_at == BORN + 3 * DAY_S
    assert model.gaps_s[0] == 2 * DAY_S
    # The day between the last change and the last visit has let it fade a little.
    assert sum(model.bins) == pytest.approx(math.exp(-DAY_S / MEMORY_S))
    assert (model.visits, model.changed_visits) == (2, 1)


def test_a_page_that_never_changes_and_one_that_always_does():
    still = visited(np.empty(0), 400)
    restless = visited(BORN + np.arange(0.5, 400.0, 0.1) * DAY_S, 400)
    assert 0.0 < still.change_rate_per_day < 0.01
    assert still.explain(BORN)["last_change_at"] is None
    assert 2.0 < restless.change_rate_per_day < 20.0
    assert max(restless.class_probabilities(), key=restless.class_probabilities().get) <= 0.25
    assert max(still.class_probabilities(), key=still.class_probabilities().get) == 365.0


def test_the_first_last_modified_gives_the_age():
    old, new = PageModel(), PageModel()
    old.update(Observation(BORN, False, last_change_at=BORN - 2000 * DAY_S))
    new.update(Observation(BORN, False, last_change_at=BORN - 0.1 * DAY_S))
    assert old.change_rate_per_day < 0.1 * new.change_rate_per_day
    assert old.known_age_s() == 2000 * DAY_S


def test_a_server_that_stamps_every_response_loses_trust():
    model = PageModel()
    for day in range(5):
        at = BORN + day * DAY_S
        model.update(Observation(at, False, last_change_at=at, interval_s=day and DAY_S))
    assert not model.trusts_last_modified
    assert not model.change_known
    assert model.exact_changes == 0.0


def test_correct_values_restore_trust():
    model = PageModel()
    model.update(Observation(BORN, False))
    for day in range(1, 30):
        at = BORN + day * DAY_S
        claimed_at = at + 9 * DAY_S if day == 1 else at - 3600.0
        model.update(Observation(at, True, last_change_at=claimed_at, interval_s=DAY_S))
    assert model.modified_broken == 1
    assert model.trusts_last_modified


def test_the_expected_last_change_of_a_fast_page_is_close_to_the_visit():
    fast = visited(BORN + np.arange(0.5, 100.0, 0.05) * DAY_S, 100)
    slow = visited(BORN + np.arange(20.5, 100.0, 20.0) * DAY_S, 81.5)
    assert fast.known_age_s() < 0.4 * DAY_S
    assert 0.4 * DAY_S < slow.known_age_s() < 0.6 * DAY_S


@pytest.mark.parametrize("jump_days", [-1.0, 1.0, -4000.0])
def test_a_clock_jump_leaves_the_model_valid(jump_days):
    model = visited(poisson(3, 50), 50)
    before = model.last_visit_at
    model.update(Observation(before + jump_days * DAY_S, True, interval_s=jump_days * DAY_S))
    assert model.last_visit_at >= before
    assert model.last_change_at <= model.last_visit_at
    assert 0.0 < model.change_rate_per_day < math.inf
    assert PageModel.from_bytes(model.to_bytes()).visits == model.visits


def test_old_intervals_fade_from_the_histogram_however_they_were_seen():
    """Hourly changes for a month, then a change every ten days for two years."""
    often = BORN + 3600.0 * np.arange(700)
    rarely = often[-1] + 10 * DAY_S * np.arange(1, 74)
    at = rarely[-1] + 3600.0
    told = PageModel()
    told.observe_changes([*often.tolist(), *rarely.tolist()], at)
    visited_often = visited(np.concatenate([often, rarely]) + 1.0, 760)
    for model in (told, visited_often):
        slow = renewal.bin_counts(np.array([10 * DAY_S])).argmax()
        assert sum(model.bins[:4]) < 0.03 * 700
        assert 16.0 < model.bins[slow] < 19.0  # 18 in half a year
    mean_s = float(told.renewal().mean()[0])
    assert 5 * DAY_S < mean_s < 12 * DAY_S


def test_a_model_of_the_former_version_is_read_and_kept():
    model = visited(poisson(3, 60), 60, last_modified=True)
    now = model.to_bytes()
    counts = [9, 0, 3, 0, 0, 65_535, 0, 0, 0, 1]
    former = bytes([1]) + now[1:6] + struct.pack("<10H", *counts) + now[46:] + bytes(32)
    assert not is_current(former)
    assert is_current(upgraded(former))
    read = PageModel.from_bytes(former)
    assert read.bins == counts
    current = PageModel.from_bytes(now)
    assert replace(read, bins=current.bins) == current
    assert upgraded(now) == now
    assert upgraded(b"other") == b"other"


def test_explain_gives_plain_and_complete_values():
    model = visited(poisson(5, 100), 100, last_modified=True)
    shown = model.explain(BORN + 101 * DAY_S)
    assert json.loads(json.dumps(shown, allow_nan=False))["visits"] == 100
    low, high = shown["rate_interval_per_day"]
    assert low < shown["change_rate_per_day"] < high
    assert sum(shown["class_probabilities"].values()) == pytest.approx(1.0)
    assert shown["class_days"] in (3.0, 10.0)
    assert shown["last_modified_trusted"] is True


def test_a_page_with_few_visits_has_no_dominant_class():
    few, many = visited(np.empty(0), 1), visited(poisson(5, 400), 400)
    shown = few.explain(BORN + 2 * DAY_S)
    assert shown["class_days"] is None
    assert shown["class_interval_days"][0] <= 1.0
    assert shown["class_interval_days"][1] == 365.0
    shown = many.explain(BORN + 401 * DAY_S)
    assert shown["class_days"] is not None
    assert shown["class_interval_days"][0] <= shown["class_days"] <= shown["class_interval_days"][1]


def test_a_page_never_visited_has_its_prior():
    blank = PageModel()
    assert blank.change_rate_per_day == pytest.approx(DEFAULT_PRIOR.mean * DAY_S)
    assert blank.explain(BORN)["last_visit_at"] is None
    assert float(blank.renewal().mass.sum()) == pytest.approx(1.0)


def test_the_interval_distribution_follows_the_histogram():
    bursty = PageModel()
    changed_at = [BORN + 30 * DAY_S * burst + 60.0 * k for burst in range(12) for k in range(9)]
    bursty.observe_changes(changed_at, BORN + 340 * DAY_S)
    row = bursty.renewal()
    assert float(row.survival(np.array([4000.0]))[0]) < 0.2
    long_after = float(row.residual_mean(np.array([DAY_S]))[0])
    assert long_after > 5.0 * float(row.residual_mean(np.array([1.0]))[0])
