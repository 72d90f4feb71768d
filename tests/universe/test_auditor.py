"""What the auditor holds against a daemon, and what a kill, a step or a faulty disk excuses."""

from dataclasses import replace

import pytest
import trio

from crawld.simweb.message import SimRequest
from crawld.universe.auditor import (
    DISK_TAIL_S,
    LINES,
    LINES_A_REQUEST,
    ROBOTS_LIFE_S,
    TURN_S,
    WAL_BYTES,
    Auditor,
)
from crawld.universe.event_log import EventLog
from crawld.universe.file_audit import LOST_S
from crawld.universe.jumping_clock import JumpingClock
from crawld.universe.plan import (
    START_AT,
    ClockStep,
    DiskFault,
    DiskPeriod,
    FaultKind,
    FaultPeriod,
    GroupPlan,
    HostPlan,
    NameEdition,
    NameFault,
    RobotsEdition,
    UniversePlan,
)
from crawld.universe.simulated_host import SentAnswer

OPEN = RobotsEdition(0.0, "", None)
SLOW = RobotsEdition(0.0, "/b", 30.0)
HOSTS = A, B, C = tuple(
    HostPlan(name, (NameEdition(0.0, "192.0.2.9"),), 9, 1, (OPEN,), ())
    for name in ("a.test", "b.test", "c.test")
)


class Case:
    """An auditor of a daemon whose host delay is 10 s, and address delay 1 s, in its time."""

    def __init__(self, hosts=HOSTS, **more):
        plan = UniversePlan(1, 1.0, 10.0, hosts, (), **more)
        self.auditor = Auditor(plan, EventLog())

    async def ask(
        self,
        at_s,
        target="/a",
        host=A,
        status=200,
        robots=OPEN,
        retry_after_s=None,
        wire_bytes=0,
    ):
        await trio.sleep_until(at_s)
        request = SimRequest("GET", target, {}, host.name, "", START_AT + at_s, 0)
        self.auditor.request_arrived(host, request, "192.0.2.9")
        if status:
            answer = SentAnswer(status, robots, retry_after_s, b"text", 1, wire_bytes=wire_bytes)
            self.auditor.answer_sent(host, request, answer)

    def broken(self):
        return [violation.invariant for violation in self.auditor.found.violations]


def broken_without_requests(for_s, hosts):
    """Return what the auditor finds at the end of a life in which no host had a request."""
    auditor = Auditor(UniversePlan(1, 1.0, 10.0, hosts, (), min_revisit_s=0.0), EventLog())

    async def run():
        await trio.sleep(for_s)
        auditor.check_starved(trio.current_time())

    trio.run(run, clock=JumpingClock())
    return [each.invariant for each in auditor.found.violations]


def broken(story, **more):
    """Return what the auditor has found at the end of a story, an async function of a case."""

    async def run():
        case = Case(**more)
        await case.ask(0.0, "/robots.txt")
        await story(case)
        return case.broken()

    return trio.run(run, clock=JumpingClock())


@pytest.mark.parametrize(("at_s", "found"), [(10.0, []), (9.9, ["host_delay"])])
def test_requests_to_a_host_keep_its_delay(at_s, found):
    assert broken(lambda case: case.ask(at_s)) == found


def test_hosts_of_one_address_share_its_delay():
    async def story(case):
        await case.ask(0.9, "/robots.txt", B)
        await case.ask(1.9, "/robots.txt", C)

    assert broken(story) == ["address_delay"]


def test_a_new_delay_counts_from_its_first_request():
    async def story(case):
        await case.ask(10.0)
        case.auditor.delay_set(30.0)
        await case.ask(20.0)
        await case.ask(49.0)

    assert broken(story) == ["host_delay"]


def test_rules_are_those_that_were_answered():
    async def story(case):
        await case.ask(10.0, "/b")
        await case.ask(20.0, "/robots.txt", status=503, robots=SLOW)
        await case.ask(30.0, "/b")
        await case.ask(40.0, "/robots.txt", robots=SLOW)
        assert case.broken() == []
        await case.ask(69.0)
        await case.ask(99.0, "/b")

    assert broken(story) == ["host_delay", "robots_forbids"]


def test_pages_need_a_robots_txt_of_the_last_day():
    async def story(case):
        await case.ask(100.0, "/robots.txt", B, status=0)
        await case.ask(110.0, "/a", B)
        await case.ask(ROBOTS_LIFE_S)
        await case.ask(ROBOTS_LIFE_S + 10.0)

    assert broken(story) == ["robots_unknown", "robots_expired"]


@pytest.mark.parametrize(("restarts_s", "found"), [(50.0, []), (10.0, ["robots_expired"])])
def test_a_clock_set_back_before_a_restart_makes_robots_txt_younger(restarts_s, found):
    async def story(case):
        for _ in range(2):  # once, however often it is restarted
            await trio.sleep_until(restarts_s)
            case.auditor.life_began()
        await case.ask(ROBOTS_LIFE_S + 90.0)
        await case.ask(ROBOTS_LIFE_S + 100.0 + 1.0)

    steps = (ClockStep(20.0, -100.0),)
    assert broken(story, steps=steps)[-1:] == ["robots_expired"]
    assert broken(story, steps=steps)[:-1] == found


async def close(case):
    """Let host a be closed from 10 s to 70 s."""
    await case.ask(10.0, status=503, retry_after_s=60)


def test_retry_after_closes_the_host():
    async def story(case):
        await close(case)
        await case.ask(69.9)
        await case.ask(80.0)

    assert broken(story) == ["retry_after"]


def test_an_operator_may_forgive_a_host():
    async def story(case):
        await close(case)
        case.auditor.forgiven("a.test")
        await case.ask(20.0)

    assert broken(story) == []


@pytest.mark.parametrize(
    ("steps", "found"), [((), ["retry_after"]), ((ClockStep(30.0, 3_600.0),), [])]
)
def test_a_step_of_the_clock_excuses_only_a_new_process(steps, found):
    async def story(case):
        await close(case)
        await trio.sleep_until(40.0)
        case.auditor.life_began()
        await case.ask(50.0)

    assert broken(story, steps=steps) == found


@pytest.mark.parametrize(("killed_s", "count"), [(10.0 + LOST_S - 0.1, 0), (11.1 + LOST_S, 1)])
def test_a_kill_excuses_only_the_last_answers(killed_s, count):
    async def story(case):
        await close(case)
        await case.ask(11.0, "/robots.txt", B, robots=SLOW)
        case.auditor.life_ended(killed_s)
        await case.ask(40.0)
        await case.ask(41.0, "/robots.txt", B, robots=OPEN)

    assert broken(story) == ["retry_after"] * count


@pytest.mark.parametrize(
    ("logged", "count"),
    [(("store_stalled",), 0), (("store_stalled", "store_recovered"), 1), ((), 1)],
)
def test_a_kill_excuses_the_answers_since_a_faulty_disk_refuses_commits(logged, count):
    disk = (DiskPeriod(DiskFault.FAILING, 5.0, 60.0),)

    async def story(case):
        await close(case)
        await trio.sleep_until(11.0)
        for event in logged:
            case.auditor.note_logged("error", event)
        case.auditor.life_ended(30.0)
        await case.ask(40.0)

    assert broken(story, disk=disk) == ["retry_after"] * count
    assert "retry_after" in broken(story)


@pytest.mark.parametrize(
    ("stalled_s", "recovered_s", "again_s", "count"),
    [
        (9.0, 20.0, 20.0 + LOST_S - 0.1, 0),  # the answer of 10 s waits for the next commit
        (9.0, 20.0, 20.0 + LOST_S + 0.1, 1),
        (10.0 + LOST_S + 0.1, 20.0, 20.1, 1),
    ],
)
def test_a_kill_excuses_the_answers_that_wait_while_a_disk_stalls_twice(
    stalled_s, recovered_s, again_s, count
):
    disk = (DiskPeriod(DiskFault.FAILING, 5.0, 60.0),)

    async def story(case):
        events = [(stalled_s, "store_stalled"), (recovered_s, "store_recovered")]
        for at_s, event in sorted([*events, (again_s, "store_stalled"), (10.0, "closed")]):
            await trio.sleep_until(at_s)
            if event == "closed":
                await close(case)
            else:
                case.auditor.note_logged("error", event)
        case.auditor.life_ended(30.0)
        await case.ask(40.0)

    assert broken(story, disk=disk) == ["retry_after"] * count


def test_nothing_is_asked_in_quiet_hours_by_the_clock_of_the_daemon():
    async def story(case):
        await case.ask(TURN_S + 59.0)
        await case.ask(TURN_S + 61.0 + 10.0)
        await case.ask(120.0)
        await case.ask(3_000.0)

    steps = (ClockStep(2_900.0, -2_900.0),)
    assert broken(story, quiet_minutes=(1, 2)) == ["quiet_hours"]
    assert broken(story, quiet_minutes=(1, 2), steps=steps) == ["quiet_hours"] * 2


def test_all_hosts_share_the_total_rate():
    async def story(case):
        for number in range(1, 30):
            await case.ask(number * 10.0)

    assert broken(story, max_requests_per_s=0.1) == []
    found = broken(story, max_requests_per_s=0.08)
    assert set(found) == {"total_rate"}


def test_a_text_in_answer_to_a_probe_is_no_page_that_must_be_kept():
    async def run():
        case = Case()
        await case.ask(10.0, "/docs/crawld-0a1b")
        await case.ask(20.0, "/docs/a")
        return [each.url for each in case.auditor.file._answered]

    assert trio.run(run, clock=JumpingClock()) == ["http://a.test/docs/a"]


def test_nothing_private_is_reached():
    async def story(case):
        case.auditor.fence_crossed("127.0.0.1")

    assert broken(story) == ["address_fence"]


@pytest.mark.parametrize(("status", "is_stopping"), [(503, False), (500, True)])
def test_a_daemon_that_stops_refuses_requests_and_nothing_else(status, is_stopping):
    async def story(case):
        case.auditor.control_answered("/add", 503, is_stopping=True)
        case.auditor.control_answered("/add", status, is_stopping=is_stopping)

    assert broken(story) == ["control_failed"]


@pytest.mark.parametrize(
    ("report", "invariant"),
    [
        (lambda auditor: auditor.note_logged("error", "job_failed"), "error_logged"),
        (lambda auditor: auditor.daemon_failed("KeyError: 1"), "daemon_failed"),
        (lambda auditor: auditor.control_answered("/status", 500), "control_failed"),
    ],
)
def test_only_a_faulty_disk_excuses_errors(report, invariant):
    disk = (DiskPeriod(DiskFault.FULL, 10.0, 20.0),)

    async def story(case):
        await trio.sleep_until(20.0 + DISK_TAIL_S)
        report(case.auditor)
        await trio.sleep(1.0)
        report(case.auditor)

    assert broken(story) == [invariant] * 2
    assert broken(story, disk=disk) == [invariant]


@pytest.mark.parametrize(
    ("left", "count"),
    [
        ((0, 0, ["mirror.db", "mirror.db.lock"]), 0),
        ((1, 0, []), 1),
        ((0, 1, []), 1),
        ((0, 0, ["mirror.db-wal"]), 1),
    ],
)
def test_a_clean_stop_leaves_nothing_open(left, count):
    async def story(case):
        case.auditor.left_open(*left)

    assert broken(story) == ["left_open"] * count


@pytest.mark.parametrize(("lines", "count"), [(LINES, 0), (LINES + 3 * LINES_A_REQUEST, 1)])
def test_a_life_logs_only_so_much(lines, count):
    async def story(case):
        case.auditor.life_began()
        await case.ask(10.0)
        await case.ask(20.0)
        for _ in range(lines + 2):
            case.auditor.note_logged("info", "a line")
        case.auditor.life_ended(trio.current_time())

    assert broken(story) == ["log_floods"] * count


@pytest.mark.parametrize(("wal_bytes", "count"), [(WAL_BYTES, 0), (WAL_BYTES + 1, 1)])
def test_the_log_of_the_file_stays_short(wal_bytes, count):
    async def story(case):
        case.auditor.log_grew(wal_bytes)

    assert broken(story) == ["wal_long"] * count


@pytest.mark.parametrize(
    ("edition", "found"),
    [
        (NameEdition(0.0, "93.184.216.10"), ["host_starved"]),
        (NameEdition(0.0, "127.0.0.1"), []),
        (NameEdition(0.0, "93.184.216.10", NameFault.TIMEOUT), []),
    ],
)
def test_a_host_that_can_be_reached_does_not_starve(edition, found):
    hosts = (replace(A, names=(edition,)),)
    assert broken_without_requests(2_000.0, hosts) == found


@pytest.mark.parametrize(("kind", "found"), [("refused", []), ("busy", ["host_starved"])])
def test_a_host_is_not_starved_by_connections_refused_at_its_address(kind, found):
    faults = (FaultPeriod(FaultKind(kind), 1_000.0, 2_000.0, 1.0, 0),)
    names = (NameEdition(0.0, "93.184.216.10"),)
    hosts = replace(A, names=names), replace(B, names=names, faults=faults)
    assert broken_without_requests(2_500.0, hosts) == found


def test_hosts_of_a_group_share_its_rate_and_have_its_delay():
    async def story(case):
        await case.ask(3.0, "/robots.txt", B)
        for number in range(1, 15):
            await case.ask(number * 20.0)
            await case.ask(number * 20.0 + 10.0, host=B)

    plan = {"hosts": (A, B), "group": GroupPlan(("a.test", "b.test"), 0.1, 20.0)}
    assert broken(story, **plan) == []
    slower = GroupPlan(("a.test", "b.test"), 0.08, 21.0)
    assert set(broken(story, **{**plan, "group": slower})) == {"group_rate", "host_delay"}
    alone = GroupPlan(("a.test",), 0.05, None)
    assert broken(story, **{**plan, "group": alone}) == []


@pytest.mark.parametrize(("wire_bytes", "found"), [(2_000, set()), (4_000, {"total_rate"})])
def test_all_hosts_share_the_bytes_per_second(wire_bytes, found):
    async def story(case):
        for number in range(1, 30):
            await case.ask(number * 10.0, wire_bytes=wire_bytes)

    assert set(broken(story, max_bytes_per_s=200)) == found


@pytest.mark.parametrize(
    ("from_s", "wire_bytes", "found"),
    [
        (0.0, 4_000, set()),
        (0.0, 8_000, {"total_rate"}),
        (290.0 - 60.0, 4_000, {"total_rate"}),
        (1_000.0, 4_000, {"total_rate"}),
    ],
)
def test_the_bytes_of_a_request_that_failed_may_come_later(from_s, wire_bytes, found):
    async def story(case):
        for number in range(1, 30):
            size = wire_bytes if number in (10, 11) else 0
            await case.ask(number * 10.0, wire_bytes=size)

    names = (NameEdition(0.0, "192.0.2.10"),)
    fault = FaultPeriod(FaultKind.SILENT, from_s, from_s + 50.0, 1.0, 0)
    silent = replace(B, names=names, faults=(fault,))
    assert set(broken(story, hosts=(A, silent), max_bytes_per_s=100)) == found


def test_a_new_process_need_not_know_of_the_bytes_before():
    async def story(case):
        for number in range(1, 5):
            await case.ask(number * 10.0, wire_bytes=4_000)
        case.auditor.life_began()
        for number in range(5, 15):
            await case.ask(number * 10.0, wire_bytes=1_000)

    assert broken(story, max_bytes_per_s=200) == []


def test_the_end_of_a_life_may_come_after_so_many_pages():
    ended = []

    async def story(case):
        case.auditor.after_answers(2, lambda: ended.append(trio.current_time()))
        await case.ask(10.0)
        await case.ask(20.0, "/robots.txt")
        await case.ask(30.0, status=404)
        for at_s in (40.0, 50.0):
            await case.ask(at_s)

    assert broken(story) == []
    assert ended == [40.0]
