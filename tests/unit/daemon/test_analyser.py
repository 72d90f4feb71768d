"""Which analyses run on the event loop, which on threads, and in what order."""

import itertools
import math
from contextlib import contextmanager

import pytest
import trio
import trio.testing

from crawld.daemon.analyser import INLINE_S, PASS_S, Analyser, cost_s
from crawld.daemon.analysis_memory import AnalysisDroppedError
from crawld.daemon.analysis_time import REMEMBERED_S
from crawld.daemon.stall_meter import StallMeter

URL = "http://{}.test/page"
SMALL, MEDIUM, LARGE = b"<p>x", b"<td>x" * 20_000, bytes(8_000_000)


class HeldWorkers:
    """Workers whose calls end when the test says so."""

    def __init__(self, *, held=False):
        self.started = []
        self.at_once = self.most_at_once = 0
        self.go_on = trio.Event()
        if not held:
            self.go_on.set()

    async def run(self, call, *args, limiter=None, abandon_on_cancel=False):
        self.started.append(args[0])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            with trio.CancelScope(shield=not abandon_on_cancel):
                await self.go_on.wait()
            await trio.lowlevel.checkpoint()
            return call(*args)
        finally:
            self.at_once -= 1


class ListedMarks:
    """Keeps the marks in a list."""

    def __init__(self):
        self.open, self.all = [], []

    @contextmanager
    def under(self, url):
        self.open.append(url)
        self.all.append(url)
        try:
            yield
        finally:
            self.open.remove(url)


def url(host):
    return URL.format(host)


async def wait_until(holds):
    with trio.fail_after(30):
        while not holds():
            await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    ("piece", "repeats", "inline"),
    [
        (SMALL, [1], True),
        (b"<p>word ", [3_000], True),
        (b"x", [300_000], True),
        (b"x", [400_000], False),
        (b"x", [200_000, 200_000], False),
        (b"<td>x", [8_000], False),
        (b"<", [64_000_000], False),
    ],
)
async def test_only_small_bodies_are_read_on_the_event_loop(piece, repeats, inline):
    bodies = [piece * count for count in repeats]
    workers = HeldWorkers()
    analyser = Analyser(workers)
    assert await analyser.read(len, bodies, url=url("a"), bodies=bodies) == len(bodies)
    assert workers.started == ([] if inline else [url("a")])


async def test_a_feed_counts_for_more_than_a_page_and_a_hash_for_less():
    workers = HeldWorkers()
    analyser = Analyser(workers)
    body = b"<p>word " * 3_000
    await analyser.read(len, body, url=url("a"), bodies=[body], weight=12)
    await analyser.pack(len, b"x" * 2_000_000, url=url("b"), body=b"x" * 2_000_000)
    assert workers.started == [url("a")]
    await analyser.pack(len, b"x" * 16_000_000, url=url("c"), body=b"x" * 16_000_000)
    assert workers.started == [url("a"), url("c")]


@pytest.mark.parametrize("body", [SMALL, MEDIUM, LARGE])
async def test_each_analysis_is_marked_and_its_exception_is_raised(body):
    marks = ListedMarks()
    analyser = Analyser(HeldWorkers(), marks)

    def fail():
        assert marks.open == [url("a")]
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await analyser.read(fail, url=url("a"), bodies=[body])
    assert (marks.open, marks.all) == ([], [url("a")])


async def test_a_long_analysis_delays_no_medium_one(nursery):
    workers = HeldWorkers(held=True)
    analyser = Analyser(workers)

    async def analyse(host, body):
        await analyser.read(len, body, url=url(host), bodies=[body])

    for host in ("long1", "long2"):
        nursery.start_soon(analyse, host, LARGE)
    await wait_until(lambda: workers.started)
    nursery.start_soon(analyse, "medium", MEDIUM)
    await wait_until(lambda: url("medium") in workers.started)
    assert len(workers.started) == 2
    workers.go_on.set()
    await wait_until(lambda: len(workers.started) == 3)
    assert workers.most_at_once == 2


async def test_hosts_take_turns_and_small_pages_do_not_wait_for_those_of_a_greedy_host(nursery):
    workers = HeldWorkers(held=True)
    analyser = Analyser(workers)

    async def analyse(host, body):
        await analyser.read(len, body, url=url(host), bodies=[body])

    nursery.start_soon(analyse, "first", LARGE)
    await wait_until(lambda: workers.started)
    for _ in range(6):
        nursery.start_soon(analyse, "greedy", LARGE)
        await trio.testing.wait_all_tasks_blocked()
    for host, body in (("fair", LARGE), ("light", LARGE[:4_000_000])):
        nursery.start_soon(analyse, host, body)
        await trio.testing.wait_all_tasks_blocked()
    workers.go_on.set()
    await wait_until(lambda: len(workers.started) == 9)
    order = [each.removeprefix("http://").partition(".")[0] for each in workers.started]
    assert order[:4] == ["first", "light", "greedy", "fair"]
    assert workers.most_at_once == 1


async def test_a_cancelled_caller_leaves_the_queue(nursery):
    workers = HeldWorkers(held=True)
    analyser = Analyser(workers)

    async def analyse(host):
        await analyser.read(len, LARGE, url=url(host), bodies=[LARGE])

    nursery.start_soon(analyse, "first")
    await wait_until(lambda: workers.started)
    async with trio.open_nursery() as doomed:
        doomed.start_soon(analyse, "doomed")
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(analyse, "next")
        await trio.testing.wait_all_tasks_blocked()
        doomed.cancel_scope.cancel()
    workers.go_on.set()
    await wait_until(lambda: len(workers.started) == 2)
    assert workers.started == [url("first"), url("next")]
    await analyser.read(len, LARGE, url=url("again"), bodies=[LARGE])


async def test_a_stop_ends_the_waiting_of_visits_and_of_nothing_else(nursery):
    workers = HeldWorkers(held=True)
    analyser = Analyser(workers)
    dropped = []

    async def visit(host):
        try:
            with analyser.memory.visit():
                await analyser.read(len, LARGE, url=url(host), bodies=[LARGE])
        except AnalysisDroppedError:
            dropped.append(host)

    async def run_job():
        await analyser.read(len, LARGE, url=url("job"), bodies=[LARGE])

    nursery.start_soon(visit, "runs")
    await wait_until(lambda: workers.started)
    nursery.start_soon(visit, "waits")
    nursery.start_soon(run_job)
    await trio.testing.wait_all_tasks_blocked()
    analyser.drop(running_until=math.inf)
    await wait_until(lambda: dropped)
    await visit("late")
    assert dropped == ["waits", "late"]
    workers.go_on.set()
    await wait_until(lambda: len(workers.started) == 2)
    assert workers.started == [url("runs"), url("job")]


async def test_other_tasks_run_between_many_small_analyses(mock_clock, nursery):
    meter = StallMeter()
    analyser = Analyser(HeldWorkers(), meter=meter)
    runs = []

    def work():
        runs.append("analysis")
        mock_clock.jump(2 * PASS_S)  # a sum of times may round to a little less

    async def analyse(number):
        await analyser.read(work, url=url(f"h{number}"), bodies=[SMALL])

    with meter.installed():
        for number in range(20):
            nursery.start_soon(analyse, number)
        while runs.count("analysis") < 20:
            runs.append("other")
            await trio.lowlevel.checkpoint()
    # Their estimates are far too low here, so that one runs in each pass, before or after "other".
    assert "analysis analysis analysis" not in " ".join(runs)


async def test_calls_that_waited_share_the_time_of_a_pass(mock_clock, nursery):
    """Each pass of the event loop costs; a crawl at full speed must not make one for each page."""
    meter = StallMeter()
    analyser = Analyser(HeldWorkers(), meter=meter)
    runs = []

    async def analyse(number):
        await analyser.read(mock_clock.jump, PASS_S / 20, url=url(f"h{number}"), bodies=[SMALL])
        runs.append(meter.passes)

    with meter.installed():
        for number in range(100):
            nursery.start_soon(analyse, number)
        while len(runs) < 100:
            await trio.lowlevel.checkpoint()
    # 5 passes have the time; four calls go on in each.
    assert max(runs) - min(runs) <= 30
    assert max(map(runs.count, runs)) <= 21


async def test_a_page_that_is_analysed_waits_once(mock_clock, nursery):
    meter = StallMeter()
    analyser = Analyser(HeldWorkers(), meter=meter)
    runs = []

    async def analyse(number):
        for _ in range(2):
            call = mock_clock.jump, PASS_S / 40
            await analyser.read(*call, url=url(f"h{number}"), bodies=[SMALL])
            runs.append((number, meter.passes))

    with meter.installed():
        for number in range(100):
            nursery.start_soon(analyse, number)
        while len(runs) < 200:
            await trio.lowlevel.checkpoint()
    assert sum(one == other for one, other in itertools.pairwise(runs)) >= 90


async def test_a_call_whose_pass_has_no_time_left_keeps_its_place(mock_clock, nursery):
    meter = StallMeter()
    analyser = Analyser(HeldWorkers(), meter=meter)
    order = []

    async def analyse(number, took_s):
        await analyser.read(mock_clock.jump, took_s, url=url(f"h{number}"), bodies=[SMALL])
        order.append(number)

    with meter.installed():
        nursery.start_soon(analyse, "first", PASS_S)
        await wait_until(lambda: order == ["first"])
        for number in range(30):
            nursery.start_soon(analyse, number, PASS_S)
        await trio.lowlevel.checkpoint()
        for number in range(30, 1_000):
            nursery.start_soon(analyse, number, PASS_S / 20)
        await wait_until(lambda: len(order) == 1_001)
    assert len(set(order)) == 1_001
    # Of the long calls that wait one runs in each pass, and at most 15 short ones before it.
    assert {*range(30)} < {*order[: 31 + 30 * 15]}


async def test_pages_that_overrun_send_the_next_of_their_domain_to_a_thread(mock_clock, nursery):
    workers = HeldWorkers()
    analyser = Analyser(workers, cpu_time=trio.current_time)
    inline = []

    def work(host):
        if host not in {each.split("/")[2] for each in workers.started}:
            inline.append(host)
        mock_clock.jump(0.2)

    async def analyse(host):
        await analyser.read(work, host, url=f"http://{host}/", bodies=[SMALL * 100])

    async with trio.open_nursery() as crowd:
        for number in range(20):
            crowd.start_soon(analyse, f"h{number}.attack.test")
    assert len(inline) == 1
    assert len(workers.started) == 19
    await analyse("www.honest.test")
    assert inline[1:] == ["www.honest.test"]
    await analyse("www.honest.test")
    assert workers.started[-1] == "http://www.honest.test/"
    mock_clock.jump(REMEMBERED_S)
    await analyse("h0.attack.test")
    assert len(workers.started) == 20


async def test_a_pause_of_the_interpreter_sends_no_tiny_page_to_a_thread(mock_clock):
    workers = HeldWorkers()
    analyser = Analyser(workers, cpu_time=trio.current_time)
    for _ in range(2):
        await analyser.read(mock_clock.jump, 0.1, url=url("tiny"), bodies=[SMALL])
    assert workers.started == []


async def test_a_page_that_others_kept_from_the_processor_did_not_overrun(mock_clock):
    workers = HeldWorkers()
    analyser = Analyser(workers, cpu_time=lambda: 0.0)
    for _ in range(2):
        await analyser.read(mock_clock.jump, 0.1, url=url("slow"), bodies=[SMALL * 100])
    assert workers.started == []


async def test_when_many_domains_overrun_only_tiny_pages_stay_on_the_event_loop(mock_clock):
    workers = HeldWorkers()
    analyser = Analyser(workers, cpu_time=trio.current_time)

    async def analyse(host, seconds, body):
        await analyser.read(mock_clock.jump, seconds, url=f"http://{host}/", bodies=[body])

    for number in range(100):
        await analyse(f"attack{number}.test", 0.1, SMALL * 1_000)
    assert len(workers.started) >= 95
    sent = len(workers.started)
    await analyse("tiny.test", 0.0, SMALL * 50)
    assert len(workers.started) == sent
    mock_clock.jump(100.0)
    await analyse("honest.test", 0.0, SMALL * 1_000)
    assert len(workers.started) == sent


async def test_a_stop_ends_the_waiting_of_visits_for_the_event_loop(mock_clock, nursery):
    analyser = Analyser(HeldWorkers())
    ended = []

    async def visit(number):
        try:
            with analyser.memory.visit():
                await analyser.read(work, number, url=url(f"h{number}"), bodies=[SMALL])
        except AnalysisDroppedError:
            ended.append("dropped")

    def work(number):
        mock_clock.jump(PASS_S)
        analyser.drop(running_until=math.inf)
        ended.append("analysed")

    async with trio.open_nursery() as crowd:
        for number in range(20):
            crowd.start_soon(visit, number)
    assert sorted(ended) == ["analysed"] + ["dropped"] * 19


async def test_a_stop_abandons_what_runs_on_a_thread_at_the_given_time(mock_clock):
    workers = HeldWorkers(held=True)
    analyser = Analyser(workers)
    ended = []

    async def visit():
        with analyser.memory.visit(), trio.CancelScope(shield=True):
            try:
                await analyser.read(len, LARGE, url=url("visit"), bodies=[LARGE])
            except AnalysisDroppedError:
                ended.append("visit")

    async def run_job():
        try:
            await analyser.read(len, MEDIUM, url=url("job"), bodies=[MEDIUM])
        finally:
            ended.append("job")

    with trio.CancelScope() as everything:
        async with trio.open_nursery() as tasks:
            tasks.start_soon(visit)
            tasks.start_soon(run_job)
            await wait_until(lambda: len(workers.started) == 2)
            analyser.drop(running_until=trio.current_time() + 5)
            await trio.testing.wait_all_tasks_blocked()
            assert ended == []
            mock_clock.jump(5)
            await wait_until(lambda: ended)
            await trio.testing.wait_all_tasks_blocked()
            assert ended == ["visit"]
            everything.cancel()
    assert ended == ["visit", "job"]


async def test_a_cancelled_analysis_keeps_its_memory_until_its_thread_ends():
    workers = HeldWorkers(held=True)
    analyser = Analyser(workers)
    scope = trio.CancelScope()

    async def analyse():
        with scope:
            await analyser.read(len, LARGE, url=url("job"), bodies=[LARGE])
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as tasks:
        tasks.start_soon(analyse)
        await wait_until(lambda: workers.started)
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert workers.at_once == 1
        workers.go_on.set()
    assert scope.cancelled_caught
    assert workers.at_once == 0


async def test_after_a_stop_no_visit_begins_an_analysis_on_a_thread(nursery):
    workers = HeldWorkers()
    analyser = Analyser(workers)
    analyser.drop(running_until=math.inf)
    with pytest.raises(AnalysisDroppedError), analyser.memory.visit():
        await analyser.read(len, LARGE, url=url("late"), bodies=[LARGE])
    assert workers.started == []


def test_ordinary_pages_are_below_the_limit():
    assert cost_s(100_000, 3_000) < INLINE_S < cost_s(100_000, 8_000)
