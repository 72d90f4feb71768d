"""What `crawld lab` says on standard error."""

from crawld.cli.lab_output import period_text
from crawld.core.units import DAY_S
from crawld.lab.histories import from_times
from crawld.lab.scenario import scenario_of


def test_a_simulation_says_how_little_it_scores():
    times = {"often": [day * DAY_S for day in range(100)], "once": [3.0 * DAY_S]}
    text = period_text(scenario_of(from_times(times), duration_s=10.5 * DAY_S))
    assert text.startswith("scores 10 changes of 2 pages from 1970-03-30 12:00 to 1970-04-10")
    assert "90 changes before" in text
