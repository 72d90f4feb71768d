"""Policies on the synthetic web."""

import numpy as np
import pytest

from crawld.core.revisit.freshness import Order, mean_freshness
from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.policies_frequency import DelayedPolicy, merge_schedule
from crawld.lab import webbase
from crawld.lab.webbase import BANDWIDTHS, merge_and_delayed, random_freshness, run_webbase
from tests.unit.core.revisit.visits import visit_slots

SHARES = (BANDWIDTHS[0], 0.1, BANDWIDTHS[-1])


@pytest.fixture(scope="module")
def result():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webbase, "BANDWIDTHS", SHARES)
        return run_webbase(pages=20_000, hosts=12, seed=1)


def freshness(result, policy):
    return {
        row["bandwidth_share"]: row["freshness"]
        for row in result["rows"]
        if row["policy"] == policy
    }


def test_policies_have_the_published_order(result):
    polite = freshness(result, "OPT_POLITE (POLITE bound)")
    for share in SHARES:
        assert freshness(result, "UNPOLITE bound")[share] >= polite[share] - 1e-9
        for below in ("unconstrained, cut to ceilings", "uniform, cut to ceilings", "RANDOM"):
            assert polite[share] >= freshness(result, below)[share] - 1e-9
        for near in ("MERGE", "DELAYED"):
            assert abs(freshness(result, near)[share] - polite[share]) < 0.024
        assert freshness(result, "RANDOM")[share] > 0.77 * polite[share]


def expected_freshness(visits, rate, slot_s):
    """Return the mean freshness of pages, given the page visited at each slot (None: idle)."""
    shown = np.array([-1 if page is None else page for page in visits])
    found = []
    for page, changes in enumerate(rate.tolist()):
        gaps = np.diff(np.flatnonzero(shown == page)) * slot_s
        found.append(-np.expm1(-changes * gaps).sum() / (changes * gaps.sum()))
    return np.mean(found)


def test_merge_and_delayed_are_scored_as_their_policies_visit():
    # One lively page beside many quiet ones: where MERGE and DELAYED differ most.
    pages = np.arange(201)
    frequency = np.where(pages == 0, 1.0, 1.2 / 200)
    rate = 1.6 * frequency
    for load, slots in ((0.05, 200_000), (0.95, 40_000)):
        slot_s = load / frequency.sum()
        delayed = DelayedPolicy()
        delayed.load(pages)
        delayed.set_frequencies(pages, frequency)
        visits = visit_slots(delayed, slots, step=slot_s)
        scored = merge_and_delayed(pages, rate, frequency, slot_s)
        merged = merge_schedule(pages, frequency, 40_000).tolist()
        of_merge = expected_freshness(merged, rate, 1.0 / frequency.sum())
        of_delayed = expected_freshness(visits, rate, slot_s)
        assert scored == pytest.approx((of_merge, of_delayed), abs=2e-3)
    even = float(mean_freshness(Order.FIXED, 1.6, 1.0))
    idle_host = merge_and_delayed(pages[:2], rate[:2], frequency[:2] * [1, 100], 1e-6)
    assert idle_host[1] == pytest.approx(
        float(mean_freshness(Order.FIXED, rate[:2], frequency[:2] * [1, 100]).mean()), abs=1e-3
    )
    assert idle_host[0] < idle_host[1] < 2 * even


def test_random_is_scored_as_its_slots_are_drawn():
    # Three pages: one is drawn so often that its visits are no Poisson process.
    rate, frequency = np.array([2.0, 1.0, 0.2]), np.array([0.7, 0.2, 0.1])
    web = PagesByHost(rate, np.array([0, 3]), np.array([1.0]))
    draws = np.random.default_rng(3).choice(3, 400_000, p=frequency).tolist()
    assert random_freshness(web, frequency) == pytest.approx(
        expected_freshness(draws, rate, 1.0), abs=2e-3
    )
    poisson = float((1.0 / (1.0 + rate / frequency)).mean())
    assert abs(random_freshness(web, frequency) - poisson) > 0.02


def test_an_interrupted_run_continues(monkeypatch):
    monkeypatch.setattr(webbase, "BANDWIDTHS", (0.01, 0.02))
    monkeypatch.setattr(webbase, "_SAMPLED_HOSTS", 2)
    result = run_webbase(pages=500, hosts=2, seed=1)
    half = {**result, "rows": [r for r in result["rows"] if r["bandwidth_share"] < 0.015]}
    assert 0 < len(half["rows"]) < len(result["rows"])
    steps = []
    again = run_webbase(pages=500, hosts=2, seed=1, kept=half, done=steps.append)
    assert again == result
    assert len(steps) == 2
    marked = {**half, "rows": [row | {"policy": "kept"} for row in half["rows"]]}
    kept = run_webbase(pages=500, hosts=2, seed=1, kept=marked)
    assert kept["rows"][: len(half["rows"])] == marked["rows"]
    other = run_webbase(pages=200, hosts=2, seed=2, kept=marked)
    assert all(row["policy"] != "kept" for row in other["rows"])
