"""The synthetic web, its bounds, and the peak request rate."""

import numpy as np
import pytest

from crawld.core.revisit.bounds import peak_probability, polite_bound, unpolite_bound
from crawld.lab.burstiness import peak_rows
from crawld.lab.webbase import BANDWIDTHS, run_webbase, synthetic_web


@pytest.fixture(scope="module")
def result():
    return run_webbase(pages=20_000, hosts=12, seed=1)


def freshness(result, policy):
    return {
        row["bandwidth_share"]: row["freshness"]
        for row in result["rows"]
        if row["policy"] == policy
    }


def test_policies_have_the_published_order(result):
    polite = freshness(result, "OPT_POLITE (POLITE bound)")
    for share in BANDWIDTHS:
        assert freshness(result, "UNPOLITE bound")[share] >= polite[share] - 1e-9
        for below in ("unconstrained, cut to ceilings", "uniform, cut to ceilings", "RANDOM"):
            assert polite[share] >= freshness(result, below)[share] - 1e-9
        for near in ("MERGE", "DELAYED"):
            assert abs(freshness(result, near)[share] - polite[share]) < 0.024
        assert freshness(result, "RANDOM")[share] > 0.77 * polite[share]


def test_an_interrupted_run_continues(result):
    half = {**result, "rows": [r for r in result["rows"] if r["bandwidth_share"] < 0.15]}
    steps = []
    again = run_webbase(pages=20_000, hosts=12, seed=1, kept=half, done=steps.append)
    assert again == result
    assert len(steps) == len(BANDWIDTHS)
    other = run_webbase(pages=200, hosts=2, seed=2, kept=half)
    assert other["pages"] == 200


def test_bounds_are_equal_if_no_host_is_held():
    web = synthetic_web(5_000, 5, 3)
    low = 1e-6
    assert polite_bound(web, low) == pytest.approx(unpolite_bound(web, low))
    assert polite_bound(web, 1.0) < unpolite_bound(web, 1.0)


def test_equally_spaced_requests_stay_below_the_bound():
    rates = 1.0 / (30.0 * np.random.default_rng(1).uniform(0.5, 1.5, 400))
    rows = {row["policy"]: row for row in peak_rows(rates, horizon_s=1800.0)}
    even = rows["equally-spaced"]
    assert even["measured_probability"] <= even["bound_probability"] * 1.0 + 1 / 1800
    assert rows["unpolite"]["peak_to_mean"] >= even["peak_to_mean"] > 1.0
    assert even["mean_per_window"] == pytest.approx(rates.sum(), rel=0.02)


@pytest.mark.parametrize(
    ("peak", "expected"), [(5.0, 1.0), (10.0, 1.0), (101.0, 0.0), (30.0, 2.12e-7)]
)
def test_limits_of_the_peak_bound(peak, expected):
    assert peak_probability([0.1] * 100, 1.0, peak) == pytest.approx(expected, rel=1e-2)
