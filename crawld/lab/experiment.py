"""Runs a table of simulations: every policy at every budget, optionally in parallel."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from crawld.core.units import DAY_S
from crawld.errors import OperatorError
from crawld.lab.contenders import NAMES, check_policy
from crawld.lab.hint_options import HintOptions
from crawld.lab.plugged import plugins_of
from crawld.lab.scenario import Scenario
from crawld.lab.simulate import Task, run

Row = dict[str, object]
Done = Callable[[Row], None]

REFERENCE_PAGES = 10_000
"""Number of pages for which slot intervals are given; slots scale with the actual number."""


@dataclass(frozen=True, slots=True)
class VisitBudget:
    """Visits per page and day; `fraction` if given as a share of an interval."""

    visits_per_page_day: float
    fraction: float | None = None


def budgets_of(
    budget: Sequence[float], interval_s: float | None, fractions: Sequence[float]
) -> list[VisitBudget]:
    """Return the budgets of a table.

    Args:
        budget: visits per page and day; or, if empty,
        interval_s: seconds between requests at full rate for 10,000 pages,
        fractions: shares of that rate.

    Raises:
        OperatorError: neither or both are given, or one is not positive.
    """
    if bool(budget) == (interval_s is not None):
        raise OperatorError(
            "give either --budget or --interval",
            hint="For example --budget 0.1,0.3, or --interval 15 --fractions 0.2,0.4.",
        )
    values = [*budget, *fractions] + ([interval_s] if interval_s is not None else [])
    if not all(0 < value < float("inf") for value in values):
        raise OperatorError("budgets, fractions and the interval must be positive numbers")
    if interval_s is None:
        return [VisitBudget(value) for value in budget]
    full = DAY_S / interval_s / REFERENCE_PAGES
    return [VisitBudget(full * fraction, fraction) for fraction in fractions]


def simulate_table(
    scenario: Scenario,
    policies: Sequence[str],
    budgets: Sequence[VisitBudget],
    *,
    hindsight: bool = False,
    hints: HintOptions | None = None,
    config: Path | None = None,
    jobs: int = 1,
    done: Done = lambda row: None,
) -> dict[str, object]:
    """Simulate every policy at every budget.

    Args:
        budgets: visits per page and day.
        hindsight: as in `simulate.Task`.
        hints: as in `simulate.Task`.
        config: as in `simulate.Task`.
        jobs: number of processes; the result does not depend on it.

    Returns:
        JSON types: `rows` in the order of policies and budgets, and the parameters of the run.

    Raises:
        OperatorError: a policy does not exist.
    """
    if not policies:
        raise OperatorError("no policy is named", hint="Policies: " + ", ".join(NAMES) + ".")
    for name in policies:
        check_policy(name, plugins_of(config).supplied.policies)
    tasks = [
        Task(name, budget.visits_per_page_day, budget.fraction, hindsight, hints, config)
        for name in policies
        for budget in budgets
    ]
    rows: list[Row] = [{} for _ in tasks]
    for index, row in _results(scenario, tasks, jobs):
        rows[index] = row
        done(row)
    return {
        "rows": rows,
        "pages": scenario.pages,
        "changes": scenario.changes,
        "from": scenario.start,
        "duration_s": scenario.duration_s,
        "seed": scenario.seed,
    }


def _results(scenario: Scenario, tasks: list[Task], jobs: int) -> Iterator[tuple[int, Row]]:
    if jobs <= 1 or len(tasks) == 1:
        for index, task in enumerate(tasks):
            yield index, run(scenario, task)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context) as pool:
        futures = {pool.submit(run, scenario, task): index for index, task in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result()
