"""The comparison of estimators: known truths, real pages, fixed seeds."""

from pathlib import Path

import pytest

from crawld.errors import OperatorError
from crawld.lab.estimate import EstimateRow, compare, run_estimate
from crawld.lab.histories import read_histories

DAY_S = 86_400.0
DATA = Path(__file__).parents[1] / "data" / "histories"
START_2006, START_2024 = 1_136_073_600.0, 1_704_067_200.0


def table(source, **options):
    return {row["estimator"]: EstimateRow(**row) for row in run_estimate(source, **options)}


def test_poisson_pages_give_the_published_order():
    rows = table("poisson", pages=150, seed=1)
    relative = {name: row.bias_per_day / row.mean_true_per_day for name, row in rows.items()}
    assert relative["naive"] < -0.3
    assert abs(relative["bias_reduced"]) < abs(relative["naive"]) / 3
    for unbiased in ("irregular_mle", "last_modified_bias_reduced", "exact", "exact_shrunk"):
        assert abs(relative[unbiased]) < 0.05
    assert abs(relative["model"]) < 0.1
    errors = [rows[name].rmse_per_day for name in ("exact", "last_modified_mle", "naive")]
    assert errors == sorted(errors)
    assert rows["model"].rmse_per_day < rows["bias_reduced"].rmse_per_day
    assert rows["model"].log_rmse < rows["naive"].log_rmse / 2


def test_on_bursty_pages_only_exact_change_times_help():
    rows = table("bursty", pages=150, seed=1)
    for censored in ("naive", "bias_reduced", "irregular_mle", "last_modified_mle", "model"):
        assert rows[censored].bias_per_day < -0.5 * rows[censored].mean_true_per_day
    for exact in ("exact", "exact_shrunk", "model_exact"):
        assert abs(rows[exact].bias_per_day) < 0.15 * rows[exact].mean_true_per_day


def test_a_page_that_always_changed_is_unbounded_without_a_prior():
    rows = table("periodic", pages=60, seed=1)
    assert rows["irregular_mle"].unbounded > 0
    assert rows["model"].unbounded == 0
    assert rows["exact"].rmse_per_day < 0.01


@pytest.mark.parametrize(
    ("name", "start"),
    [("wikipedia_extract.csv.gz", START_2006), ("ota_terms.csv.gz", START_2024)],
)
def test_on_real_pages_estimators_from_visits_are_low_and_exact_is_not(name, start):
    options = {"start": start, "seed": 1, "visit_interval_s": 3 * DAY_S}
    rows = table(DATA / name, **options)
    order = [rows[each].bias_per_day for each in ("naive", "bias_reduced", "last_modified_mle")]
    assert order == sorted(order)
    assert order[-1] < 0
    assert abs(rows["exact"].bias_per_day) < 0.02 * rows["exact"].mean_true_per_day


def test_the_shrunk_recent_rate_predicts_better_than_the_plain_one():
    options = {"start": START_2024, "seed": 1, "visit_interval_s": 3 * DAY_S, "truth": "next"}
    rows = table(DATA / "ota_terms.csv.gz", **options)
    assert rows["model_exact"].rmse_per_day < rows["exact"].rmse_per_day
    assert rows["model_exact"].log_rmse < rows["exact"].log_rmse
    assert rows["model"].log_rmse < rows["bias_reduced"].log_rmse


def test_the_same_seed_gives_the_same_table():
    first, second, other = (run_estimate("poisson", pages=5, seed=seed) for seed in (3, 3, 4))
    assert first == second != other


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"visit_interval_s": 0.0}, "do not fit"),
        ({"visit_interval_s": 300 * DAY_S}, "do not fit"),
        ({"visit_interval_s": DAY_S, "start": 0.0}, "no page was born"),
        ({"visit_interval_s": DAY_S, "truth": "rate"}, "only for synthetic pages"),
    ],
)
def test_impossible_experiments_are_refused(options, said):
    with pytest.raises(OperatorError, match=said):
        compare(read_histories(DATA / "phpdoc_extract.csv.gz"), seed=0, **options)


def test_an_unknown_source_is_refused():
    with pytest.raises(OperatorError, match="cannot read"):
        run_estimate("sinusoidal")
