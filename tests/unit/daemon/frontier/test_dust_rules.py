"""The URLs of an origin that links name, counted while rules replace most of them."""

import pytest

from crawld.core.distinct_count import DistinctCount
from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import DustRule, HostRules
from crawld.daemon.frontier.dust_rules import DustRules

ORIGIN = "https://a.test"
SESSION = HostRules([DustRule(Rewrite(RewriteForm.DROP, "sid"), "item")], ["item"])


def urls(numbers):
    return [f"{ORIGIN}/item/{number % 50}?sid={number}" for number in numbers]


@pytest.fixture
def rules():
    rules = DustRules()
    rules.set({ORIGIN: SESSION})
    return rules


def replace(rules, numbers):
    for url in urls(numbers):
        assert rules.stand_in(url, ORIGIN, 1, 1) == url.partition("?")[0]


def test_what_is_replaced_counts_once_with_the_pages(rules):
    pages = DistinctCount()
    for url in urls(range(1_000)):
        pages.add(url)
    rules.count_pages(ORIGIN, pages)
    replace(rules, range(500, 2_000))
    replace(rules, range(500, 2_000))
    assert rules.named_urls(ORIGIN) == pytest.approx(1_935, rel=0.05)


def test_what_stands_for_others_does_not_count_unless_a_link_names_it(rules):
    replace(rules, range(300))
    before = rules.named_urls(ORIGIN)
    others = [f"{ORIGIN}/item/{number}" for number in range(50)]
    for url in others:
        assert rules.stand_in(url, ORIGIN, 1, 1, named=False) is None
    assert (rules.named_urls(ORIGIN), rules.named_urls("https://b.test")) == (before, 0)
    for url in others:
        assert rules.stand_in(url, ORIGIN, 1, 1) is None
    assert rules.named_urls(ORIGIN) == pytest.approx(before + 50, rel=0.05)


def test_urls_stay_counted_while_an_origin_has_no_rule(rules):
    replace(rules, range(300))
    before = rules.named_urls(ORIGIN)
    rules.set({})
    assert rules.named_urls(ORIGIN) == before > 250


def test_few_origins_get_more_visits_than_their_urls_allow():
    over = 0
    for number in range(100):
        rules, pages = DustRules(), DistinctCount()
        for at in range(1_500):
            pages.add(f"http://h{number}.test/{at}")
        rules.count_pages(ORIGIN, pages)
        over += rules.named_urls(ORIGIN) > 1_500
    assert over <= 5
