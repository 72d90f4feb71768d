"""When the dust job examines an origin: by its growth, or when what it asked for was visited."""

import pytest
import trio

from crawld.core.dust.pace import ANSWERED_SHARE
from crawld.daemon.clock import Clock
from crawld.daemon.jobs.dust.plan import OriginPlan
from crawld.store.frontier.dust import DustOrigin

VISITS_PER_S = 1.0


def origin(visits):
    return DustOrigin(1, "http://a.test", 1, "a.test", 10_000, 10_000, (), 0, True, visits)


async def visits_until_examined(asked):
    """Return the visits between two examinations of a crawl that has made 2,000."""
    plan = OriginPlan(Clock())
    plan.examined(origin(2_000), asked)
    plan.end_run([origin(2_000)])
    await trio.sleep(300.0)
    visits = 2_000 + int(VISITS_PER_S * 300.0)
    plan.examined(origin(visits), asked)
    plan.end_run([origin(visits)])
    await trio.sleep(plan.every_s)
    assert plan.due([origin(visits)])
    return VISITS_PER_S * plan.every_s


async def test_a_tenth_more_visits_are_awaited_if_none_was_asked_for(autojump_clock):
    assert await visits_until_examined(0) == pytest.approx(230)


async def test_asked_visits_are_not_waited_for_longer_than_they_take(autojump_clock):
    """A trial takes many steps: each would wait until the host has grown by a tenth."""
    assert await visits_until_examined(100) == pytest.approx(100)


async def test_few_asked_visits_make_no_run_after_each(autojump_clock):
    assert await visits_until_examined(1) == pytest.approx(2_300 * ANSWERED_SHARE)
