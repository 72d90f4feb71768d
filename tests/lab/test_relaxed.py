"""The bounds without slots: they spend the visits, and no policy with slots is above them."""

from itertools import combinations

import numpy as np
import pytest

from crawld.core.units import DAY_S
from crawld.errors import OperatorError
from crawld.lab.hint_options import HintOptions
from crawld.lab.histories import from_times
from crawld.lab.relaxed import gaps_of, score_clairvoyant, score_relaxed
from crawld.lab.scenario import scenario_of
from crawld.lab.simulate import Task, run

START = 1.2e9


def bursty_pages(pages=25, seed=5):
    rng = np.random.default_rng(seed)
    times = {}
    for page in range(pages):
        quiet_s = np.exp(rng.uniform(np.log(0.5), np.log(20.0))) * DAY_S
        short = rng.random(900) < 0.6
        gaps = np.where(short, rng.exponential(900.0, 900), rng.exponential(quiet_s, 900))
        times[f"p{page}"] = START - 200 * DAY_S + np.cumsum(gaps)
    return scenario_of(from_times(times), start=START, duration_s=60 * DAY_S)


def test_policies_with_slots_are_below_the_bounds():
    case = bursty_pages()
    for budget in (0.1, 0.5):
        rows = {
            name: run(case, Task(name, budget, hints=HintOptions(60.0)))
            for name in ("greedy-ncis", "index", "relaxed", "clairvoyant")
        }
        fresh = {name: row["freshness"] for name, row in rows.items()}
        assert max(fresh["greedy-ncis"], fresh["index"]) < fresh["relaxed"] + 0.01
        assert fresh["relaxed"] < fresh["clairvoyant"]
        most = int(budget * case.pages * 60)
        assert 0.95 * most < rows["relaxed"]["visits"] <= most
        assert rows["clairvoyant"]["visits"] == most


def test_the_clairvoyant_bound_is_the_best_choice_of_gaps():
    rng = np.random.default_rng(2)
    times = {f"p{page}": START + np.sort(rng.uniform(-500.0, 1000.0, 5)) for page in range(2)}
    case = scenario_of(from_times(times), start=START, duration_s=1000.0)
    gaps = gaps_of(case, 10.0)
    left = np.maximum(gaps.ends_at - gaps.told_at, 0.0)
    best = max(sum(left[list(chosen)]) for chosen in combinations(range(len(left)), 3))
    score = score_clairvoyant(case, lag_s=10.0, visits=3)
    assert score.freshness == pytest.approx(best / (1000.0 * 2))


def test_a_relaxed_visit_waits_until_the_hazard_has_fallen_to_the_price():
    case = bursty_pages()
    model = case.past_site().hawkes
    few, many = (score_relaxed(case, model, lag_s=60.0, visits=n) for n in (300, 3_000))
    assert few.visits <= 300 < many.visits <= 3_000
    assert few.useful == few.visits
    assert few.freshness < many.freshness


@pytest.mark.parametrize("hints", [None, HintOptions(60.0, miss=0.1), HintOptions(60.0, false=0.1)])
def test_a_bound_needs_hints_of_every_change(hints):
    with pytest.raises(OperatorError, match="bound for hints"):
        run(bursty_pages(3), Task("relaxed", 0.5, hints=hints))
