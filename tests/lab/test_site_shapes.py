"""Shapes of sites: their histories, and where INDEX stands on them."""

import numpy as np
import pytest
from typer.testing import CliRunner

from crawld.cli.lab import app
from crawld.core.units import DAY_S
from crawld.lab.simulate import Task, run
from crawld.lab.site_shapes import END, SHAPES, START, compare, site


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_draws_ordered_changes_and_the_same_for_the_same_seed(name):
    scenario, again = (site(name, pages=40, seed=3) for _ in range(2))
    assert scenario.pages == 40
    times = scenario.histories.changed_at
    assert np.array_equal(times, again.histories.changed_at)
    assert times.max() < END
    assert all(np.all(np.diff(own) > 0) for own in scenario.histories.page_times)
    assert scenario.changes > 0


def test_periodic_pages_keep_their_period():
    scenario = site("periodic", pages=30, seed=1)
    for own in scenario.histories.page_times:
        gaps = np.diff(own)
        assert gaps.max() <= 1.06 / 0.94 * gaps.min()


def test_young_pages_change_most_in_their_first_days():
    scenario = site("young-pages", pages=60, seed=1)
    ages = np.concatenate([own[1:] - own[0] for own in scenario.histories.page_times])
    assert np.mean(ages < 30 * DAY_S) > 0.6
    assert np.sum(scenario.histories.born_at() > START) > 8


@pytest.mark.parametrize("name", ["periodic", "calendar", "clockwork-and-bursts"])
def test_index_is_not_below_the_others_where_changes_follow_a_timetable(name):
    cells = list(compare([name], pages=60, seeds=[1, 2]))
    assert min(cell.margin for cell in cells) > 0.02
    assert [cell.seed for cell in cells] == [1, 1, 2, 2]


def test_a_page_that_falls_silent_does_not_mislead_index_on_all_others():
    """Two lively pages that fell silent made INDEX visit each page that was quiet for long."""
    cell = next(iter(compare(["changing-pace"], pages=250, seeds=[2])))
    assert cell.margin > -0.003


def test_another_order_has_the_same_pages_at_other_numbers():
    one, other = (site("young-news", pages=30, seed=3, order=order) for order in (0, 1))
    assert np.array_equal(np.sort(one.histories.changed_at), np.sort(other.histories.changed_at))
    assert not np.array_equal(one.histories.counts, other.histories.counts)


def test_a_margin_is_of_means_over_orders():
    two = next(iter(compare(["poisson"], pages=40, seeds=[3], orders=2)))
    case = [site("poisson", pages=40, seed=3, order=order) for order in (0, 1)]
    uniform = [run(each, Task("uniform", two.visits_per_page_day))["freshness"] for each in case]
    assert uniform[0] != uniform[1]
    assert two.freshness["uniform"] == pytest.approx(np.mean(uniform))


def test_the_command_shows_the_margin(tmp_path):
    written = tmp_path / "shapes.json"
    asked = [
        "shapes",
        "--shape",
        "redesigns",
        "--pages",
        "20",
        "--seed",
        "2",
        "--json",
        str(written),
    ]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0
    assert "margin" in result.output
    assert written.read_text().count("redesigns") == 2


def test_an_unknown_shape_is_refused_with_the_known_ones():
    result = CliRunner().invoke(app, ["shapes", "--shape", "spiral"])
    assert result.exit_code == 2
    assert "periodic" in result.output + result.stderr
