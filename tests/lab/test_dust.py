"""Learnt rules on simulated sites of duplicate URLs; large sites: docs/experiments."""

import pytest

from crawld.lab.dust import simulate_dust
from crawld.lab.dust_report import SITES, make_site
from crawld.simweb.dust_shapes import SHAPES
from crawld.simweb.dust_site import DustSite


def test_rules_save_most_duplicates_and_lose_no_page():
    figures = simulate_dust(DustSite(7, 120), 7, learnt_after=0.10)
    assert figures.wrong == 0
    assert figures.missed == 0
    assert figures.rules >= 10
    assert figures.avoided >= 0.6
    assert figures.validation_share <= 0.01


@pytest.mark.parametrize(("shape", "avoided"), [("wiki", 0.3), ("comments", 0.1)])
def test_pages_that_differ_for_few_values_are_not_merged(shape, avoided):
    figures = simulate_dust(make_site(shape, 3, 150), 3)
    assert (figures.wrong, figures.missed) == (0, 0)
    assert figures.avoided >= avoided


def test_a_parameter_that_matters_for_one_thing_in_twelve_is_kept():
    figures = simulate_dust(make_site("shop", 1, 20), 1)
    assert (figures.wrong, figures.missed) == (0, 0)
    assert figures.avoided >= 0.85
    assert figures.validation_share <= 0.01


@pytest.mark.parametrize("name", SITES)
def test_links_of_a_site_name_its_pages(name):
    site = make_site(name, 1, 120)
    links = [link for start in site.links("/") for link in site.links(start)]
    found = {site.page_of(link) for link in links}
    assert len(found) > 20
    assert site.links("/") == make_site(name, 1, 120).links("/")


def test_shapes_have_pages_under_several_urls():
    for name in SHAPES:
        site = make_site(name, 2, 60)
        urls = {link for start in site.links("/") for link in site.links(start)}
        urls |= {link for start in urls for link in site.links(start)}
        assert len({site.page_of(url) for url in urls}) < len(urls), name
