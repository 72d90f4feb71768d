"""Forecasts from the self-exciting model agree with the simulated year that follows them.

The forecast knows what was known before the year. Constant rates are further off in every cell
without hints, by .04 and more; with hints most cells are near 1, whatever the model.
"""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crawld.cli.lab import app
from crawld.core.units import YEAR_S
from crawld.lab.forecasting import compare, held_out, known_at_start
from crawld.lab.hint_options import HintOptions
from crawld.lab.histories import read_histories

HISTORIES = Path(__file__).parents[1] / "data" / "histories"


@cache
def held_out_year(name, year, past_changes):
    return held_out(
        read_histories(HISTORIES / name),
        start=datetime(year, 1, 1, tzinfo=UTC).timestamp(),
        past_changes=past_changes,
        most_pages=150,
        seed=0,
    )


@cache
def without_hints(name, year, past_changes, budgets):
    return compare(held_out_year(name, year, past_changes), budgets, (None,))


ARTICLES = ("wikipedia_extract.csv.gz", 2007, 10)


@pytest.mark.parametrize(
    ("name", "year", "past_changes", "budgets"),
    [
        (*ARTICLES, (0.1, 0.3)),
        ("ota_terms.csv.gz", 2025, 2, (0.02, 0.1)),
    ],
)
def test_the_forecast_is_near_the_year_that_follows(name, year, past_changes, budgets):
    rows = without_hints(name, year, past_changes, budgets)
    assert len(rows) == 2 * len(budgets)
    for row in rows:
        off = {
            kind: row[kind] - row["simulated"] for kind in ("forecast", "model alone", "Poisson")
        }
        assert abs(off["forecast"]) < 0.045
        assert off["model alone"] > off["Poisson"] + 0.02
        assert off["Poisson"] < -0.02


def test_hints_are_in_the_forecast():
    without, *_ = without_hints(*ARTICLES, (0.1, 0.3))
    row, _ = compare(held_out_year(*ARTICLES), (0.1,), (HintOptions(60.0),))
    assert row["forecast"] == pytest.approx(row["simulated"], abs=0.08)
    assert row["forecast"] > without["forecast"] + 0.15


def test_only_the_past_is_known_and_chooses_the_pages():
    year = held_out_year(*ARTICLES)
    before = year.histories.before(year.start)
    assert before.changes_in(year.start - YEAR_S, year.start).min() >= 10
    whole, past = known_at_start(year), known_at_start(year.__class__(before, year.start, year.end))
    assert whole.rates.tolist() == past.rates.tolist()
    assert [each.tolist() for each in whole.gaps_s] == [each.tolist() for each in past.gaps_s]
    assert whole.site == past.site


def test_other_rates_scale_rates_and_gaps():
    known = known_at_start(held_out_year("ota_terms.csv.gz", 2025, 2))
    faster = known.at(3.0 * float(known.rates.sum()))
    assert faster.rates == pytest.approx(3.0 * known.rates)
    again = faster.at(3.0 * float(known.rates.sum()))
    for one, other in zip(faster.gaps_s, again.gaps_s, strict=True):
        assert (one is None) == (other is None)
        assert one is None or one == pytest.approx(other)
    by_gaps = [
        rate if gaps is None else len(gaps) / gaps.sum()
        for rate, gaps in zip(faster.rates.tolist(), faster.gaps_s, strict=True)
    ]
    assert sum(by_gaps) == pytest.approx(faster.rates.sum())


def test_the_command_refuses_a_year_that_no_page_reaches():
    arguments = ["--histories", str(HISTORIES / "ota_terms.csv.gz"), "--from", "2025-01-01"]
    result = CliRunner().invoke(app, ["forecast", *arguments, "--past-changes", "9999"])
    assert result.exit_code != 0
    assert "no page has 9999 changes" in result.output
