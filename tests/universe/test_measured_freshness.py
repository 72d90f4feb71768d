"""The freshness that random visits measured is held against the true one."""

from dataclasses import replace

import pytest

from crawld.core.audit import AuditResult
from crawld.core.units import DAY_S
from crawld.daemon.jobs import audit
from crawld.universe.draw import campaign_days, draw_plan
from crawld.universe.event_log import EventLog
from crawld.universe.findings import Findings
from crawld.universe.lone_plans import SITE, lone_kind
from crawld.universe.measured_freshness import MOST_PAGES, MeasuredFreshness
from crawld.universe.plan import ClockStep, ControlRequest, FaultKind, FaultPeriod, UniversePlan
from crawld.universe.run_universe import run_universe
from tests.universe.plans import plain_host

HOST = plain_host(12, change_seed=3, changes_per_day=20.0)
HOUR_S = 3_600.0


class Truth:
    """A host whose page n changes every n hours."""

    plan = HOST

    def revision(self, page, at_s):
        return int(at_s // (HOUR_S * page))

    def changed_after(self, page, at_s):
        return (self.revision(page, at_s) + 1) * HOUR_S * page


def make_case(*hosts, delay_s=10.0, **more):
    plan = UniversePlan(1, 1.0, delay_s, hosts or (HOST,), (), **more)
    truths = {host.name: Truth() for host in plan.hosts}
    return MeasuredFreshness(plan, Findings(EventLog()), truths)


def judge(case, at_s, fresh, stale, unknown=0):
    """End the life with these audits in the file; return the intervals, and those that hit."""
    case.life_ended(at_s)
    case._audits = {"a.test": AuditResult(fresh, stale, unknown)}
    case.check(at_s)
    return case.claims, case.covered


def test_the_truth_is_the_mean_share_of_fresh_copies():
    case = make_case()
    case.life_began(0.0)
    case.served("a.test", 1, 0, 0.0)
    case.served("a.test", 1, 2, 2 * HOUR_S)  # fresh for one of two hours
    case.served("a.test", 4, 0, 2 * HOUR_S)  # then both for an hour, one for another
    assert judge(case, 4 * HOUR_S, 625, 375) == (1, 1)
    assert case._copies["a.test"].share_s / case._copies["a.test"].time_s == 0.625


@pytest.mark.parametrize(
    ("fresh", "stale", "hits", "broken"),
    [(625, 375, 1, 0), (660, 340, 0, 0), (720, 280, 0, 1), (530, 470, 0, 1)],
)
async def test_an_interval_may_miss_but_not_by_far(fresh, stale, hits, broken):
    case = make_case()
    case.life_began(0.0)
    case.served("a.test", 8, 0, 0.0)
    assert judge(case, 8 * HOUR_S / 0.625, fresh, stale) == (1, hits)
    assert len(case._found.violations) == broken


def test_time_without_a_daemon_is_not_counted():
    case = make_case()
    case.life_began(0.0)
    case.served("a.test", 8, 0, 0.0)
    case.life_ended(4 * HOUR_S)
    case.life_began(20 * HOUR_S)
    assert judge(case, 24 * HOUR_S, 500, 500) == (1, 1)


def test_few_audits_and_failed_ones_prove_nothing():
    for counts in ((19, 0), (500, 500, 1)):
        case = make_case()
        case.life_began(0.0)
        case.served("a.test", 1, 0, 0.0)
        assert judge(case, DAY_S, *counts) == (0, 0)


@pytest.mark.parametrize(
    "case",
    [
        lambda: make_case(replace(HOST, faults=(FaultPeriod(FaultKind.STALL, 0.0, 1.0, 1.0, 20),))),
        lambda: make_case(replace(HOST, changes_per_day=100.0)),
        lambda: make_case(HOST, replace(HOST, name="b.test")),
        lambda: make_case(steps=(ClockStep(5.0, 2.0),)),
        lambda: make_case(requests=(ControlRequest(5.0, "POST", "/pause"),)),
        lambda: make_case(quiet_minutes=(60, 120)),
    ],
)
def test_hosts_whose_audits_see_something_else_are_not_judged(case):
    case = case()
    case.life_began(0.0)
    case.served("a.test", 1, 0, 0.0)
    assert judge(case, DAY_S, 500, 500) == (0, 0)


def test_a_host_of_many_pages_is_not_counted():
    case = make_case()
    case.life_began(0.0)
    for page in range(1, MOST_PAGES + 2):
        case.served("a.test", page, 0, 0.0)
    case.served("a.test", 1, 0, 1.0)
    assert judge(case, DAY_S, 500, 500) == (0, 0)


def measured(folder):
    folder.mkdir()
    # Each copy is stale for about half of the six hours between two visits.
    host = plain_host(30, change_seed=4, changes_per_day=20.0)
    plan = UniversePlan(1, 0.5, 20.0, (host,), (), min_revisit_s=6 * HOUR_S)
    return run_universe(plan, folder).auditor


def test_audits_that_count_every_copy_as_fresh_are_found(tmp_path, monkeypatch):
    right = measured(tmp_path / "right")
    assert right.found.violations == []
    assert (right.measured.claims, right.measured.covered) == (1, 1)
    outcomes = audit._FRESH_OUTCOMES | audit._STALE_OUTCOMES
    monkeypatch.setattr(audit, "_FRESH_OUTCOMES", outcomes)
    wrong = measured(tmp_path / "wrong")
    assert {each.invariant for each in wrong.found.violations} == {"measured_freshness"}


def test_some_seeds_have_a_site_alone_whose_freshness_is_measured():
    alone = [seed for seed in range(1, 301) if lone_kind(seed) is SITE]
    assert 4 <= len(alone) <= 24
    plans = [draw_plan(seed, campaign_days(seed)) for seed in alone]
    judged = [plan for plan in plans if MeasuredFreshness(plan, Findings(EventLog()), {})._copies]
    assert len(judged) > len(plans) / 2
    assert draw_plan(alone[0], 0.1).days == 0.1
