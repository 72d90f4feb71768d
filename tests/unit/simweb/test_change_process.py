import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.simweb import change_process, stateless_random

LAWS = {
    "poisson": lambda seed: change_process.poisson_process(7.0, start_at=1e9, seed=seed),
    "bursty": lambda seed: change_process.bursty_process(
        change_process.BurstShape(2.0, 90.0), start_at=1e9, seed=seed
    ),
    "periodic": lambda seed: change_process.periodic_process(
        0.1 * (1 + seed % 97), start_at=1e9 + seed % 13
    ),
    "recorded": lambda seed: change_process.FixedChanges(
        [1e9 + (seed * k) % 977 for k in range(1, 30)]
    ),
}


def test_mix_gives_the_published_splitmix64_sequence():
    golden = 0x9E3779B97F4A7C15
    assert stateless_random.mix(0) == 0xE220A8397B1DCDAF
    assert stateless_random.mix(golden) == 0x6E789E6AA1B965F4


@given(st.integers(), st.lists(st.integers(), max_size=4))
def test_uniform_stays_inside_the_open_interval(seed, keys):
    assert 0 < stateless_random.uniform(seed, *keys) < 1


@pytest.mark.parametrize("name", LAWS)
@given(seed=st.integers(0, 10**6), ats=st.lists(st.floats(1e9 - 50, 1e9 + 2000), min_size=1))
def test_changes_until_and_change_at_are_inverse_in_any_order(name, seed, ats):
    asked, fresh = LAWS[name](seed), LAWS[name](seed)
    for at in ats:
        count = asked.changes_until(at)
        assert asked.change_at(count) > at
        assert count == 0 or asked.change_at(count - 1) <= at
        assert change_process.next_change(asked, at) > at >= change_process.last_change(asked, at)
    for at in sorted(ats):
        assert fresh.changes_until(at) == asked.changes_until(at)


@pytest.mark.parametrize("name", LAWS)
def test_each_change_counts_from_its_own_time_on(name):
    asked = LAWS[name](5)
    for k in range(20):
        at = asked.change_at(k)
        assert asked.changes_until(at) == k + 1
        assert asked.changes_until(math.nextafter(at, 0)) == k


def test_poisson_has_exponential_gaps():
    poisson = change_process.poisson_process(10.0, start_at=0.0, seed=3)
    n = 20_000
    gaps = [poisson.change_at(k + 1) - poisson.change_at(k) for k in range(n)]
    # Mean and share above the mean within four standard errors.
    assert abs(sum(gaps) / n - 10.0) < 4 * 10.0 / math.sqrt(n)
    assert abs(sum(gap > 10.0 for gap in gaps) / n - math.exp(-1)) < 4 * 0.5 / math.sqrt(n)


def test_bursty_gaps_keep_their_mean_and_are_overdispersed():
    bursts = change_process.BurstShape(1.0, 100.0, edit_share=0.7)
    process = change_process.bursty_process(bursts, start_at=0.0, seed=3)
    n = 20_000
    gaps = [process.change_at(k + 1) - process.change_at(k) for k in range(n)]
    mean = sum(gaps) / n
    variance = sum((gap - mean) ** 2 for gap in gaps) / n
    assert abs(mean / bursts.mean_interval_s - 1) < 0.06
    assert variance > 2 * mean**2


def test_site_change_rates_have_the_given_shares_and_range():
    spread = change_process.SiteChangeRates(10.0, 1000.0, static_share=0.2, bursty_share=0.3)
    changes = spread.changes(start_at=0.0, seed=1)
    kinds = [changes(page) for page in range(1500)]
    static = sum(kind is change_process.STATIC for kind in kinds)
    assert abs(static / 1500 - 0.2) < 0.04
    means = [spread.mean_interval_s(page, seed=1) for page in range(1500)]
    assert min(means) >= 10
    assert max(means) <= 1000
    counts = [kind.changes_until(5e3) * mean / 5e3 for kind, mean in zip(kinds, means, strict=True)]
    moving = [
        count
        for kind, count in zip(kinds, counts, strict=True)
        if kind is not change_process.STATIC
    ]
    assert abs(sum(moving) / len(moving) - 1) < 0.05


def test_invalid_intervals_are_rejected():
    for interval_s in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="positive"):
            change_process.poisson_process(interval_s, start_at=0.0, seed=1)
        with pytest.raises(ValueError, match="positive"):
            change_process.periodic_process(interval_s, start_at=0.0)
    with pytest.raises(ValueError, match="finite"):
        change_process.FixedChanges([math.nan])
    with pytest.raises(ValueError, match="infinity"):
        change_process.poisson_process(1.0, start_at=0.0, seed=1).changes_until(math.inf)
