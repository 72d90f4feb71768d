import math

import pytest

from crawld.simweb import truth
from crawld.simweb.change_process import STATIC, SiteChangeRates, periodic_process, poisson_process
from crawld.simweb.graph import SiteGraph
from crawld.simweb.site import SimSite


def site_of(changes, pages, start_at=0.0):
    return SimSite(("a.test",), SiteGraph(pages), changes=changes, start_at=start_at)


def test_a_copy_is_fresh_until_its_page_changes():
    site = site_of(lambda page: periodic_process(10.0, start_at=0.0) if page < 2 else STATIC, 4)
    copies = {
        site.graph.path(0): 12.0,  # missed the change at 20
        site.graph.path(1): 21.0,
        "http://a.test:8/": 5.0,  # an older copy of page 0 does not count
        f"http://b.test{site.graph.path(2)}": 1.0,
        "http://a.test/robots.txt": 2.0,
    }
    found = truth.freshness_by_fetch_time(site, copies, 24.0)
    assert (found.pages, found.copied, found.fresh) == (4, 3, 2)
    assert found.freshness == 0.5
    assert found.mean_age_s == pytest.approx((4 + 24) / 4)


def test_means_of_a_periodic_page_worked_by_hand():
    site = site_of(lambda page: periodic_process(10.0, start_at=0.0), 1)
    # Visited at 4 (fresh until 10) and 15 (fresh until 20); stale 0-4, 10-15, 20-25.
    found = truth.mean_freshness(site, {"/": [15.0, 4.0]}, start=0.0, end=25.0)
    assert found.freshness == pytest.approx(11 / 25)
    assert found.age_s == pytest.approx((4**2 + 5**2 + 5**2) / 2 / 25)
    part = truth.mean_freshness(site, {"/": [15.0, 4.0]}, start=12.0, end=22.0)
    assert part.freshness == pytest.approx(5 / 10)
    assert part.age_s == pytest.approx(((5**2 - 2**2) + 2**2) / 2 / 10)


def test_the_mean_equals_the_sampled_freshness():
    site = site_of(
        SiteChangeRates(3.0, 40.0, static_share=0.2).changes(start_at=50.0, seed=2), 9, 50.0
    )
    visits = {site.graph.path(p): [60.0 + 7 * p + 31 * k for k in range(5)] for p in range(8)}
    found = truth.mean_freshness(site, visits, start=55.0, end=155.0)
    steps = 4000
    sampled = []
    for k in range(steps):
        now = 55.0 + 100.0 * (k + 0.5) / steps
        copies = {u: max(t for t in ts if t <= now) for u, ts in visits.items() if ts[0] <= now}
        sampled.append(truth.freshness_by_fetch_time(site, copies, now))
    assert found.freshness == pytest.approx(sum(s.freshness for s in sampled) / steps, abs=2e-3)
    assert found.age_s == pytest.approx(sum(s.mean_age_s for s in sampled) / steps, rel=2e-3)


def test_means_of_poisson_pages_match_cho_and_garcia_molina():
    # Equally spaced visits, r = change rate / visit rate = 1.5.
    pages, every_s, r = 400, 10.0, 1.5
    site = site_of(lambda page: poisson_process(every_s / r, start_at=0.0, seed=page), pages)
    times = [k * every_s for k in range(101)]
    visits = {site.graph.path(page): times for page in range(pages)}
    found = truth.mean_freshness(site, visits, start=0.0, end=1000.0)
    assert found.freshness == pytest.approx((1 - math.exp(-r)) / r, abs=0.01)
    age_s = every_s * (1 / 2 - 1 / r + (1 - math.exp(-r)) / r**2)
    assert found.age_s == pytest.approx(age_s, rel=0.03)


def test_a_period_must_not_begin_before_the_site():
    site = site_of(lambda page: STATIC, 1, start_at=10.0)
    for start, end in ((5.0, 20.0), (20.0, 20.0)):
        with pytest.raises(ValueError, match="period"):
            truth.mean_freshness(site, {}, start=start, end=end)
