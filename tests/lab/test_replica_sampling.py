"""How soon samples show that a section of a copy differs."""

import itertools

import pytest

from crawld.lab.replica_bound import DivergedSection, diverging_sections, sampled_bound
from crawld.lab.replica_bound import as_markdown as bound_as_markdown
from crawld.lab.replica_sampling import (
    as_markdown,
    days_until_seen,
    least_samples,
    sampling_trade,
)


@pytest.mark.parametrize(
    ("pages", "share", "within_days", "seen"),
    [(12, 1.0, 1.7, 100), (40, 0.5, 1.75, 75), (100, 1.0, 0.4, 90), (400, 0.1, 2.0, 85)],
)
def test_a_section_that_differs_is_seen_in_time(pages, share, within_days, seen):
    """Each page would be visited every second day."""
    days = [days_until_seen(pages, round(share * pages), 1.0, seed) for seed in range(100)]
    assert sum(one <= within_days for one in days) >= seen


@pytest.mark.parametrize(("pages", "differing"), [(10, 1), (12, 3), (14, 2)])
def test_the_bound_is_the_least_sample_that_meets_a_differing_page(pages, differing):
    """Counted over all samples."""

    def missing(count):
        drawn = list(itertools.combinations(range(pages), count))
        return sum(min(one, default=pages) >= differing for one in drawn) / len(drawn)

    least = least_samples(pages, differing)
    assert missing(least) <= 0.1 < missing(least - 1)


def test_the_trade_is_of_less_saved_and_sooner_seen():
    usual, often = (
        [one for one in sampling_trade(20, 3) if one.effort == effort] for effort in (1.0, 2.5)
    )
    for one, other in zip(usual, often, strict=True):
        assert other.saved_share <= one.saved_share
    assert sum(one.median_days[0] for one in often) < sum(one.median_days[0] for one in usual)
    assert "| 40 | 1 |" in as_markdown(usual)


def test_no_sampler_sees_more_than_the_bound():
    """Counted over all samples of three and four pages: 3.5 in 1.75 days."""
    found = sampled_bound([DivergedSection(10, 2)], per_day=2.0)
    met = [
        sum(min(one) < 2 for one in drawn) / len(drawn)
        for drawn in (list(itertools.combinations(range(10), count)) for count in (3, 4))
    ]
    assert found.seen == pytest.approx(sum(met) / 2)
    assert found.cost_share == pytest.approx(2.0 / 5.0)
    assert sampled_bound([DivergedSection(4, 1)], per_day=9.0).seen == 1.0
    assert "| 2 | 0.400 |" in bound_as_markdown([found])


def test_the_bound_is_of_sections_of_which_a_tenth_differs():
    sections = diverging_sections(40, 1)
    assert 20 < len(sections) < 40
    assert all(one.differing >= 0.1 * one.pages for one in sections)
    rates = [sampled_bound(sections, per_day).seen for per_day in (1.0, 3.0, 8.0)]
    assert rates == sorted(rates)
