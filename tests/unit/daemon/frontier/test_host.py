"""One host's politeness on two clocks, whatever the wall clock does."""

import itertools

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
from crawld.daemon.schedule.slots import HostSlot
from tests.unit.daemon.fake_hosts import on_autojump_clock

NOON = 1_780_000_000.0 - 1_780_000_000.0 % 86_400 + 43_200
DAY_S = 86_400.0
JUMPS = pytest.mark.parametrize("jump_s", [-DAY_S, -3600.0, 0.0, 3600.0, DAY_S])


class Wall:
    """A wall clock that runs with trio's and jumps when told."""

    def __init__(self, at=NOON):
        self._shift_s = at - trio.current_time()

    def __call__(self):
        return trio.current_time() + self._shift_s

    def jump(self, by_s):
        self._shift_s += by_s


def host_of(**rules):
    host = HostState(1, HostSlot("a.test", trio.current_time()))
    host.apply_rules([DelayRules(**{"host_delay_s": 10.0, **rules})])
    return host


async def test_a_certificate_is_stored_when_it_is_new():
    host = host_of()
    assert host.update(1.0, "192.0.2.1", ("a.test", "b.test")).certificate == ("a.test", "b.test")
    assert host.update(2.0, "192.0.2.1", ("a.test", "b.test")).certificate == ()
    # An answer without one, a redirect to plain http perhaps, takes nothing back.
    assert host.update(3.0, "192.0.2.1").certificate == ()
    assert host.update(4.0, "192.0.2.1", ("a.test", "b.test")).certificate == ()
    assert host.update(5.0, "192.0.2.1", ("a.test",)).certificate == ("a.test",)


@JUMPS
@on_autojump_clock
async def test_a_retry_after_holds_through_any_jump_of_the_wall_clock(jump_s):
    wall = Wall()
    clock, host = Clock(wall=wall), host_of()
    began = trio.current_time()
    host.troubled(clock.now(), 300.0)
    wall.jump(jump_s)
    assert host.open_at(clock) == began + 300.0
    await trio.sleep(300.0)
    assert host.open_at(clock) <= trio.current_time()


@JUMPS
@on_autojump_clock
async def test_a_stored_closing_neither_frees_nor_freezes_the_host_after_a_start(jump_s):
    wall = Wall()
    clock, host = Clock(wall=wall), host_of()
    stored = Backoff(2, NOON, NOON + 300.0)
    wall.jump(jump_s)  # while the daemon was down
    host.restore(stored, clock)
    wait_s = host.open_at(clock) - trio.current_time()
    assert wait_s == pytest.approx(min(max(300.0 - jump_s, -DAY_S), MAX_RETRY_AFTER_S), abs=1e-3)
    assert host.backoff.level == 2


@on_autojump_clock
async def test_a_closing_far_in_the_future_is_cut():
    clock, host = Clock(wall=Wall()), host_of()
    host.restore(Backoff(1, NOON + 400 * DAY_S, NOON + 400 * DAY_S), clock)
    wait_s = host.open_at(clock) - trio.current_time()
    assert wait_s == pytest.approx(MAX_RETRY_AFTER_S, abs=1e-3)


@on_autojump_clock
async def test_trouble_doubles_the_delay_and_quiet_time_forgives_it_step_by_step():
    clock, host = Clock(wall=Wall()), host_of()
    delays = []
    for _ in range(3):
        host.troubled(clock.now(), None)
        delays.append(host.delay_s())
    assert delays == [20.0, 40.0, 80.0]
    for forgiven in (40.0, 20.0, 10.0, 10.0):
        host.answered(clock.now())  # too soon
        await trio.sleep(QUIET_PERIOD_S)
        host.answered(clock.now())
        assert host.delay_s() == forgiven


@on_autojump_clock
async def test_the_slot_rests_from_the_answer_on():
    host = host_of()
    now = trio.current_time()
    host.spaced(now + 5.0)
    assert host.slot.next_at == now + 15.0
    host.spaced(now)  # a late word of an earlier answer frees nobody
    assert host.slot.next_at == now + 15.0


@on_autojump_clock
async def test_the_slowest_site_of_a_host_holds():
    host = host_of()
    host.apply_rules([DelayRules(host_delay_s=1.0), DelayRules(host_delay_s=7.0)])
    assert host.delay_s() == 7.0
    host.apply_rules([])  # its sites are gone: what held goes on to hold
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
async def test_robots_lengthen_the_delay_within_bounds(text, delay_s):
    robots = Robots.parse(f"User-agent: *\n{text}\n".encode(), "crawld")
    host = host_of()
    host.apply_robots(robots, respect_crawl_delay=True)
    assert host.delay_s() == delay_s
    stubborn = host_of()
    stubborn.apply_robots(robots, respect_crawl_delay=False)
    assert stubborn.delay_s() == 10.0


@JUMPS
@on_autojump_clock
async def test_quiet_hours_follow_the_wall_clock(jump_s):
    wall = Wall()
    clock = Clock(wall=wall)
    host = host_of(quiet_hours=QuietHours(((0, 6 * 3600),)))
    assert host.open_at(clock) <= trio.current_time()  # noon
    wall.jump(12 * 3600.0 + jump_s)  # midnight, and whatever on top
    second = clock.now() % DAY_S
    wanted_s = max(0.0, 6 * 3600.0 - second)
    opens_in_s = max(0.0, host.open_at(clock) - trio.current_time())
    assert opens_in_s == pytest.approx(wanted_s, abs=1e-3)


@on_autojump_clock
async def test_a_visit_time_of_robots_txt_is_quiet_hours():
    robots = Robots.parse(b"User-agent: *\nVisit-time: 0600-0845\n", "crawld")
    clock, host = Clock(wall=Wall()), host_of()
    host.apply_robots(robots, respect_crawl_delay=True)
    opens_at = clock.to_wall(host.open_at(clock))
    assert opens_at % DAY_S == pytest.approx(6 * 3600, abs=1e-3)
    assert 0 < opens_at - NOON < DAY_S


@on_autojump_clock
async def test_a_shut_host_lends_turns_and_a_closed_one_does_not():
    clock, host = Clock(wall=Wall()), host_of()
    now = trio.current_time()
    host.shut_until = now + 60.0
    assert host.rested_at(clock) <= now
    assert host.open_at(clock) == now + 60.0
    host.troubled(clock.now(), 90.0)
    assert host.rested_at(clock) == host.open_at(clock) == now + 90.0


class Queue:
    """Pages of one site, as `HostState` asks them."""

    def __init__(self, *pages, wanted_at=0.0, requisites=False):
        self.requisites = requisites
        self.pages = list(pages)
        self.at = wanted_at

    def wanted_at(self, now):
        return self.at if self.pages else None

    def take(self, now):
        return self.pages.pop(0) if self.pages and self.at <= now else None


@on_autojump_clock
async def test_the_sites_of_a_host_take_turns():
    host = host_of()
    host.pages = {1: Queue("a", "b", "c"), 2: Queue("x"), 3: Queue("p", "q")}
    taken = iter(lambda: host.take(5.0, {1, 2, 3}), None)
    assert [page for _, page in taken] == ["a", "x", "p", "b", "q", "c"]


@on_autojump_clock
async def test_pages_share_the_turns_with_what_they_need():
    host = host_of()
    host.pages = {1: Queue(*"abcdef")}
    host.requisites = {1: Queue(*"123456", requisites=True)}
    taken = iter(lambda: host.take(5.0, {1}, requisite_share=0.25), None)
    assert "".join(page for _, page in taken) == "a1bcd2ef3456"


@on_autojump_clock
async def test_inactive_sites_have_no_turns():
    host = host_of()
    host.pages = {1: Queue("a"), 2: Queue("x", wanted_at=7.0), 3: Queue()}
    assert host.wanted_at(5.0, {1, 2, 3}) == 0.0
    assert host.wanted_at(5.0, {2, 3}) == 7.0
    assert host.wanted_at(5.0, {3}) is None
    assert host.take(5.0, {2, 3}) is None
    _, page = host.take(9.0, {2, 3})
    assert page == "x"


@pytest.mark.parametrize("jumps", list(itertools.permutations([-DAY_S, DAY_S, 60.0], 2)))
@on_autojump_clock
async def test_the_clocks_are_turned_into_each_other_as_they_are_now(jumps):
    wall = Wall()
    clock = Clock(wall=wall)
    for jump_s in jumps:
        wall.jump(jump_s)
        await trio.sleep(5.0)
        instant = trio.current_time() + 7.0
        assert clock.to_wall(instant) == pytest.approx(clock.now() + 7.0)
        assert clock.to_monotonic(clock.to_wall(instant)) == pytest.approx(instant)
