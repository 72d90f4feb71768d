"""Fits of interval distributions, compared with what the intervals were drawn from."""

import json
from importlib import import_module

import numpy as np
import pytest
from typer.testing import CliRunner

from crawld.cli.lab import app
from crawld.lab.histories import from_times
from crawld.lab.interval_fits import (
    FAMILIES,
    Intervals,
    fit_all,
    fit_family,
    log_survival,
    observed_survival,
    page_intervals,
    pooled,
)
from tests.lab.lab_process import run_lab

DAY_S = 86_400.0
NONE = np.zeros(0)
BY_NAME = {family.name: family for family in FAMILIES}


def draw(name, count, seed=3):
    """Return intervals, most of them about a day."""
    rng = np.random.default_rng(seed)
    return {
        "exponential": lambda: rng.exponential(DAY_S, count),
        "gamma": lambda: rng.gamma(0.4, DAY_S, count),
        "weibull": lambda: DAY_S * rng.weibull(0.5, count),
        "pareto": lambda: DAY_S * rng.pareto(1.5, count),
        "hyperexponential": lambda: np.where(
            rng.random(count) < 0.6, rng.exponential(600.0, count), rng.exponential(DAY_S, count)
        ),
    }[name]()


@pytest.mark.parametrize("name", list(BY_NAME))
def test_the_family_of_the_intervals_has_the_least_aic(name):
    fits = {fit.family: fit for fit in fit_all(Intervals(draw(name, 4_000), NONE))}
    least = min(fits.values(), key=lambda fit: fit.aic)
    # Families with more parameters contain the exponential: they win by chance, and by little.
    assert least.family == name or fits[name].aic - least.aic < 4.0
    if name != "exponential":
        assert fits["exponential"].aic > fits[name].aic + 100.0


def test_parameters_are_those_of_the_intervals():
    fit = fit_family(BY_NAME["hyperexponential"], Intervals(draw("hyperexponential", 12_000), NONE))
    assert fit.parameters["long_mean"] == pytest.approx(DAY_S, rel=0.05)
    assert fit.parameters["ratio_less_1"] == pytest.approx(DAY_S / 600.0 - 1.0, rel=0.08)
    assert fit.parameters["short_share"] == pytest.approx(0.6, abs=0.02)


@pytest.mark.parametrize(
    ("name", "theirs"), [("gamma", "gamma"), ("weibull", "weibull_min"), ("pareto", "lomax")]
)
def test_fits_are_as_likely_as_those_of_scipy(name, theirs):
    distribution = getattr(import_module("scipy.stats"), theirs)  # 50 MB, for this test only
    # Relative intervals have the mean 1, from which the search starts.
    intervals = Intervals(draw(name, 1_500), NONE).relative()
    shape, place, scale = distribution.fit(intervals.ended, floc=0)
    likelihood = distribution.logpdf(intervals.ended, shape, place, scale).sum()
    ours = fit_family(BY_NAME[name], intervals)
    assert ours.log_likelihood >= likelihood - 0.01
    assert ours.parameters["shape"] == pytest.approx(shape, rel=0.02)
    times = np.array([0.1, 1.0, 10.0])
    expected = distribution.logsf(times, ours.parameters["shape"], 0, ours.parameters["scale"])
    assert log_survival(ours, times) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["exponential", "weibull", "hyperexponential"])
def test_censored_intervals_count_as_at_least_that_long(name):
    whole = draw(name, 4_000)
    seen_until = np.random.default_rng(4).uniform(0.05, 2.0, 4_000) * DAY_S
    cut = whole > seen_until
    fit = fit_family(BY_NAME[name], Intervals(whole[~cut], seen_until[cut]))
    true = fit_family(BY_NAME[name], Intervals(whole, NONE))
    at = np.array([0.5 * DAY_S, 1.5 * DAY_S])
    assert np.exp(log_survival(fit, at)) == pytest.approx(np.exp(log_survival(true, at)), abs=0.04)
    short = fit_family(BY_NAME[name], Intervals(whole[~cut], NONE))
    assert log_survival(short, at)[1] < log_survival(true, at)[1] - 0.5
    shown = observed_survival(Intervals(whole[~cut], seen_until[cut]), at)
    assert shown == pytest.approx((whole[:, None] > at).mean(axis=0), abs=0.03)


def test_an_exponential_fit_is_time_over_changes():
    fit = fit_family(FAMILIES[0], Intervals(np.array([10.0, 20.0]), np.array([70.0])))
    assert fit.parameters["mean"] == pytest.approx(50.0, rel=1e-4)
    assert fit.log_likelihood == pytest.approx(-2 * np.log(50.0) - 2.0)
    assert fit.aic == pytest.approx(2.0 - 2.0 * fit.log_likelihood)


def test_pages_of_different_rates_are_pooled_by_their_shape():
    rng = np.random.default_rng(8)
    times = {}
    for page in range(40):
        changed_at = 1.2e9 + np.cumsum(rng.exponential(6e4 * 5 ** (page % 2), 800))
        times[f"p{page}"] = changed_at[changed_at < 1.2e9 + 2.5e7]
    pages = page_intervals(from_times({**times, "rare": [1.2e9, 1.21e9]}), least=50)
    assert len(pages) == 40
    fits = {fit.family: fit for fit in fit_all(pooled(list(pages.values())))}
    assert fits["exponential"].parameters["mean"] == pytest.approx(1.0, abs=0.02)
    assert fits["exponential"].aic < min(fit.aic for fit in fits.values()) + 8.0


def test_the_command_writes_fits_and_a_plot(tmp_path):
    source, out, plot = tmp_path / "h.csv", tmp_path / "o.json", tmp_path / "o.svg"
    rng = np.random.default_rng(1)
    rows = [
        f"{page},{at}"
        for page in range(4)
        for at in (1.2e9 + np.cumsum(DAY_S * rng.weibull(0.4, 120))).tolist()
    ]
    source.write_text("page_id,changed_at\n" + "\n".join(rows) + "\n")
    arguments = ["fit", "--histories", str(source), "--json", str(out), "--plot", str(plot)]
    result = run_lab(arguments, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "weibull" in result.stdout
    value = json.loads(out.read_text())
    assert (value["pages"], value["intervals"]) == (4, 4 * 119)
    rows = {row["family"]: row for row in value["rows"]}
    assert rows["weibull"]["aic_above_best"] < 10.0 < rows["exponential"]["aic_above_best"]
    assert sum(row["pages_best"] for row in rows.values()) == 4
    assert "observed" in plot.read_text()
    few = CliRunner().invoke(app, ["fit", "--histories", str(source), "--min-changes", "500"])
    assert few.exit_code == 2
    assert "--min-changes" in few.output
