"""Counts of different texts from a sketch."""

import pytest

from crawld.core.distinct_count import STANDARD_ERROR, DistinctCount


def counted(texts):
    count = DistinctCount()
    for text in texts:
        count.add(text)
    return count


@pytest.mark.parametrize("number", [0, 1, 10, 300, 5_000, 12_000, 25_000, 200_000])
def test_the_count_is_off_by_its_standard_error_at_most_threefold(number):
    estimate = counted(f"https://a.test/{each}" for each in range(number)).estimate()
    assert abs(estimate - number) <= 3 * STANDARD_ERROR * number


def test_the_mean_of_many_counts_has_no_bias():
    number, sketches = 2_000, 60
    mean = (
        sum(counted(f"{at} {each}" for each in range(number)).estimate() for at in range(sketches))
        / sketches
    )
    assert abs(mean - number) <= 3 * STANDARD_ERROR * number / sketches**0.5


def test_a_text_that_comes_again_changes_nothing():
    texts = [f"/{number}" for number in range(500)]
    assert counted(texts * 3).estimate() == counted(texts).estimate()


def test_merged_sketches_count_what_both_have_once():
    count = counted(f"/{number}" for number in range(4_000))
    count.merge(counted(f"/{number}" for number in range(2_000, 6_000)))
    assert count.estimate() == counted(f"/{number}" for number in range(6_000)).estimate()


def test_a_lone_surrogate_is_a_text():
    assert round(counted(["\ud800", "\ud801"]).estimate()) == 2
