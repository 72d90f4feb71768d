"""The audit finds a change of a wiki's outage that its mirror does not show in time."""

from dataclasses import replace

import pytest
import trio

from crawld.universe.draw import CAMPAIGN_DAYS, campaign_days, draw_plan
from crawld.universe.event_log import EventLog
from crawld.universe.findings import Findings
from crawld.universe.freshness_audit import FreshnessAudit
from crawld.universe.lone_plans import REPLICA, SITE, WIKI, lone_kind
from crawld.universe.plan import (
    ClockStep,
    DiskFault,
    DiskPeriod,
    EndKind,
    FaultKind,
    FaultPeriod,
    LifeEnd,
    UniversePlan,
)
from crawld.universe.wiki_audit import SETTLE_S, check_wikis
from tests.universe.plans import plain_host

BEGAN_S, ENDED_S = 10_000.0, 12_000.0
OUTAGE = FaultPeriod(FaultKind.REFUSED, BEGAN_S, ENDED_S, 1.0, 0)
HOST = plain_host(9, wiki=True, keeps_changes_s=500.0, faults=(OUTAGE,))
PLAN = UniversePlan(1, 1.0, 60.0, (HOST,), ())
SHOWN_S = ENDED_S + (ENDED_S - BEGAN_S) + SETTLE_S + 2 * 60.0
"""Of one changed page."""


class Truth:
    """A wiki whose pages 0 and 5 change once during the outage."""

    plan = HOST

    def revision(self, page, at_s):
        return int(page in (0, 5) and at_s >= BEGAN_S + 100.0)


def found(copies, plan=PLAN):
    findings, truths = Findings(EventLog()), {"a.test": Truth()}
    freshness = FreshnessAudit(plan, findings, truths)
    for page, served in copies.items():
        for at_s, revision in served:
            freshness.served("a.test", page, revision, at_s)

    async def check():
        check_wikis(plan, findings, truths, freshness.held_at, 86_400.0)

    trio.run(check)
    return [each.invariant for each in findings.violations]


@pytest.mark.parametrize(
    ("served", "invariants"),
    [
        ([(500.0, 0), (SHOWN_S - 1.0, 1)], []),
        ([(500.0, 0), (SHOWN_S + 1.0, 1)], ["change_unseen"]),
        ([(500.0, 0)], ["change_unseen"]),
        ([(SHOWN_S + 1.0, 1)], []),  # there was no copy yet
    ],
)
def test_a_changed_page_is_to_be_fetched_in_time(served, invariants):
    assert found({3: [(600.0, 0)], 5: served}) == invariants


def test_the_home_page_has_no_title():
    assert found({0: [(500.0, 0)]}) == []


@pytest.mark.parametrize(
    "excuse",
    [
        {"ends": (LifeEnd(EndKind.KILL, 20_000.0, 1.0),)},
        {"disk": (DiskPeriod(DiskFault.FULL, 100.0, 200.0),)},
        {"steps": (ClockStep(100.0, 2.0),)},
        {"hosts": (HOST, replace(HOST, name="b.test"))},
    ],
)
def test_what_else_keeps_the_daemon_from_its_work_is_an_excuse(excuse):
    assert found({5: [(500.0, 0)]}, replace(PLAN, **excuse)) == []


def test_a_twentieth_of_the_seeds_has_such_a_wiki():
    alone = [seed for seed in range(1, 1_001) if lone_kind(seed) is WIKI]
    assert 30 <= len(alone) <= 70
    lasts = {campaign_days(seed) for seed in range(1, 1_001)}
    assert lasts == {*CAMPAIGN_DAYS, WIKI.days, REPLICA.days, SITE.days}
    for seed in alone[:5]:
        plan = draw_plan(seed, campaign_days(seed))
        (host,) = plan.hosts
        assert host.keeps_changes_s is not None
        assert host.faults[-1].until_s < plan.duration_s * 0.7
        assert len(draw_plan(seed, 0.02).hosts) >= 1
