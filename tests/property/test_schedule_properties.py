"""Whatever hosts, delays, wakes, pauses and lent turns: nobody is asked early or forgotten."""

import math
from operator import itemgetter

import numpy as np
import trio
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.revisit.names import NAMES
from crawld.core.revisit.policies import VisitObservation
from crawld.daemon.frontier.page_queue import LOOK_AHEAD, PageQueue, VisitedPages
from tests.unit.daemon.fake_hosts import (
    FakeTurns,
    HostPlan,
    make_schedule,
    on_autojump_clock,
    places_of,
    stalled_addresses,
)

ADDRESSES = ("192.0.2.1", "192.0.2.2", None)
TIMEOUT_S = 100_000.0

seconds = st.sampled_from([0.0, 0.125, 0.5, 1.0, 1.0, 3.0, 10.0])
plans = st.builds(
    HostPlan,
    turns=st.integers(0, 4),
    delay_s=seconds,
    address=st.sampled_from(ADDRESSES),
    address_delay_s=seconds,
    fetch_s=st.sampled_from([0.125, 0.5, 3.0, 10.0]),
    open_at=st.sampled_from([0.0, 0.0, 2.5, 5.0, 700.0]),
    locate_s=st.sampled_from([0.0, 0.0, 1.0, 20.0]),
)
worlds = st.dictionaries(st.sampled_from("abcdefgh"), plans, min_size=1)
events = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.125, 0.5, 1.0, 7.0]),
        st.sampled_from(["wake", "wake all", "pause", "resume", "borrow", "give up", "more"]),
        st.sampled_from("abcdefgh"),
    ),
    max_size=25,
)


async def disturb(schedule, turns, happenings, borrowers):
    """Do to a running schedule what the rest of the daemon does, and look at its hosts."""
    for after_s, what, name in happenings:
        await trio.sleep(after_s)
        host = name if name in turns.plans else next(iter(turns.plans))
        slot = schedule.host(host)
        match what:
            case "wake":
                schedule.wake(slot)
            case "wake all":
                schedule.wake_all()
            case "pause":
                schedule.pause("operator")
            case "resume":
                schedule.resume("operator")
            case "more":
                turns.plans[host].turns += 1
                schedule.wake(slot)
            case "borrow" | "give up":
                borrowers.start_soon(borrow, schedule, turns, slot, what == "give up")
        look(schedule)
    schedule.resume("operator")


async def borrow(schedule, turns, slot, impatient):
    with trio.move_on_after(0.75 if impatient else TIMEOUT_S) as waiting:
        async with schedule.borrow(slot):
            waiting.deadline = math.inf
            await turns.send_request(slot)


def look(schedule):
    """Assert that each host is in exactly one place and that every queue will be served."""
    for slot in schedule:
        assert len(places_of(schedule, slot)) == 1
    assert stalled_addresses(schedule) == []


@given(
    worlds=worlds,
    happenings=events,
    max_on_turn=st.sampled_from([1, 2, 100]),
    located=st.booleans(),
)
@on_autojump_clock
async def test_nobody_is_asked_early_and_nobody_is_forgotten(
    worlds, happenings, max_on_turn, located
):
    turns = FakeTurns(worlds)
    schedule = make_schedule(turns, max_on_turn=max_on_turn, located=located)
    with trio.fail_after(TIMEOUT_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(schedule.run)
            async with trio.open_nursery() as borrowers:
                await disturb(schedule, turns, happenings, borrowers)
            while not turns.done:
                look(schedule)
                await trio.sleep(50.0)
            schedule.stop()
    assert turns.early_requests() == []
    assert turns.max_at_once <= max_on_turn
    assert all(places_of(schedule, slot) != ["on turn"] for slot in schedule)


# --- the pages of one host -------------------------------------------------------------------

STEPS = (
    *("discover", "refill", "take", "many", "visited", "again", "failed", "returned", "left out"),
    *("recorded", "reconsider", "rename", "read", "switch"),
)
steps = st.lists(
    st.tuples(
        st.sampled_from(STEPS), st.integers(0, 6), st.sampled_from([-86_400.0, 0.0, 1.0, 4000.0])
    ),
    max_size=60,
)


class Crawling:
    """Drives the pages of a host as the core loop does; the file is a plain list."""

    def __init__(self, policy, known, waiting):
        self.now = 1e9
        self.pages = PageQueue(1, 1, policy, discovery_share=0.5, min_revisit_s=100.0)
        self.visited_at = {n: self.now - 150.0 + 20.0 * n for n in range(known)}
        self.snapshot = None
        self.in_file = list(range(1000, 1000 + waiting))  # never visited, in breadth-first order
        self.everything = set(range(known)) | set(self.in_file)
        self.in_flight = []
        self.unrecorded = []
        self.out = set()
        self.pages.more = bool(waiting)
        self.pages.load_visited(self.read(), self.now)

    def discover(self, _):
        page = 5000 + len(self.everything)
        self.in_file.append(page)
        self.everything.add(page)
        self.pages.add_new([page])

    def refill(self, _=0):
        if self.pages.wants_refill:
            asked = LOOK_AHEAD + len(self.pages.held)
            self.pages.refill(self.in_file[:asked], asked=asked)

    def take(self, _):
        page = self.pages.take(self.now)
        if page is not None:
            assert page not in self.in_flight
            assert page not in self.out
            self.in_flight.append(page)

    def many(self, _):
        for _ in range(100):
            self.refill()
            self.take(0)
            self.visited(0)

    def visited(self, which):
        if self.in_flight:
            page = self.in_flight.pop(which % len(self.in_flight))
            self.pages.visited(page, self.now, VisitObservation(changed=True))
            self.unrecorded.append((page, self.now))

    def again(self, which):
        if self.in_flight:
            page = self.in_flight.pop(which % len(self.in_flight))
            self.pages.visit_again(page)
            self.unrecorded.append((page, self.now))

    def failed(self, which):
        if self.in_flight:
            page = self.in_flight.pop(which % len(self.in_flight))
            self.pages.retry(page, self.now + 60.0)
            self.unrecorded.append((page, None))

    def recorded(self, _):
        for page, visited_at in self.unrecorded:
            self.in_file = [each for each in self.in_file if each != page]
            self.pages.mark_recorded(page)
            self.visited_at.pop(page, None)
            if visited_at is not None:
                self.visited_at[page] = visited_at
        self.unrecorded.clear()

    def rename(self, which):
        self.pages.policy_name = NAMES[which % len(NAMES)]
        self.snapshot = None

    def read(self, _=0):
        """Read the visited pages from the file, the oldest visit first."""
        rows = sorted(self.visited_at.items(), key=itemgetter(1))
        pages, instants = zip(*rows, strict=True) if rows else ((), ())
        self.snapshot = VisitedPages(np.array(pages, np.int64), np.array(instants, np.float64))
        return self.snapshot

    def switch(self, _):
        if self.pages.switching and self.snapshot is not None:
            self.pages.switch(self.snapshot)

    def returned(self, which):
        if self.in_flight:
            self.pages.put_back(self.in_flight.pop(which % len(self.in_flight)))

    def left_out(self, which):
        if self.in_flight:
            page = self.in_flight.pop(which % len(self.in_flight))
            self.pages.leave_out(page)
            self.out.add(page)

    def reconsider(self, _):
        self.pages.reconsider()
        self.out.clear()

    def drained(self):
        """Return every page that comes out once all rests are over."""
        self.now += 10 * 86_400.0
        found = set()
        for _ in range(3 * len(self.everything) + 3):
            if self.pages.wanted_at(self.now) is None:
                return found
            self.now = max(self.now, self.pages.wanted_at(self.now))  # a policy may let slots pass
            self.refill()
            page = self.pages.take(self.now)
            if page is not None:
                assert page not in found
                found.add(page)
                self.pages.drop(page)
                self.unrecorded.append((page, None))
                self.recorded(0)
        raise AssertionError("it wants turns and names no page")


@given(
    policy=st.sampled_from(NAMES),
    steps=steps,
    known=st.integers(0, 6),
    waiting=st.sampled_from([0, 3, 256, 300, 700]),
)
def test_a_page_is_never_in_flight_twice_and_never_lost(policy, steps, known, waiting):
    crawling = Crawling(policy, known, waiting)
    for what, which, after_s in steps:
        crawling.now += after_s
        getattr(crawling, what.replace(" ", "_"))(which)
    while crawling.in_flight:
        crawling.returned(0)
    crawling.recorded(0)
    crawling.reconsider(0)
    assert crawling.drained() == crawling.everything
