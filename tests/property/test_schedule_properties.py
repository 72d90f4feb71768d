"""The schedule sends no request early and forgets no host; the page queue loses no page."""

import math
from operator import itemgetter

import numpy as np
import trio
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.request_rate import RequestRate
from crawld.core.revisit.names import NAMES
from crawld.core.revisit.policies import VisitObservation
from crawld.core.turn_order import Lane
from crawld.daemon.frontier.look_ahead import LOOK_AHEAD
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.revisit_queue import VisitedPages
from crawld.daemon.schedule.slots import RateGate
from tests.unit.daemon.fake_hosts import (
    FakeTurns,
    HostPlan,
    make_schedule,
    on_autojump_clock,
    places_of,
    stalled_addresses,
    stalled_gates,
)

ADDRESSES = ("192.0.2.1", "192.0.2.2", None)
TIMEOUT_S = 100_000.0
EVENTS = (
    *("wake", "wake all", "pause", "resume", "borrow", "give up", "more turns"),
    *("lane", "gates"),
)

seconds = st.sampled_from([0.0, 0.125, 0.5, 1.0, 1.0, 3.0, 10.0])
host_plans = st.builds(
    HostPlan,
    turns=st.integers(0, 4),
    delay_s=seconds,
    address=st.sampled_from(ADDRESSES),
    address_delay_s=seconds,
    fetch_s=st.sampled_from([0.125, 0.5, 3.0, 10.0]),
    arrival_s=st.sampled_from([None, 0.05, 0.5]),
    open_at=st.sampled_from([0.0, 0.0, 2.5, 5.0, 700.0]),
    locate_s=st.sampled_from([0.0, 0.0, 1.0, 20.0]),
    lane=st.sampled_from(Lane),
)
plans_by_host = st.dictionaries(st.sampled_from("abcdefgh"), host_plans, min_size=1)
event_lists = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.125, 0.5, 1.0, 7.0]),
        st.sampled_from(
            [
                "wake",
                "wake all",
                "pause",
                "resume",
                "borrow",
                "give up",
                "more turns",
                "lane",
                "gates",
            ]
        ),
        st.sampled_from("abcdefgh"),
    ),
    max_size=25,
)


async def apply_events(schedule, turns, events, borrowers, gates):
    """Call a running schedule as the rest of the daemon does; check its hosts after each call."""
    for after_s, event, name in events:
        await trio.sleep(after_s)
        host = name if name in turns.plans else next(iter(turns.plans))
        slot = schedule.host(host)
        match event:
            case "wake":
                schedule.wake(slot)
            case "wake all":
                await schedule.wake_all()
            case "pause":
                schedule.pause("operator")
            case "resume":
                schedule.resume("operator")
            case "more turns":
                turns.plans[host].turns += 1
                schedule.wake(slot)
            case "lane":
                turns.plans[host].lane = Lane((turns.plans[host].lane + 1) % len(Lane))
                schedule.wake(slot)
            case "gates":
                schedule.set_gates(slot, () if slot.gates else gates)
            case "borrow" | "give up":
                borrowers.start_soon(borrow, schedule, turns, slot, event == "give up")
        check_places(schedule)
    schedule.resume("operator")


async def borrow(schedule, turns, slot, gives_up):
    """Send a request in a borrowed turn; `gives_up` cancels the wait for it after 0.75 s."""
    with trio.move_on_after(0.75 if gives_up else TIMEOUT_S) as waiting:
        async with schedule.borrow(slot):
            waiting.deadline = math.inf
            await turns.send_request(slot)


def check_places(schedule):
    """Assert that each host is in exactly one place and every queue will be served."""
    for slot in schedule:
        assert len(places_of(schedule, slot)) == 1
    assert stalled_addresses(schedule) == []
    assert stalled_gates(schedule) == []


@given(
    plans=plans_by_host,
    events=event_lists,
    max_on_turn=st.sampled_from([1, 2, 100]),
    located=st.booleans(),
    rates=st.lists(st.sampled_from([0.02, 0.2, 4.0]), max_size=2),
    gated=st.sets(st.sampled_from("abcdefgh")),
)
@on_autojump_clock
async def test_no_request_is_early_and_every_host_is_served(
    plans, events, max_on_turn, located, rates, gated
):
    turns = FakeTurns(plans)
    schedule = make_schedule(turns, max_on_turn=max_on_turn, located=located)
    gates = tuple(
        RateGate(f"gate {rate}", RequestRate(rate, None), new_share=0.5) for rate in rates
    )
    for slot in schedule:
        # Some hosts have both gates, the others the wider one, as hosts of a limited site have.
        schedule.set_gates(slot, gates if slot.host in gated else gates[1:])
    with trio.fail_after(TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(schedule.run)
            async with trio.open_nursery() as borrowers:
                await apply_events(schedule, turns, events, borrowers, gates)
            while not turns.done:
                check_places(schedule)
                await trio.sleep(50.0)
            schedule.stop()
    assert turns.early_requests() == []
    assert turns.max_at_once <= max_on_turn
    assert all(places_of(schedule, slot) != ["on turn"] for slot in schedule)


# --- the page queue of a host ----------------------------------------------------------------

STEPS = (
    *("discover", "refill", "take", "visit many", "visited", "visit again", "failed", "put back"),
    *("leave out", "recorded", "reconsider", "new policy", "read", "switch"),
)
steps = st.lists(
    st.tuples(
        st.sampled_from(STEPS), st.integers(0, 6), st.sampled_from([-86_400.0, 0.0, 1.0, 4000.0])
    ),
    max_size=60,
)


class PageQueueModel:
    """Drives a page queue as the core loop does; a list takes the place of the file."""

    def __init__(self, policy, known, waiting):
        self.now = 1e9
        self.queue = PageQueue(1, 1, policy, discovery_share=0.5, min_revisit_s=100.0)
        self.visited_at = {n: self.now - 150.0 + 20.0 * n for n in range(known)}
        self.snapshot = None
        self.in_file = list(range(1000, 1000 + waiting))  # never visited, in breadth-first order
        self.all_pages = set(range(known)) | set(self.in_file)
        self.in_flight = []
        self.unrecorded = []
        self.left_out = set()
        self.queue.ahead.more = bool(waiting)
        self.queue.load_visited(self.read(), self.now)

    def discover(self, _):
        page = 5000 + len(self.all_pages)
        self.in_file.append(page)
        self.all_pages.add(page)
        self.queue.add_new([page])

    def refill(self, _=0):
        if self.queue.ahead.wants_refill:
            limit = LOOK_AHEAD + len(self.queue.ahead.held)
            self.queue.ahead.refill(self.in_file[:limit], asked=limit)

    def take(self, _):
        page = self.queue.take(self.now)
        if page is not None:
            assert page not in self.in_flight
            assert page not in self.left_out
            self.in_flight.append(page)

    def visit_many(self, _):
        for _ in range(100):
            self.refill()
            self.take(0)
            self.visited(0)

    def visited(self, index):
        if self.in_flight:
            page = self.in_flight.pop(index % len(self.in_flight))
            self.queue.visited(page, self.now, VisitObservation(changed=True))
            self.unrecorded.append((page, self.now))

    def visit_again(self, index):
        if self.in_flight:
            page = self.in_flight.pop(index % len(self.in_flight))
            self.queue.visit_again(page)
            self.unrecorded.append((page, self.now))

    def failed(self, index):
        if self.in_flight:
            page = self.in_flight.pop(index % len(self.in_flight))
            self.queue.retry(page, self.now + 60.0)
            self.unrecorded.append((page, None))

    def recorded(self, _):
        for page, visited_at in self.unrecorded:
            self.in_file = [each for each in self.in_file if each != page]
            self.queue.mark_recorded(page)
            self.visited_at.pop(page, None)
            if visited_at is not None:
                self.visited_at[page] = visited_at
        self.unrecorded.clear()

    def new_policy(self, index):
        self.queue.policy_name = NAMES[index % len(NAMES)]
        self.snapshot = None

    def read(self, _=0):
        """Read the visited pages from the file, the oldest visit first."""
        rows = sorted(self.visited_at.items(), key=itemgetter(1))
        pages, visited_at = zip(*rows, strict=True) if rows else ((), ())
        self.snapshot = VisitedPages(np.array(pages, np.int64), np.array(visited_at, np.float64))
        return self.snapshot

    def switch(self, _):
        if self.queue.switching and self.snapshot is not None:
            self.queue.switch(self.snapshot)

    def put_back(self, index):
        if self.in_flight:
            self.queue.put_back(self.in_flight.pop(index % len(self.in_flight)))

    def leave_out(self, index):
        if self.in_flight:
            page = self.in_flight.pop(index % len(self.in_flight))
            self.queue.leave_out(page)
            self.left_out.add(page)

    def reconsider(self, _):
        self.queue.reconsider()
        self.left_out.clear()

    def drain(self):
        """Take every page once all rests are over; return the pages."""
        self.now += 10 * 86_400.0
        taken = set()
        for _ in range(3 * len(self.all_pages) + 3):
            if self.queue.wanted_at(self.now) is None:
                return taken
            self.now = max(self.now, self.queue.wanted_at(self.now))  # a policy may let slots pass
            self.refill()
            page = self.queue.take(self.now)
            if page is not None:
                assert page not in taken
                taken.add(page)
                self.queue.drop(page)
                self.unrecorded.append((page, None))
                self.recorded(0)
        raise AssertionError("the queue wants turns and selects no page")


@given(
    policy=st.sampled_from(NAMES),
    steps=steps,
    known=st.integers(0, 6),
    waiting=st.sampled_from([0, 3, 256, 300, 700]),
)
def test_a_page_is_never_in_flight_twice_and_never_lost(policy, steps, known, waiting):
    model = PageQueueModel(policy, known, waiting)
    for step, index, after_s in steps:
        model.now += after_s
        getattr(model, step.replace(" ", "_"))(index)
    while model.in_flight:
        model.put_back(0)
    model.recorded(0)
    model.reconsider(0)
    assert model.drain() == model.all_pages
