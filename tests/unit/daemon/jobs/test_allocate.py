"""Allocation of visits to the pages of each host."""

import numpy as np
import pytest

from crawld.core.revisit.allocation import kkt_residual
from crawld.core.revisit.freshness import Order, mean_freshness
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.daemon.crawl.shared_rates import HostLimit
from crawld.daemon.jobs.allocate import AllocationPages, allocate_hosts


def test_the_frequencies_of_each_host_sum_to_its_turns():
    random = np.random.default_rng(4)
    host = np.sort(random.integers(1, 9, 4000))
    pages = AllocationPages(
        np.arange(4000),
        host,
        np.ones(4000, np.int64),
        random.lognormal(-14.0, 2.0, 4000),
        random.choice([0.5, 1.0, 3.0], 4000),
    )
    delay_s = {number: 0.5 * number for number in range(1, 9)}
    result = allocate_hosts(pages, delay_s)
    turns = [1.0 / delay_s[number] for number in result.hosts.tolist()]
    assert result.allocation.spent == pytest.approx(turns, rel=1e-6)
    assert result.residual <= 1e-6
    by_host = PagesByHost(pages.rate, result.offsets, np.array(turns), pages.weight)
    assert kkt_residual(by_host, sum(turns), result.allocation) == result.residual


def test_a_host_without_a_delay_gets_100_visits_per_second():
    pages = AllocationPages(
        np.array([1, 2]), np.array([5, 5]), np.array([1, 1]), np.full(2, 1e-5), np.ones(2)
    )
    result = allocate_hosts(pages, {5: 0.0})
    assert result.allocation.spent == pytest.approx([100.0])


def many_pages(hosts=12, pages=3000):
    random = np.random.default_rng(7)
    return AllocationPages(
        np.arange(pages),
        np.sort(random.integers(1, hosts + 1, pages)),
        np.ones(pages, np.int64),
        random.lognormal(-13.0, 2.0, pages),
        random.choice([0.5, 1.0, 3.0], pages),
    )


def test_a_limit_of_all_hosts_gives_them_one_price():
    pages = many_pages()
    delay_s = dict.fromkeys(range(1, 13), 10.0)
    limit = HostLimit(frozenset(range(1, 13)), 0.2)
    found = allocate_hosts(pages, delay_s, [limit]).allocation
    assert found.spent.sum() == pytest.approx(0.2, rel=1e-6)
    free = found.spent < 0.1 * (1 - 1e-6)
    assert found.price[free] == pytest.approx(np.full(free.sum(), found.price[free][0]), rel=1e-4)
    assert np.all(found.price[~free] >= found.price[free].max(initial=0.0) * (1 - 1e-6))


def test_limits_inside_limits_leave_no_visit_that_is_worth_more_elsewhere():
    pages = many_pages()
    delay_s = {number: 5.0 + number for number in range(1, 13)}
    site, every = HostLimit(frozenset({1, 2, 3, 4}), 0.05), HostLimit(frozenset(range(1, 13)), 0.3)
    result = allocate_hosts(pages, delay_s, [site, every])
    spent, price = result.allocation.spent, result.allocation.price
    inside = np.isin(result.hosts, [1, 2, 3, 4])
    own = np.array([1.0 / delay_s[number] for number in result.hosts.tolist()])
    assert spent[inside].sum() == pytest.approx(0.05, rel=1e-6)
    assert spent.sum() == pytest.approx(0.3, rel=1e-6)
    assert np.all(spent <= own * (1 + 1e-6))
    # A host below its own limit has the lowest price of all whose turns it could get.
    for held, group in ((inside, inside), (~inside, ~inside)):
        free = held & (spent < own * (1 - 1e-6))
        assert price[free].max() <= price[group & (spent > 1e-9)].min() * (1 + 1e-4)
    assert price[inside].min() >= price[~inside].min()


def test_hosts_that_are_pruned_leave_their_visits_to_the_others_at_the_same_rate():
    pages = many_pages()
    delay_s = dict.fromkeys(range(1, 13), 1.0)
    limit = HostLimit(frozenset(range(1, 13)), 0.02)
    kept = pages.host <= 8
    left = AllocationPages(
        *(array[kept] for array in (pages.page, pages.host, pages.site, pages.rate, pages.weight))
    )

    def freshness(given, allocation):
        fresh = mean_freshness(Order.FIXED, given.rate, allocation.frequency)
        return np.average(fresh[given.host <= 8], weights=given.weight[given.host <= 8])

    before = allocate_hosts(pages, delay_s, [limit]).allocation
    after = allocate_hosts(left, delay_s, [limit]).allocation
    assert before.spent.sum() == pytest.approx(after.spent.sum()) == pytest.approx(0.02)
    assert np.all(after.spent >= before.spent[:8])
    assert freshness(left, after) > freshness(pages, before) + 0.01
