"""Simulates policies on recorded histories, slot by slot, with the daemon's own policy objects.

A run gives a policy the pages and, if the policy uses it, the past. At each slot it gets a page
from the policy, passes only the result of the visit to the policy, and updates freshness and age.
There is one host with equally spaced slots, one visit per slot. A policy must never see a change
before a visit or a hint reports it, unless the run is marked as hindsight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crawld.core.revisit.policies import Policy, VisitObservation
from crawld.core.units import DAY_S
from crawld.errors import OperatorError
from crawld.lab.contenders import BOUNDS, HINDSIGHT, Contender, make_contender
from crawld.lab.copies import Copies, Score
from crawld.lab.hint_options import HintOptions
from crawld.lab.hints import HintFeed
from crawld.lab.plugged import plugins_of, refuse_failed
from crawld.lab.relaxed import score_clairvoyant, score_relaxed
from crawld.lab.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Task:
    """One cell of a table.

    Attributes:
        visits_per_page_day: budget.
        fraction: of the full rate, if the budget was given so.
        hindsight: give the policy the rates and histograms of the period itself.
        hints: properties of the hints; None: no hints.
        config: a config whose plug-ins supply policies; None: none do.
    """

    policy: str
    visits_per_page_day: float
    fraction: float | None = None
    hindsight: bool = False
    hints: HintOptions | None = None
    config: Path | None = None


def run(scenario: Scenario, task: Task) -> dict[str, object]:
    """Simulate one cell; return its row: policy, budget, freshness, age, visits."""
    slot_s = DAY_S / (task.visits_per_page_day * scenario.pages)
    score = _score(scenario, task, slot_s)
    refuse_failed(plugins_of(task.config))
    return {
        "policy": task.policy,
        "visits_per_page_day": task.visits_per_page_day,
        "fraction": task.fraction,
        "freshness": score.freshness,
        "age_s": score.age_s,
        "visits": score.visits,
        "useful_visits": score.useful,
        "hindsight": task.hindsight or task.policy in HINDSIGHT,
        "hints": None if task.hints is None else str(task.hints),
    }


def _score(scenario: Scenario, task: Task, slot_s: float) -> Score:
    if task.policy in BOUNDS:
        return _bound(scenario, task, slot_s)
    entrant = make_contender(
        *(task.policy, scenario),
        slot_s=slot_s,
        hindsight=task.hindsight,
        hints=task.hints,
        added=plugins_of(task.config).supplied.policies,
    )
    if entrant.policy is None:
        return _at_ideal_times(scenario, entrant)
    return _slot_by_slot(scenario, task, entrant, slot_s)


def _bound(scenario: Scenario, task: Task, slot_s: float) -> Score:
    """Score a bound without slots.

    Raises:
        OperatorError: the hints of the run do not report every change, and nothing else.
    """
    hints = task.hints
    if hints is None or hints.miss or hints.false or hints.poll_s:
        raise OperatorError(
            f"{task.policy} is a bound for hints of all changes, pushed",
            hint="Give --hints lag=60, without other parts.",
        )
    visits = int(scenario.duration_s / slot_s)
    if task.policy == "clairvoyant":
        return score_clairvoyant(scenario, lag_s=hints.lag_s, visits=visits)
    model = scenario.past_site().hawkes
    return score_relaxed(scenario, model, lag_s=hints.lag_s, visits=visits)


def _slot_by_slot(scenario: Scenario, task: Task, entrant: Contender, slot_s: float) -> Score:
    policy = entrant.policy
    assert policy is not None
    copies = Copies(scenario)
    births = _Births(scenario, policy)
    feed = None if task.hints is None else HintFeed(scenario, task.hints)
    for slot in range(int(scenario.duration_s / slot_s)):
        at = scenario.start + slot * slot_s
        births.add_until(at)
        if feed is not None:
            feed.deliver(policy, at)
            if feed.takes_slot(slot):
                continue
        _run_jobs(entrant, at)
        page = policy.select(at)
        if page is None:
            continue
        found = copies.visit(page, at)
        model = None if entrant.models is None else entrant.models[page]
        if model is not None:
            if feed is not None:
                feed.record_visit(policy, page, found, at)
            model.observe_changes(found, at)
        policy.record_visit(page, at, VisitObservation(bool(found), tuple(found), model))
        if entrant.allocation is not None:
            entrant.allocation.record_visit(page)
        if entrant.fit is not None:
            entrant.fit.record_visit(page, found)
    return copies.score()


def _run_jobs(entrant: Contender, at: float) -> None:
    for job in (entrant.allocation, entrant.fit):
        if job is not None:
            job.run_until(at)


class _Births:
    """Adds pages created inside the period at their creation time."""

    def __init__(self, scenario: Scenario, policy: Policy) -> None:
        born = scenario.born_at
        late = np.flatnonzero(born > scenario.start)
        order = late[np.argsort(born[late], kind="stable")]
        self._pages: list[int] = order.tolist()
        self._born: list[float] = [*born[order].tolist(), math.inf]
        self._policy = policy
        self._next = 0

    def add_until(self, at: float) -> None:
        while self._born[self._next] <= at:
            self._policy.add(self._pages[self._next], None)
            self._next += 1


def _at_ideal_times(scenario: Scenario, entrant: Contender) -> Score:
    """Score visits at the ideal times themselves: an impolite reference."""
    copies = Copies(scenario)
    for page, (frequency, phase) in enumerate(
        zip(entrant.frequency.tolist(), entrant.phases.tolist(), strict=True)
    ):
        if frequency <= 0:
            continue
        born = float(scenario.born_at[page])
        first = math.ceil((born - scenario.start) * frequency - phase)
        count = math.floor(scenario.duration_s * frequency - phase) + 1
        for k in range(max(first, 0), count):
            copies.visit(page, scenario.start + (k + phase) / frequency)
    return copies.score()
