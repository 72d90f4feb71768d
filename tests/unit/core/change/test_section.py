"""Sections of a host, and the priors they give."""

import numpy as np
import pytest

from crawld.core.change.refit import blank_records, refit
from crawld.core.change.section import SECTION_PAGES, group_pages, section_of
from crawld.core.units import DAY_S


@pytest.mark.parametrize(
    ("target", "section"),
    [
        ("/", ""),
        ("/about?a=/b/c", ""),
        ("/news/", "news"),
        ("/news/2026/a.html?x=1", "news"),
        ("/wiki/Oslo", "wiki"),
        ("/wiki/Talk:Oslo", "wiki/Talk"),
        ("//x", ""),
    ],
)
def test_sections(target, section):
    assert section_of(target) == section


def test_small_sections_belong_to_the_rest_of_their_host():
    large = [(1, "news")] * SECTION_PAGES
    few = [(1, "a"), (1, "b"), (2, "news")]
    assert group_pages(large + few) == [(1, "news")] * SECTION_PAGES + [(1, ""), (1, ""), (2, "")]


def test_after_two_visits_a_section_prior_is_better_than_a_host_prior():
    chance, pages = np.random.default_rng(1), 1000
    section = np.arange(pages) % 2
    rate_per_day = np.where(section == 0, 0.3, 0.03) * chance.gamma(2.0, 0.5, pages)
    records = blank_records(pages)
    changed = chance.binomial(2, -np.expm1(-7.0 * rate_per_day))
    records["visits"], records["changed"] = 2, changed
    records["changed_s"], records["unchanged_s"] = changed * 7 * DAY_S, (2 - changed) * 7 * DAY_S
    errors = [
        np.sqrt(np.mean(np.log(refit(records, groups=groups).rate_per_day / rate_per_day) ** 2))
        for groups in (np.zeros(pages, np.int64), section)
    ]
    assert errors[1] < 0.8 * errors[0]
