"""How many pages at rest of a replica are compared, when, and which."""

import pytest

from crawld.core.replica.sampling import (
    ENOUGH_SAMPLED,
    next_sampling,
    pages_to_sample,
    samples_per_day,
    sampling_effort,
)
from crawld.core.replica.sections import ReplicaPage, Standing

NOW = 1_780_000_000.0
DAY_S = 86_400.0


def agreeing(count, **more):
    return [
        ReplicaPage(number, f"/{number}", Standing.AGREES, compared_at=NOW - 9 * DAY_S, **more)
        for number in range(count)
    ]


def sampling(*saved, late_s=0.0, least=1, most=100, place=0.5):
    per_day = [samples_per_day(one) for one in saved]
    return next_sampling(per_day, late_s=late_s, least=least, most=most, place=place)


def test_sampling_takes_more_of_what_a_small_section_saves():
    for saved, per_day in ((9.0, 1.2), (16.0, 1.6), (36.0, 2.4), (100.0, 6.0), (180.0, 10.8)):
        some = sampling(saved)
        assert sum(some.counts) * DAY_S / some.interval_s == pytest.approx(per_day, rel=0.01)
    assert samples_per_day(50_000.0) == ENOUGH_SAMPLED
    assert sampling(0.0, 0.0) == ((1, 0), 1.25 * DAY_S)
    assert sampling() == ((), 1.25 * DAY_S)


def test_a_copy_of_few_pages_is_not_visited_as_if_none_rested():
    assert sampling(3.5).interval_s == pytest.approx(1.25 * DAY_S)
    assert sampling(2.0).interval_s == pytest.approx(1.25 * DAY_S)
    assert sampling(1.0).interval_s == pytest.approx(DAY_S / (1.7 * 0.25))
    assert samples_per_day(1.0, 2.5) == 0.25


def test_samples_grow_with_the_root_of_how_often_sections_return():
    assert sampling_effort(950, 19) == pytest.approx(1.0)
    assert sampling_effort(950, 39) == pytest.approx(2.0**0.5)
    assert samples_per_day(49.0, sampling_effort(950, 79)) == pytest.approx(2.0 * 2.94)
    # They neither end where nothing returned, nor take most of what is saved.
    assert sampling_effort(100_000, 0) == 0.85
    assert sampling_effort(50, 50) == 2.5


def test_names_of_one_machine_are_sampled_less_until_they_begin_to_differ():
    one, apart = (sampling_effort(0.0, 0, one_machine=which) for which in (True, False))
    assert one == pytest.approx(0.5 * apart)
    assert sampling_effort(100_000, 0, one_machine=True) == 0.5
    # Ten of which one returned are sampled like others.
    assert sampling_effort(10, 1, one_machine=True) == pytest.approx((1.25 / 60 * 50) ** 0.5)
    assert sampling_effort(50, 50, one_machine=True) > 2.4


def test_a_late_sampling_takes_the_pages_of_the_time_that_was_missed():
    """The job may run once a day only: as many pages are sampled as with a run every hour."""
    every, late = sampling(100.0), sampling(100.0, late_s=DAY_S)
    assert every.counts == (1,)
    assert late.counts == (7,)
    assert sampling(100.0, late_s=900 * DAY_S, most=8).counts == (8,)
    assert sampling(100.0, least=3).counts == (3,)


def test_each_section_has_its_part_of_the_samples():
    drawn = [sampling(100.0, 25.0, 1_000.0, place=at / 200).counts for at in range(200)]
    means = [sum(counts[at] for counts in drawn) / 200 for at in range(3)]
    total = 6.0 + 2.0 + ENOUGH_SAMPLED
    interval_days = 1.0 / total
    assert means == pytest.approx(
        [6.0 * interval_days, 2.0 * interval_days, ENOUGH_SAMPLED * interval_days], abs=0.01
    )
    assert {sum(counts) for counts in drawn} == {1}


def test_no_page_waits_for_chance_alone():
    found = agreeing(40)
    sampled = set()
    for turn in range(120):
        (page_id,) = pages_to_sample(found, 1, seed=turn)
        found[page_id] = found[page_id]._replace(compared_at=NOW + turn)
        sampled.add(page_id)
    assert len(sampled) == 40


def test_pages_with_a_changed_twin_are_sampled_first():
    found = [*agreeing(5, twin_changed=True), *agreeing(505)[5:]]
    chosen = pages_to_sample(found, 8, seed=3)
    assert len(set(chosen)) == 8
    assert sum(page_id < 5 for page_id in chosen) >= 4
    assert pages_to_sample(found, 8, seed=3) == chosen
    assert pages_to_sample(found, 8, seed=4) != chosen
    assert len(pages_to_sample(found[:3], 8, seed=3)) == 3
