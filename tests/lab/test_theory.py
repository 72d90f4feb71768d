"""Results of the studies that need no policy: crawl modes, the curve of frequencies, classes."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from crawld.cli.lab import app
from crawld.core.units import DAY_S
from crawld.lab import class_priors, crawl_modes, rate_curve
from crawld.lab.histories import from_times

CYCLE_S, ACTIVE_S = 30 * DAY_S, 7 * DAY_S


def poisson_pages(mean_s, pages, end, seed=1):
    random = np.random.default_rng(seed)
    counts = random.poisson(end / mean_s, pages)
    return from_times({str(n): np.sort(random.uniform(0, end, c)) for n, c in enumerate(counts)})


class TestModes:
    def test_the_closed_forms_are_those_printed(self):
        for mode in crawl_modes.modes(CYCLE_S, ACTIVE_S):
            found = crawl_modes.poisson_freshness(
                mode, CYCLE_S, 1.0 / crawl_modes.PUBLISHED_INTERVAL_S
            )
            # A printed .77 is .783 by the formula of the source.
            assert found == pytest.approx(crawl_modes.PUBLISHED[mode.name], abs=0.014)

    def test_recorded_pages_agree_with_the_closed_forms(self):
        end = 40 * CYCLE_S
        pages = poisson_pages(40 * DAY_S, 400, end)
        for mode in crawl_modes.modes(CYCLE_S, ACTIVE_S):
            found = crawl_modes.recorded_freshness(pages, mode, CYCLE_S, start=4 * CYCLE_S, end=end)
            closed = crawl_modes.poisson_freshness(mode, CYCLE_S, 1.0 / (40 * DAY_S))
            assert found == pytest.approx(closed, abs=0.01)

    def test_one_change_makes_a_shown_copy_stale_until_the_next(self):
        pages = from_times({"a": np.array([4.5 * CYCLE_S])})
        (in_place, shadow, *_) = crawl_modes.modes(CYCLE_S, ACTIVE_S)
        at = {"start": 4 * CYCLE_S, "end": 8 * CYCLE_S}
        # Visited in the middle of each cycle: the change comes at the time of the visit.
        assert crawl_modes.recorded_freshness(pages, in_place, CYCLE_S, **at) == 1.0
        later = from_times({"a": np.array([4.75 * CYCLE_S])})
        found = crawl_modes.recorded_freshness(later, in_place, CYCLE_S, **at)
        assert found == pytest.approx(1 - 0.75 / 4)
        found = crawl_modes.recorded_freshness(later, shadow, CYCLE_S, **at)
        assert found == pytest.approx(1 - 1.25 / 4)


class TestCurve:
    def test_the_five_pages_are_those_printed(self):
        rows, _ = rate_curve.five_pages()
        found = [row["visits_per_day"] for row in rows]
        assert found == pytest.approx(rate_curve.PUBLISHED, abs=0.005)
        assert rows[-1]["age_days"] is None
        assert 0.1 < rows[0]["age_days"] < rows[0]["age_days_if_equal"] < 0.2

    def test_the_curve_rises_falls_and_ends_at_zero(self):
        rows = rate_curve.curve(0.2)
        line = {row["rate_per_day"]: row["visits_per_day"] for row in rows[: len(rows) // 2]}
        best = max(line, key=line.get)
        assert 0.02 < best < 5.0
        assert all(visits == 0.0 for rate, visits in line.items() if rate > 5.0)
        assert min(visits for rate, visits in line.items() if rate < 4.9) > 0.0

    def test_pages_that_change_in_bursts_are_still_worth_a_visit_at_that_rate(self):
        rows = rate_curve.curve(0.2)
        bursts = [row for row in rows if row["changes"] == "in bursts"]
        assert bursts[-1]["visits_per_day"] > 0.5


class TestClasses:
    @pytest.mark.parametrize("mixed", [True, False])
    def test_each_prior_wins_where_its_rates_are_true(self, mixed):
        """Two sharp classes of pages, or rates of a Gamma distribution."""
        random = np.random.default_rng(3)
        end = 700 * DAY_S
        rates = random.gamma(0.5, 0.2, 400) / DAY_S
        if mixed:
            rates = np.where(random.random(400) < 0.5, 1.0, 1 / 100) / DAY_S
        times = {
            str(n): np.concatenate(
                [[0.0], np.sort(random.uniform(0, end, random.poisson(r * end)))]
            )
            for n, r in enumerate(rates.tolist())
        }
        rows = class_priors.compare(from_times(times), start=end / 2, end=end)
        score = {(row["prior"], row["after_days"]): row["log_score"] for row in rows}
        gains = [score["classes", d] - score["gamma", d] for d in (1.0, 10.0)]
        assert max(score.values()) < 0.0
        if mixed:
            assert min(gains) > 0.002
        else:
            assert max(gains) < 0.002
        assert score["gamma", 10.0] > score["default", 10.0]


@pytest.mark.parametrize("command", ["modes", "curve", "classes"])
def test_the_commands_write_their_rows(command, tmp_path):
    path = tmp_path / "rows.json"
    ran = CliRunner().invoke(app, [command, "--json", str(path)])
    assert ran.exit_code == 0, ran.output
    assert len(json.loads(path.read_text())["rows"]) >= 4
