"""A host with a page that may be visited is not left alone, if nothing else holds it back."""

from dataclasses import replace

import pytest
import trio

from crawld.universe.event_log import EventLog
from crawld.universe.findings import Findings
from crawld.universe.idle_audit import IDLE_S, IdleAudit
from crawld.universe.plan import (
    DiskFault,
    DiskPeriod,
    FaultKind,
    FaultPeriod,
    GroupPlan,
    NameEdition,
    RobotsEdition,
    UniversePlan,
)
from tests.universe.plans import plain_host

HOST = plain_host(5)


def replica():
    """Return a host with the same pages, at another address."""
    return replace(HOST, name="b.test", names=(NameEdition(0.0, "93.184.216.11"),))


REVISIT_S, DELAY_S = 600.0, 10.0


def violations(*, waits_s, since_s=0.0, host=HOST, hosts=(), is_whole=True, **more):
    """Return how many violations are found if a host waits after the visit of its only page."""
    more = {"min_revisit_s": REVISIT_S} | more
    plan = UniversePlan(1, 1.0, DELAY_S, (host, *hosts), (), **more)
    found = Findings(EventLog())
    audit = IdleAudit(plan, found)

    async def wait():
        for at_s in (5.0, 5.0 + waits_s):
            audit.asked("a.test", at_s, delay_s=DELAY_S, idle_since_s=since_s)
            audit.answered("a.test", "/", at_s, is_whole=is_whole)

    trio.run(wait)
    return len(found.violations)


LONG_S = REVISIT_S + IDLE_S + 1.0


def test_a_page_that_may_be_visited_again_is():
    assert violations(waits_s=LONG_S) == 1
    assert violations(waits_s=LONG_S - 2.0) == 0
    assert violations(waits_s=DELAY_S + IDLE_S + 1.0, min_revisit_s=0.0) == 1
    assert violations(waits_s=DELAY_S + IDLE_S - 1.0, min_revisit_s=0.0) == 0
    assert violations(waits_s=LONG_S, hosts=(replica(),)) == 1


def test_a_daemon_that_began_later_is_not_blamed():
    assert violations(waits_s=LONG_S, since_s=5.0 + REVISIT_S + 10.0) == 0


def test_what_shows_no_page_is_not_asked_for_again():
    assert violations(waits_s=LONG_S, is_whole=False) == 0


@pytest.mark.parametrize(
    "more",
    [
        {"host": replace(HOST, faults=(FaultPeriod(FaultKind.RESET, 0.0, 9.0, 1.0, 20),))},
        {"host": replace(HOST, robots=(RobotsEdition(0.0, "/wiki", None),))},
        {"hosts": (replace(HOST, name="b.test"),)},  # at the same address
        {"disk": (DiskPeriod(DiskFault.FULL, 0.0, 9.0),)},
        {"group": GroupPlan(("a.test",), None, 30.0)},
        {"quiet_minutes": (3, 9)},
        {"max_requests_per_s": 0.1},
        {"prune": True, "hosts": (replica(),)},
    ],
)
def test_a_host_that_something_may_hold_back_is_not_judged(more):
    assert violations(waits_s=LONG_S, **more) == 0


def test_a_life_that_ends_takes_pages_along():
    found = Findings(EventLog())
    audit = IdleAudit(UniversePlan(1, 1.0, DELAY_S, (HOST,), ()), found)
    audit.asked("a.test", 5.0, delay_s=DELAY_S, idle_since_s=0.0)
    audit.answered("a.test", "/", 5.0, is_whole=True)
    audit.forget()
    audit.asked("a.test", 50_000.0, delay_s=DELAY_S, idle_since_s=0.0)
    assert found.violations == []
