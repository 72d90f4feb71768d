"""What the auditor holds against a daemon, and what a kill excuses."""

import pytest
from trio.testing import MockClock

from crawld.simweb.message import SimRequest
from crawld.universe.auditor import LOST_S, ROBOTS_LIFE_S, Auditor
from crawld.universe.event_log import EventLog
from crawld.universe.plan import HostPlan, RobotsEdition

OPEN = RobotsEdition(0.0, "", None)
SLOW = RobotsEdition(0.0, "/b", 30.0)
A, B = (HostPlan(name, "192.0.2.9", 9, 1, (OPEN,), ()) for name in ("a.test", "b.test"))
START_AT = 1_000_000.0


class Case:
    """An auditor of a daemon whose host delay is 10 s and address delay 1 s."""

    def __init__(self):
        self.auditor = Auditor(10.0, 1.0, START_AT, EventLog())

    def ask(self, at_s, target="/a", host=A, status=200, robots=OPEN, retry_after_s=None):
        request = SimRequest("GET", target, {}, host.name, "", START_AT + at_s, 0)
        self.auditor.request_arrived(host, request)
        if status:
            self.auditor.answer_sent(host, request, status, robots, retry_after_s)

    def broken(self):
        return [violation.invariant for violation in self.auditor.violations]


@pytest.fixture
def mock_clock():
    return MockClock()


@pytest.fixture
async def case(mock_clock):
    """A case whose host has answered an open robots.txt at 0 s."""
    made = Case()
    made.ask(0.0, "/robots.txt")
    return made


async def test_a_request_at_the_delay_is_in_time(case):
    case.ask(10.0)
    assert case.broken() == []
    case.ask(19.9)
    assert case.broken() == ["host_delay"]


async def test_hosts_of_one_address_share_its_delay(case):
    case.ask(0.9, "/robots.txt", B)
    assert case.broken() == ["address_delay"]
    case.ask(1.9, "/robots.txt", HostPlan("c.test", "192.0.2.9", 9, 1, (OPEN,), ()))
    assert case.broken() == ["address_delay"]


async def test_rules_are_those_that_were_answered(case):
    case.ask(10.0, "/b")
    case.ask(20.0, "/robots.txt", status=503, robots=SLOW)
    case.ask(30.0, "/b")
    case.ask(40.0, "/robots.txt", robots=SLOW)
    assert case.broken() == []
    case.ask(69.0, "/a")
    assert case.broken() == ["host_delay"]
    case.ask(99.0, "/b")
    assert case.broken() == ["host_delay", "robots_forbids"]


async def test_pages_need_a_robots_txt_of_the_last_day(case):
    case.ask(100.0, "/robots.txt", B, status=0)
    case.ask(110.0, "/a", B)
    assert case.broken() == ["robots_unknown"]
    case.ask(ROBOTS_LIFE_S)
    assert case.broken() == ["robots_unknown"]
    case.ask(ROBOTS_LIFE_S + 10.0)
    assert case.broken() == ["robots_unknown", "robots_expired"]


async def test_retry_after_closes_the_host(case):
    case.ask(10.0, status=503, retry_after_s=60)
    case.ask(69.9)
    assert case.broken() == ["retry_after"]
    case.ask(80.0)
    assert case.broken() == ["retry_after"]


@pytest.mark.parametrize(("killed_s", "broken"), [(10.0 + LOST_S - 0.1, 0), (10.1 + LOST_S, 2)])
async def test_a_kill_excuses_only_the_last_answers(case, killed_s, broken):
    case.ask(10.0, status=503, retry_after_s=60)
    case.ask(10.0, "/robots.txt", B, robots=SLOW)
    case.auditor.violations.clear()
    case.auditor.life_ended(killed_s)
    case.ask(40.0)
    case.ask(41.0, "/robots.txt", B, robots=OPEN)
    case.ask(51.0, "/b", B)
    assert case.broken() == ["retry_after"] * (broken // 2)


async def test_whole_answers_must_be_in_the_file(case):
    url = "http://a.test/a"
    case.ask(10.0)
    case.ask(20.0, "/missing", status=404)
    case.auditor.life_ended(30.0)
    case.auditor.check_file(30.0, [], {url: [START_AT + 10.1]})
    assert case.broken() == []
    case.auditor.check_file(30.0, ["damaged"], {url: [START_AT + 500.0]})
    assert case.broken() == ["file", "visit_lost"]


async def test_no_more_visits_than_requests(case):
    case.ask(10.0)
    case.auditor.check_file(30.0, [], {"http://a.test/a": [START_AT + 10.1] * 2})
    assert case.broken() == ["visit_invented"]
