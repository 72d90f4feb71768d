"""The figures over some runs of the rounds, and the runs that a campaign has."""

import json
from collections import Counter

import pytest

from crawld.bench.replica_rounds.calibration import decile_counts, deciles_as_markdown
from crawld.bench.replica_rounds.pooled_runs import pooled
from crawld.bench.replica_rounds.rounds_metrics import RoundsRun, joined_figures, planned_runs

FIGURES = {
    "resting_differing_pages": 0.0,
    "declared": 1.0,
    "wrong_verdicts": 0.0,
    "wrong_verdicts_per_1000": 0.0,
    "requests_saved_share": 0.9,
    "calibration_error_max": 0.05,
    "deferred_pages": 0.0,
    "deferred_differing_pages": 0.0,
    "deferred_differing_share": 0.0,
    "savable_requests": 100.0,
    **decile_counts([]),
}


def joined(*runs):
    return joined_figures([FIGURES | run for run in runs])


def test_wrong_verdicts_are_those_of_all_that_were_declared():
    found = joined(
        {"declared": 990.0, "wrong_verdicts": 1.0}, {"declared": 10.0, "wrong_verdicts": 2.0}
    )
    assert found["declared"] == 1_000.0
    assert found["wrong_verdicts_per_1000"] == pytest.approx(3.0)


def test_a_page_that_differs_counts_in_whatever_run():
    found = joined({"resting_differing_pages": 1.0}, {}, {"resting_differing_pages": 2.0})
    assert found["resting_differing_pages"] == 3.0


def test_the_worst_run_counts_for_savings():
    assert joined({"requests_saved_share": 0.7}, {})["requests_saved_share"] == 0.7
    short = {"requests_saved_share": 0.0, "savable_requests": 0.0}
    assert joined({"requests_saved_share": 0.7}, short)["requests_saved_share"] == 0.7
    assert joined(short)["requests_saved_share"] == 0.0


def test_calibration_is_that_of_the_pairs_of_all_runs():
    first = decile_counts([(0.95, True)] * 20 + [(0.85, False)] * 49)
    second = decile_counts([(0.95, False)] * 5 + [(1.0, True)] * 25)
    found = joined(first, second)
    assert found["decile_9_pairs"] == 50.0
    assert found["calibration_error_max"] == pytest.approx(abs(0.975 - 0.9))
    assert joined(first)["calibration_error_max"] == 0.0, "no decile has enough pairs"
    assert deciles_as_markdown(found).splitlines()[2:] == [
        "| 0.8 to 0.9 | 49 | 0.850 | 0.000 |",
        "| 0.9 to 1.0 | 50 | 0.975 | 0.900 |",
    ]


def test_runs_of_other_times_are_taken_together():
    """A run prints its figures in its last line, the benchmark those of all webs."""
    single = "day 1.0: ...\n" + json.dumps(FIGURES | {"declared": 3.0})
    webs = {f"{name}_{web}": value for web in ("lookalike", "easy", "standard", "hard")
            for name, value in (FIGURES | {"declared": 10.0}).items()}  # fmt: skip
    bench = json.dumps({"ours": webs | {"auc_pnu_standard": 0.9}}, indent=1)
    found = pooled([single, bench])
    assert found["declared"] == 43.0
    assert "auc_pnu" not in found


def test_deferred_pages_that_differ_are_a_share_of_all_deferred():
    found = joined(
        {"deferred_pages": 90.0}, {"deferred_pages": 10.0, "deferred_differing_pages": 4}
    )
    assert found["deferred_differing_share"] == pytest.approx(0.04)


def test_every_web_is_run_with_every_seed():
    runs = planned_runs(300, 60.0, (7, 8), quick=False)
    assert Counter(run.web for run in runs) == {"lookalike": 4, "easy": 2, "standard": 2, "hard": 2}
    assert {run.seed for run in runs} == {7, 8}
    assert {run.coverage for run in runs if run.web == "lookalike"} == {1.0, 0.25}
    assert {run.days for run in runs} == {60.0}


def test_older_webs_are_made_too():
    assert len(RoundsRun("standard", 60, 1, 60.0).make().hosts) >= 60
