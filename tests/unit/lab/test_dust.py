"""Learnt rules on a simulated site of duplicate URLs; large sites: docs/experiments."""

from crawld.lab.dust import simulate_dust
from crawld.simweb.dust_site import DustSite


def test_rules_save_most_duplicates_and_lose_no_page():
    figures = simulate_dust(DustSite(7, 120), 7, learnt_after=0.10)
    assert figures.wrong == 0
    assert figures.missed == 0
    assert figures.rules >= 10
    assert figures.avoided >= 0.6
    assert figures.validation_share <= 0.02
