"""The allocation of the daemon's job, repeated over a simulated period."""

import numpy as np
import pytest

from crawld.core.change.model import PageModel
from crawld.core.revisit.host_allocation import EVERY_S, LEAST_SHARE
from crawld.core.revisit.policies_frequency import MergePolicy
from crawld.core.units import DAY_S
from crawld.lab.allocating import RepeatedAllocation
from crawld.lab.histories import from_times
from crawld.lab.scenario import scenario_of
from crawld.lab.simulate import Task, run

START = 1.2e9


def pages_with_bursts(pages=16, seed=2):
    """Return pages of one rate: half change in bursts and rest for days, half change steadily."""
    random, times = np.random.default_rng(seed), {}
    for page in range(pages):
        count = 6_000
        gaps = random.exponential(0.1 * DAY_S, count)
        if page % 2 == 0:
            gaps = random.exponential(600.0, count)
            long = random.random(count) < 0.05
            gaps[long] = random.exponential(2.0 * DAY_S, long.sum())
        at = np.cumsum(gaps)
        times[f"p{page}"] = at - at[-1] + START + 40 * DAY_S
    return scenario_of(from_times(times), start=START, duration_s=40 * DAY_S)


@pytest.mark.parametrize("policy", ["merge", "delayed"])
def test_learnt_models_buy_nearly_what_known_histograms_buy(policy):
    """By rates alone all pages are alike, and get the same visits."""
    case = pages_with_bursts()
    job, known, even = (
        run(case, Task(name, 0.2))["freshness"] for name in (policy, f"{policy}-past", "uniform")
    )
    assert known > even + 0.06
    assert job > even + 0.75 * (known - even)


class Frequencies(MergePolicy):
    """Remembers the pages of each call."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def set_frequencies(self, pages, frequency):
        self.calls.append(np.asarray(pages).tolist())
        super().set_frequencies(pages, frequency)


def models(count):
    random = np.random.default_rng(1)
    found = [PageModel() for _ in range(count)]
    for each in found:
        each.observe_changes((START - random.uniform(0, 300 * DAY_S, 40)).tolist(), START)
    return found


def test_few_visits_move_the_visited_pages_only_and_many_all():
    policy, known = Frequencies(), models(120)
    known += [PageModel()]  # never visited: it has no model yet
    policy.load(np.arange(121))
    job = RepeatedAllocation(policy, known, 600.0)
    job.run_until(START)
    job.run_until(START + EVERY_S)
    assert policy.calls == [list(range(120))]
    known[7].observe_changes([START + 50.0], START + 100.0)
    job.record_visit(7)
    job.run_until(START + EVERY_S + 1.0)  # too early
    job.run_until(START + 2 * EVERY_S)
    job.record_visit(8)
    job.run_until(START + 3 * EVERY_S)
    job.record_visit(9)
    job.run_until(START + 4 * EVERY_S)
    assert policy.calls[1:] == [[7], [7, 8], list(range(120))]
    least = LEAST_SHARE / (600.0 * 120)
    assert min(policy.frequency(page) for page in range(120)) >= least * (1 - 1e-6)
