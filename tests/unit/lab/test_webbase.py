"""Policies on the synthetic web."""

import pytest

from crawld.lab.webbase import BANDWIDTHS, run_webbase


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
