"""The audit holds the stated freshness of sites against the true one."""

from dataclasses import replace

import pytest

from crawld.daemon.jobs import present_freshness
from crawld.simweb.site import ValidatorBehavior
from crawld.universe.event_log import EventLog
from crawld.universe.findings import Findings
from crawld.universe.freshness_audit import LEAST_CLAIMS, FreshnessAudit
from crawld.universe.plan import (
    START_AT,
    ClockStep,
    FaultKind,
    FaultPeriod,
    UniversePlan,
)
from crawld.universe.run_universe import run_universe
from tests.universe.plans import plain_host

HOST = plain_host(12, change_seed=3, changes_per_day=20.0)


class Truth:
    """A host whose page n changes every n hours."""

    plan = HOST

    def page_at(self, path):
        return int(path.removeprefix("/"))

    def revision(self, page, at_s):
        return int(at_s // (3_600.0 * page))


def audit(host=HOST, **more):
    plan = UniversePlan(1, 1.0, 10.0, (host,), (), **more)
    return FreshnessAudit(plan, Findings(EventLog()), {"a.test": Truth()})


@pytest.mark.parametrize(
    ("low", "high", "covered"), [(0.5, 0.5, 1), (0.0, 0.49, 0), (0.51, 1.0, 0)]
)
def test_the_truth_is_the_share_of_copies_without_a_later_change(low, high, covered):
    case = audit()
    case.served("a.test", 1, 0, 1.0)
    case.served("a.test", 3, 0, 2.0)
    case.told("a.test", START_AT + 4_000.0, low, high, 2)
    assert (case.claims, case.covered) == (1, covered)
    assert case.as_json()["mean_width"] == pytest.approx(high - low)


def test_an_answer_that_was_set_aside_is_no_copy():
    case = audit()
    case.served("a.test", 1, 0, 1.0)
    case.served("a.test", 1, 1, 3_700.0)
    case.set_aside("a.test", "/1")
    case.told("a.test", START_AT + 4_000.0, 0.0, 0.1, 2)  # the copy is that before
    case.set_aside("a.test", "/1")
    case.told("a.test", START_AT + 5_000.0, 0.0, 0.1, 2)  # there is none
    assert (case.claims, case.covered) == (1, 1)


def test_a_statement_is_judged_once_by_the_copies_of_its_time():
    case = audit()
    case.served("a.test", 1, 0, 1.0)
    case.served("a.test", 1, 1, 4_500.0)
    case.served("a.test", 3, 0, 4_600.0)
    for _ in range(2):
        case.told("a.test", START_AT + 4_000.0, 0.0, 0.1, 2)
    assert (case.claims, case.covered) == (1, 1)
    case.told("a.test", START_AT + 5_000.0, 1.0, 1.0, 2)
    assert (case.claims, case.covered) == (2, 2)


@pytest.mark.parametrize(
    "host",
    [
        replace(HOST, noise=True),
        replace(HOST, etag=ValidatorBehavior.ABSENT, last_modified=ValidatorBehavior.FROZEN),
        replace(HOST, faults=(FaultPeriod(FaultKind.JUNK, 0.0, 1.0, 1.0, 20),)),
    ],
)
def test_nothing_is_held_against_a_daemon_that_is_deceived(host):
    case = audit(host)
    case.served("a.test", 1, 0, 1.0)
    case.told("a.test", START_AT + 4_000.0, 1.0, 1.0, 2)
    assert case.claims == 0


def test_copies_at_rest_are_not_among_those_that_are_counted():
    """A page of a replica that rests is shown by the copy of its twin."""
    copy = replace(HOST, name="b.test")
    plan = UniversePlan(1, 1.0, 10.0, (HOST, copy), ())
    case = FreshnessAudit(plan, Findings(EventLog()), {"a.test": Truth(), "b.test": Truth()})
    for host in ("a.test", "b.test"):
        case.served(host, 1, 0, 1.0)
        case.served(host, 3, 0, 2.0)
        case.told(host, START_AT + 4_000.0, 1.0, 1.0, 1)
    assert case.claims == 0
    case.told("b.test", START_AT + 4_001.0, 0.5, 0.5, 2)
    assert (case.claims, case.covered) == (1, 1)


def test_times_of_a_clock_that_jumps_have_no_meaning():
    case = audit(steps=(ClockStep(5.0, 2.0),))
    case.served("a.test", 1, 0, 1.0)
    case.told("a.test", START_AT + 4_000.0, 1.0, 1.0, 2)
    assert case.claims == 0


def mirrored(tmp_path):
    plan = UniversePlan(1, 0.25, 60.0, (HOST,), (), min_revisit_s=0.0)
    return run_universe(plan, tmp_path).auditor


def test_what_the_daemon_states_of_a_steady_site_is_judged(tmp_path):
    auditor = mirrored(tmp_path)
    assert auditor.found.violations == []
    assert auditor.freshness.claims >= LEAST_CLAIMS
    assert auditor.freshness.covered >= 0.85 * auditor.freshness.claims


def test_finds_intervals_that_miss_the_truth(tmp_path, monkeypatch):
    right = present_freshness.estimate_freshness

    def wrong(site):
        found = right(site)
        return found and replace(found, low=found.low / 2.0, high=found.low / 2.0)

    monkeypatch.setattr(present_freshness, "estimate_freshness", wrong)
    assert {each.invariant for each in mirrored(tmp_path).found.violations} == {
        "freshness_interval"
    }
