"""After an outage of its server, a mirror is soon as busy as before."""

from itertools import pairwise

import pytest

from crawld.core.politeness import MAX_BACKOFF_DELAY_S
from crawld.core.revisit.polling import plan_polls
from crawld.core.units import DAY_S
from crawld.daemon.hints import budget
from crawld.universe.plan import (
    ClockStep,
    EndKind,
    FaultKind,
    FaultPeriod,
    LifeEnd,
    UniversePlan,
)
from crawld.universe.run_universe import run_universe
from tests.universe.plans import plain_host

HOUR_S = 3_600.0
ENDS_S = 2.5 * HOUR_S
RECOVERY_S = 600.0
"""Longest pause after the first answer: half of the doublings of an hour's delay."""


def answers(events):
    """Return the times of the answers in an event log."""
    return [float(line.split()[0]) for line in events.splitlines() if " answer " in line]


@pytest.mark.parametrize("limit", [{}, {"max_requests_per_s": 0.01}])
def test_a_clock_that_is_set_back_before_a_kill_keeps_nothing_closed_for_longer(tmp_path, limit):
    busy = FaultPeriod(FaultKind.BUSY, 1_700.0, 1_850.0, 1.0, 900)
    host = plain_host(5, changes_per_day=20.0, faults=(busy,))
    step, kill = ClockStep(1_900.0, -DAY_S), LifeEnd(EndKind.KILL, 2_000.0, 1.0)
    plan = UniversePlan(
        1, 1.0 / 24, 60.0, (host,), (kill,), steps=(step,), min_revisit_s=0.0, **limit
    )
    path = tmp_path / "events.txt"
    with path.open("w") as events:
        result = run_universe(plan, tmp_path, event_file=events)
    assert result.auditor.found.violations == []
    at_s = answers(path.read_text())
    closed_s = min(each for each in at_s if each > busy.from_s)
    assert closed_s < busy.until_s
    after_s = [each for each in at_s if each > closed_s]
    assert closed_s + 900.0 <= after_s[0] <= closed_s + 900.0 + RECOVERY_S


def test_a_page_whose_redirects_go_in_a_circle_is_tried_again_in_an_hour(tmp_path):
    loop = FaultPeriod(FaultKind.LOOP, 1_500.0, 1_500.0 + 2 * HOUR_S, 1.0, 0)
    host = plain_host(1, changes_per_day=20.0, faults=(loop,))
    plan = UniversePlan(1, 0.3, 60.0, (host,), (), min_revisit_s=600.0)
    path = tmp_path / "events.txt"
    with path.open("w") as events:
        result = run_universe(plan, tmp_path, event_file=events)
    assert result.auditor.found.violations == []
    lines = [line.split() for line in path.read_text().splitlines() if " answer a.test / " in line]
    looped = [float(words[0]) for words in lines if words[-1] == "301"]
    # No audit comes between the first two.
    assert looped[1] - looped[0] == pytest.approx(HOUR_S, abs=10.0)
    after = [float(words[0]) for words in lines if float(words[0]) > loop.until_s]
    assert after[0] < looped[-1] + 3 * HOUR_S


@pytest.mark.parametrize(("source", "seed"), [("wiki", 1), ("wiki", 3), ("sitemap", 1)])
def test_a_host_whose_connections_were_refused_for_hours(tmp_path, source, seed):
    refused = FaultPeriod(FaultKind.REFUSED, 0.2 * HOUR_S, ENDS_S, 1.0, 0)
    host = plain_host(60, changes_per_day=20.0, faults=(refused,), **{source: True})
    plan = UniversePlan(seed, 4.5 / 24, 60.0, (host,), ())
    path = tmp_path / "events.txt"
    with path.open("w") as events:
        result = run_universe(plan, tmp_path, event_file=events)
    assert result.auditor.found.violations == []
    after_s = [each for each in answers(path.read_text()) if each > ENDS_S]
    assert after_s[0] <= ENDS_S + MAX_BACKOFF_DELAY_S + 60.0
    assert max(b - a for a, b in pairwise(after_s)) <= RECOVERY_S
    busy_s = [each for each in after_s if each > after_s[0] + RECOVERY_S]
    assert len(busy_s) >= (plan.duration_s - busy_s[0]) / 60.0 - 5


def is_probe(line):
    return (
        " request " in line and "titles=" in line and "curtimestamp" in line and "list=" not in line
    )


def test_a_wiki_that_forgot_its_changes_during_an_outage_is_probed(tmp_path):
    refused = FaultPeriod(FaultKind.REFUSED, 1.0 * HOUR_S, ENDS_S, 1.0, 0)
    wiki = {"wiki": True, "keeps_changes_s": 600.0}
    host = plain_host(40, changes_per_day=10.0, change_seed=4, faults=(refused,), **wiki)
    plan = UniversePlan(1, 5.0 / 24, 60.0, (host,), ())
    path = tmp_path / "events.txt"
    with path.open("w") as events:
        result = run_universe(plan, tmp_path, event_file=events)
    assert result.auditor.found.violations == []
    lines = path.read_text().splitlines()
    found_at = next(float(line.split()[0]) for line in lines if "wiki_changes_gap" in line)
    probed_s = [float(line.split()[0]) for line in lines if is_probe(line)]
    assert any(found_at < each < found_at + 1_800.0 for each in probed_s)


def test_how_often_to_poll_is_not_planned_anew_by_a_back_off(tmp_path, monkeypatch):
    plans = []

    def counted(*args, **more):
        plans.append(args)
        return plan_polls(*args, **more)

    monkeypatch.setattr(budget, "plan_polls", counted)
    limited = FaultPeriod(FaultKind.TOO_MANY, 0.0, 6.0 * HOUR_S, 0.3, 0)
    host = plain_host(30, changes_per_day=5.0, faults=(limited,), wiki=True)
    run_universe(UniversePlan(1, 4.0 / 24, 30.0, (host,), ()), tmp_path)
    # One, then one whenever the sample of pages has grown or an estimate is old.
    assert 0 < len(plans) < 20
