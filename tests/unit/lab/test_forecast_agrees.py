"""The forecast agrees with the simulation of the index policy on recorded histories.

Tolerance: .03 of freshness without hints, .05 with them. The forecast knows the whole period and
has no start; the policy starts with stale copies and learns as it goes, so that it is mostly below.
"""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from crawld.core.revisit.forecast import HintQuality, survival_curves
from crawld.lab.hint_options import HintOptions
from crawld.lab.histories import read_histories
from crawld.lab.scenario import scenario_of
from crawld.lab.simulate import Task, run

HISTORIES = Path(__file__).parents[2] / "data" / "histories" / "wikipedia_extract.csv.gz"
BUDGETS = (0.1, 0.3)


@pytest.fixture(scope="module")
def year():
    start = datetime(2007, 1, 1, tzinfo=UTC).timestamp()
    return scenario_of(read_histories(HISTORIES), start=start, min_changes=10)


@pytest.fixture(scope="module")
def pages(year):
    gaps = []
    for page in range(year.pages):
        instants = year.histories.page(page)
        inside = instants[(instants > year.born_at[page]) & (instants < year.end)]
        gaps.append(np.diff(inside, prepend=year.born_at[page], append=year.end))
    return survival_curves(gaps, np.ones(year.pages))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(
    ("options", "quality", "tolerance"),
    [
        (None, None, 0.03),
        ("lag=60", HintQuality(60.0), 0.05),
        ("lag=60,miss=0.2", HintQuality(60.0, 0.2), 0.05),
    ],
)
def test_forecast_and_simulation_agree(year, pages, budget, options, quality, tolerance):
    task = Task("index", budget, hints=None if options is None else HintOptions.parse(options))
    simulated = run(year, task)["freshness"]
    expected = pages.forecast(budget * year.pages / 86_400.0, quality).freshness
    assert expected == pytest.approx(simulated, abs=tolerance)
