"""Politeness and page queues of one host, also across jumps of the wall clock."""

import itertools
import math

import pytest
import trio

from crawld.core.politeness import (
    MAX_RETRY_AFTER_S,
    QUIET_PERIOD_S,
    Backoff,
    DelayRules,
    QuietHours,
)
from crawld.core.robots import Robots
from crawld.daemon.clock import Clock
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.left_out import LeftOut
from crawld.daemon.frontier.rank import Rank
from crawld.daemon.schedule.slots import HostSlot
from tests.unit.daemon.fake_hosts import on_autojump_clock

NOON = 1_780_000_000.0 - 1_780_000_000.0 % 86_400 + 43_200
DAY_S = 86_400.0
JUMPS = pytest.mark.parametrize("jump_s", [-DAY_S, -3600.0, 0.0, 3600.0, DAY_S])


class WallClock:
    """A wall clock that runs with trio's clock and can jump."""

    def __init__(self, at=NOON):
        self._shift_s = at - trio.current_time()

    def __call__(self):
        return trio.current_time() + self._shift_s

    def jump(self, by_s):
        self._shift_s += by_s


def make_host(**rules):
    host = HostState(1, HostSlot("a.test", trio.current_time()))
    host.apply_rules([DelayRules(**{"host_delay_s": 10.0, **rules})])
    return host


async def test_a_certificate_is_stored_when_it_is_new():
    host = make_host()
    assert host.update(1.0, "192.0.2.1", ("a.test", "b.test")).certificate == ("a.test", "b.test")
    assert host.update(2.0, "192.0.2.1", ("a.test", "b.test")).certificate == ()
    # A response without one, such as a redirect to plain http, removes nothing.
    assert host.update(3.0, "192.0.2.1").certificate == ()
    assert host.update(4.0, "192.0.2.1", ("a.test", "b.test")).certificate == ()
    assert host.update(5.0, "192.0.2.1", ("a.test",)).certificate == ("a.test",)


@JUMPS
@on_autojump_clock
async def test_a_jump_of_the_wall_clock_does_not_change_a_retry_after(jump_s):
    wall = WallClock()
    clock, host = Clock(wall=wall), make_host()
    began = trio.current_time()
    host.record_trouble(clock.now(), 300.0)
    wall.jump(jump_s)
    assert host.open_at(clock) == began + 300.0
    await trio.sleep(300.0)
    assert host.open_at(clock) <= trio.current_time()


@JUMPS
@on_autojump_clock
async def test_a_restored_retry_after_survives_a_jump_of_the_wall_clock(jump_s):
    wall = WallClock()
    clock, host = Clock(wall=wall), make_host()
    stored = Backoff(2, NOON, NOON + 300.0)
    wall.jump(jump_s)  # while the daemon was down
    host.restore(stored, clock)
    wait_s = host.open_at(clock) - trio.current_time()
    assert wait_s == pytest.approx(max(300.0 - max(jump_s, 0.0), -DAY_S), abs=1e-3)
    assert host.backoff.level == 2


@on_autojump_clock
async def test_a_restored_retry_after_far_in_the_future_is_clamped():
    clock, host = Clock(wall=WallClock()), make_host()
    host.restore(Backoff(1, NOON + 400 * DAY_S, NOON + 800 * DAY_S), clock)
    wait_s = host.open_at(clock) - trio.current_time()
    assert wait_s == pytest.approx(MAX_RETRY_AFTER_S, abs=1e-3)


@on_autojump_clock
async def test_trouble_doubles_the_delay_and_quiet_periods_halve_it_again():
    clock, host = Clock(wall=WallClock()), make_host()
    delays = []
    for _ in range(3):
        host.record_trouble(clock.now(), None)
        delays.append(host.delay_s())
    assert delays == [20.0, 40.0, 80.0]
    for decayed in (40.0, 20.0, 10.0, 10.0):
        host.record_success(clock.now())  # too soon
        await trio.sleep(QUIET_PERIOD_S)
        host.record_success(clock.now())
        assert host.delay_s() == decayed


@on_autojump_clock
async def test_the_delay_of_a_host_starts_at_the_response():
    host = make_host()
    now = trio.current_time()
    host.rest_from(now + 5.0)
    assert host.slot.next_at == now + 15.0
    host.rest_from(now)  # the delay of an earlier response does not shorten it
    assert host.slot.next_at == now + 15.0


@on_autojump_clock
async def test_the_longest_delay_of_the_sites_of_a_host_applies():
    host = make_host()
    host.apply_rules([DelayRules(host_delay_s=1.0), DelayRules(host_delay_s=7.0)])
    assert host.delay_s() == 7.0
    host.apply_rules([])  # its sites are gone: the last rules stay
    assert host.delay_s() == 7.0


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("Crawl-delay: 30", 30.0),
        ("Crawl-delay: 3", 10.0),
        ("Crawl-delay: 100000", 300.0),
        ("Request-rate: 1/50", 50.0),
        ("Crawl-delay: 30\nRequest-rate: 1/50", 50.0),
        ("Disallow: /", 10.0),
    ],
)
@on_autojump_clock
async def test_robots_txt_lengthens_the_delay_within_bounds(text, delay_s):
    robots = Robots.parse(f"User-agent: *\n{text}\n".encode(), "crawld")
    host = make_host()
    host.apply_robots(robots, respect_crawl_delay=True)
    assert host.delay_s() == delay_s
    ignoring = make_host()
    ignoring.apply_robots(robots, respect_crawl_delay=False)
    assert ignoring.delay_s() == 10.0


@JUMPS
@on_autojump_clock
async def test_quiet_hours_follow_the_wall_clock(jump_s):
    wall = WallClock()
    clock = Clock(wall=wall)
    host = make_host(quiet_hours=QuietHours(((0, 6 * 3600),)))
    assert host.open_at(clock) <= trio.current_time()  # noon
    wall.jump(12 * 3600.0 + jump_s)  # midnight, plus the jump
    second = clock.now() % DAY_S
    expected_s = max(0.0, 6 * 3600.0 - second)
    opens_in_s = max(0.0, host.open_at(clock) - trio.current_time())
    assert opens_in_s == pytest.approx(expected_s, abs=1e-3)


@on_autojump_clock
async def test_the_visit_time_of_robots_txt_sets_quiet_hours():
    robots = Robots.parse(b"User-agent: *\nVisit-time: 0600-0845\n", "crawld")
    clock, host = Clock(wall=WallClock()), make_host()
    host.apply_robots(robots, respect_crawl_delay=True)
    opens_at = clock.to_wall(host.open_at(clock))
    assert opens_at % DAY_S == pytest.approx(6 * 3600, abs=1e-3)
    assert 0 < opens_at - NOON < DAY_S


@on_autojump_clock
async def test_shutting_a_host_delays_only_its_pages_and_a_retry_after_every_request():
    clock, host = Clock(wall=WallClock()), make_host()
    now = trio.current_time()
    host.shut_until = now + 60.0
    assert host.rested_at(clock) <= now
    assert host.open_at(clock) == now + 60.0
    host.record_trouble(clock.now(), 90.0)
    assert host.rested_at(clock) == host.open_at(clock) == now + 90.0


class FakePageQueue:
    """The part of `PageQueue` that `HostState` calls."""

    rank = Rank.REVISIT
    has_rest = False
    left_out = LeftOut()
    ahead = ()

    def __init__(self, *pages, wanted_at=0.0, requisites=False):
        self.requisites = requisites
        self.pages = list(pages)
        self.at = wanted_at

    def due_at(self, now):
        return math.inf

    def wanted_at(self, now):
        return self.at if self.pages else None

    def take(self, now):
        return self.pages.pop(0) if self.pages and self.at <= now else None


@on_autojump_clock
async def test_the_sites_of_a_host_take_turns():
    host = make_host()
    host.pages = {
        1: FakePageQueue("a", "b", "c"),
        2: FakePageQueue("x"),
        3: FakePageQueue("p", "q"),
    }
    taken = iter(lambda: host.take(5.0, {1, 2, 3}), None)
    assert [page for _, page in taken] == ["a", "x", "p", "b", "q", "c"]


@on_autojump_clock
async def test_requisites_get_their_share_of_the_turns():
    host = make_host()
    host.pages = {1: FakePageQueue(*"abcdef")}
    host.requisites = {1: FakePageQueue(*"123456", requisites=True)}
    taken = iter(lambda: host.take(5.0, {1}, requisite_share=0.25), None)
    assert "".join(page for _, page in taken) == "a1bcd2ef3456"


@on_autojump_clock
async def test_inactive_sites_have_no_turns():
    host = make_host()
    host.pages = {1: FakePageQueue("a"), 2: FakePageQueue("x", wanted_at=7.0), 3: FakePageQueue()}
    assert host.wanted_at(5.0, {1, 2, 3}) == 0.0
    assert host.wanted_at(5.0, {2, 3}) == 7.0
    assert host.wanted_at(5.0, {3}) is None
    assert host.take(5.0, {2, 3}) is None
    _, page = host.take(9.0, {2, 3})
    assert page == "x"


@pytest.mark.parametrize("jumps", list(itertools.permutations([-DAY_S, DAY_S, 60.0], 2)))
@on_autojump_clock
async def test_times_are_converted_with_the_current_difference_of_the_clocks(jumps):
    wall = WallClock()
    clock = Clock(wall=wall)
    for jump_s in jumps:
        wall.jump(jump_s)
        await trio.sleep(5.0)
        later = trio.current_time() + 7.0
        assert clock.to_wall(later) == pytest.approx(clock.now() + 7.0)
        assert clock.to_monotonic(clock.to_wall(later)) == pytest.approx(later)
