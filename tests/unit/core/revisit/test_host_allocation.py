"""Allocation of visits to the pages of each host."""

import numpy as np
import pytest

from crawld.core.change.model import PageModel
from crawld.core.change.record import records_of
from crawld.core.change.refit import fit_renewals, from_histories
from crawld.core.change.renewal import BINS, EDGES_S, Renewal
from crawld.core.revisit.allocation import kkt_residual
from crawld.core.revisit.freshness import Order, mean_freshness
from crawld.core.revisit.host_allocation import (
    LEAST_SHARE,
    AllocationPages,
    HostLimit,
    allocate_hosts,
    frequency_at_price,
    least_frequency,
)
from crawld.core.revisit.pages_by_host import PagesByHost


def of_rates(page, host, site, rate, weight):
    """Return pages whose policies follow no frequencies."""
    follows = np.zeros(len(page), np.bool_)
    return AllocationPages(page, host, site, rate, weight, follows, np.zeros((0, BINS), np.float32))


def test_the_frequencies_of_each_host_sum_to_its_turns():
    random = np.random.default_rng(4)
    host = np.sort(random.integers(1, 9, 4000))
    pages = of_rates(
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
    pages = of_rates(
        np.array([1, 2]), np.array([5, 5]), np.array([1, 1]), np.full(2, 1e-5), np.ones(2)
    )
    result = allocate_hosts(pages, {5: 0.0})
    assert result.allocation.spent == pytest.approx([100.0])


def many_pages(hosts=12, pages=3000):
    random = np.random.default_rng(7)
    return of_rates(
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
    left = of_rates(
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


def bursty_models(random, pages):
    """Return models of pages whose changes come in bursts of some hours, months apart."""
    times = []
    for _ in range(pages):
        gaps = np.where(random.random(60) < 0.6, random.exponential(3600.0, 60), 0.0)
        gaps += np.where(gaps > 0, 1.0, random.exponential(20 * 86_400.0, 60))
        at = np.cumsum(gaps)
        times.append(at - at[-1] + 1e9 - random.uniform(0.0, 86_400.0))
    offsets = np.concatenate(([0], np.cumsum([len(each) for each in times])))
    return from_histories(np.concatenate(times), offsets, at=1e9)


def of_models(records, *, host=1, site=1, follows=True, weights=None):
    count = len(records)
    weights = np.ones(count) if weights is None else weights
    numbers = np.arange(1, count + 1) + 1000 * host
    return AllocationPages.of_models(
        numbers, records, weights, host=host, site=site, follows=follows
    )


def test_the_visits_of_a_host_that_follows_frequencies_are_worth_the_same_by_its_intervals():
    records = bursty_models(np.random.default_rng(3), 40)
    pages = of_models(records)
    found = allocate_hosts(pages, {1: 3 * 3600.0}).allocation
    assert found.frequency.sum() == pytest.approx(1.0 / (3 * 3600.0), rel=1e-6)
    renewals = fit_renewals(records)
    worth = np.array(
        [
            float(Renewal(EDGES_S, mass).visit_value(1.0 / f))
            for mass, f in zip(renewals.mass, found.frequency.tolist(), strict=True)
        ]
    )
    least = LEAST_SHARE * found.frequency.mean()
    more = found.frequency > least * 1.001
    assert more.sum() > 20
    assert worth[more] == pytest.approx(np.full(more.sum(), found.price[0]), rel=1e-4)
    assert np.all(worth[~more] <= found.price[0] * (1 + 1e-6))
    # By rates alone the same visits are shared otherwise.
    by_rates = allocate_hosts(of_models(records, follows=False), {1: 3 * 3600.0}).allocation
    assert np.abs(by_rates.frequency - found.frequency).sum() > 0.05 * found.frequency.sum()


def test_each_host_gets_the_frequencies_of_its_own_pages_whatever_the_order():
    random = np.random.default_rng(5)
    records = [bursty_models(random, count) for count in (7, 4, 9, 5)]
    parts = [
        of_models(records[0], host=3),
        of_models(records[1], host=1, follows=False),
        of_models(records[2], host=2),
        of_models(records[3], host=4),
    ]
    delay_s = {1: 4000.0, 2: 5000.0, 3: 6000.0, 4: 7000.0}
    joined = AllocationPages.joined(parts)
    together = allocate_hosts(joined, delay_s).allocation
    for part in parts:
        own = joined.host == part.host[0]
        assert joined.page[own].tolist() == part.page.tolist()
        alone = allocate_hosts(part, delay_s).allocation
        assert together.frequency[own] == pytest.approx(alone.frequency, rel=1e-5)


def test_no_page_with_an_importance_is_given_up():
    records = bursty_models(np.random.default_rng(8), 30)
    records["bins"][:10] = 0
    records["bins"][:10, 0] = 65_000  # minutes between changes: no visit is worth anything
    records["rate"][:10] = 1e-2
    records["last_change_at"][:10] = records["last_visit_at"][:10]
    weights = np.array([0.0] + [0.01] * 9 + [1.0] * 20)
    found = allocate_hosts(of_models(records, weights=weights), {1: 3600.0}).allocation
    mean = 1.0 / 3600.0 / 30
    assert found.frequency[0] == 0.0
    assert found.frequency[1:10] == pytest.approx(np.full(9, LEAST_SHARE * mean), rel=1e-6)
    assert found.frequency.sum() == pytest.approx(30 * mean, rel=1e-6)


def test_a_site_gets_the_visits_it_asks_for_as_far_as_the_turns_suffice():
    records = bursty_models(np.random.default_rng(9), 30)
    both = AllocationPages.joined([of_models(records[:15]), of_models(records[15:], site=2)])
    for turn_s in (3600.0, 4 * 86_400.0):
        found = allocate_hosts(both, {1: turn_s}, longest_s={2: 5 * 86_400.0}).allocation
        assert found.frequency.sum() == pytest.approx(1.0 / turn_s, rel=1e-6)
        own = found.frequency[both.site == 2] * 5 * 86_400.0
        if turn_s == 3600.0:
            assert own.min() >= 1.0 - 1e-6
        else:  # 15 pages in 5 days are more than the turns
            assert own == pytest.approx(np.full(15, own[0]))
            assert own[0] == pytest.approx(5 / 4 / 15, rel=0.02)


@pytest.mark.parametrize("follows", [True, False])
def test_a_kept_price_gives_the_frequencies_of_the_whole_allocation(follows):
    records = bursty_models(np.random.default_rng(4), 25)
    weights = np.geomspace(1e-4, 2.0, 25)
    pages = of_models(records, follows=follows, weights=weights)
    found = allocate_hosts(pages, {1: 7200.0}).allocation
    least = least_frequency(weights, found.spent[0] / 25, np.inf)
    again = frequency_at_price(records, found.price[0], weights, least, follows=follows)
    assert again == pytest.approx(found.frequency, rel=1e-4, abs=1e-12)
    if follows:  # the least important page is not worth a visit, and has the least of them
        assert again[0] == pytest.approx(least[0])


def test_turns_that_no_page_has_a_use_for_are_shared_all_the_same():
    # Two new pages of a host that allows a hundred visits a second.
    models = [PageModel() for _ in range(2)]
    records = records_of(model.to_bytes() for model in models)
    pages = AllocationPages.of_models(
        np.arange(2), records, np.ones(2), host=1, site=1, follows=True
    )
    assert allocate_hosts(pages, {1: 0.01}).allocation.frequency == pytest.approx([50.0, 50.0])


def test_the_least_frequency_is_what_is_asked_for_or_a_share_of_the_mean():
    found = least_frequency(np.array([1.0, 3.0, 0.0]), 1e-5, np.array([1000.0, np.inf, 1000.0]))
    assert found == pytest.approx([1e-3, LEAST_SHARE * 1e-5, 0.0])
