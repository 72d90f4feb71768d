"""Fake hosts for tests of the schedule: their turns, and a record of every request."""

import functools
from dataclasses import dataclass, field

import trio
from trio.testing import MockClock

from crawld.core.turn_order import Lane
from crawld.daemon.crawl.shared_rates import LEAST_TURN_S
from crawld.daemon.schedule.schedule import Schedule


def on_autojump_clock(test):
    """Run a test on a mock clock that jumps to the next wake-up time when every task waits."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        clock = MockClock(autojump_threshold=0)
        trio.run(functools.partial(test, *args, **kwargs), clock=clock)

    return run


@dataclass
class HostPlan:
    """How one host behaves.

    Attributes:
        turns: number of turns it still wants.
        delay_s: delay after a response.
        address: its IP address; None: the host is not found.
        address_delay_s: delay of the address after a response of this host.
        fetch_s: duration of each request.
        arrival_s: after how long the server has it; None: when it ends.
        open_at: time before which it gets no turn (trio clock).
        locate_s: duration of the address lookup.
        lane: what it waits for at a shared rate.
    """

    turns: int = 1
    delay_s: float = 10.0
    address: str | None = "192.0.2.1"
    address_delay_s: float = 1.0
    fetch_s: float = 0.25
    arrival_s: float | None = None
    open_at: float = 0.0
    locate_s: float = 0.0
    lane: Lane = Lane.REVISIT


@dataclass(frozen=True)
class SentRequest:
    """One request, with the delays that hold after it."""

    host: str
    address: str | None
    sent_at: float
    arrived_at: float
    response_at: float
    delay_s: float
    address_delay_s: float


@dataclass
class FakeTurns:
    """Implements the schedule's `Turns`: each turn sends one request to its host."""

    plans: dict[str, HostPlan]
    requests: list[SentRequest] = field(default_factory=list)
    located: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    max_at_once: int = 0
    _under_way: int = 0

    async def locate(self, slot):
        self.located.append(slot.host)
        plan = self.plans[slot.host]
        await trio.sleep(plan.locate_s)
        return plan.address

    def wanted_at(self, slot):
        plan = self.plans[slot.host]
        return max(slot.next_at, plan.open_at) if plan.turns else None

    def ticket_at(self, slot):
        return max(slot.next_at, self.plans[slot.host].open_at)

    def is_urgent(self, slot):
        return False

    def address_delay_s(self, slot):
        return self.plans[slot.host].address_delay_s

    def turn_ended(self, slot):
        pass

    def lane(self, slot):
        return self.plans[slot.host].lane

    async def slots_taken(self, slot):
        self.stored.append(slot.host)

    async def has_moved(self, slot):
        now = self.plans[slot.host].address
        if None in (slot.address, now) or slot.address == now:
            return False
        slot.address = now
        return True

    async def turn(self, slot):
        await self.send_request(slot)
        self.plans[slot.host].turns -= 1

    async def send_request(self, slot):
        """Send one request to a host in its turn; its delay starts when the server has it."""
        plan, sent_at = self.plans[slot.host], trio.current_time()
        self._under_way += 1
        self.max_at_once = max(self.max_at_once, self._under_way)
        await trio.sleep(plan.fetch_s)
        self._under_way -= 1
        now = trio.current_time()
        arrived_at = now if plan.arrival_s is None else min(now, sent_at + plan.arrival_s)
        times = (sent_at, arrived_at, now)
        self.requests.append(
            SentRequest(slot.host, slot.address, *times, plan.delay_s, plan.address_delay_s)
        )
        slot.rest_from(arrived_at, plan.delay_s)

    @property
    def done(self):
        return not any(plan.turns for plan in self.plans.values())

    async def wait_done(self):
        """Return when no host wants another turn."""
        while not self.done:  # noqa: ASYNC110 (the clock jumps)
            await trio.sleep(0.5)

    def request_order(self):
        """Return the host of each request, in the order sent."""
        return [each.host for each in sorted(self.requests, key=lambda each: each.sent_at)]

    def early_requests(self):
        """Return the requests sent before the delay of their host or address was over."""
        found = []
        next_at = {}
        for each in sorted(self.requests, key=lambda each: each.sent_at):
            keys = [("host", each.host), ("address", each.address)][: 2 if each.address else 1]
            for key in keys:
                if each.sent_at < next_at.get(key, 0.0) - 1e-9:
                    found.append((key, each.sent_at, next_at[key]))
            next_at[keys[0]] = max(each.response_at, each.arrived_at + each.delay_s)
            if each.address:
                next_at[keys[1]] = max(each.response_at, each.arrived_at + each.address_delay_s)
        return found


class NoSharedRates:
    """Implements what is asked of `SharedRates`, without limits."""

    def turn_every_s(self, host):
        return host.delay_s()

    def usual_turn_every_s(self, host):
        return max(host.base_delay_s(), LEAST_TURN_S)

    def spacing_s(self, slot):
        return 0.0


def make_schedule(turns, *, max_on_turn=100, located=False, **more):
    """Return a schedule in which every host of `turns.plans` wants its turns.

    Args:
        located: whether the addresses of the hosts are known already.
    """
    schedule = Schedule(turns, max_on_turn=max_on_turn, **more)
    for host, plan in turns.plans.items():
        slot = schedule.host(host)
        if located:
            slot.address, slot.located_at = plan.address, trio.current_time()
        schedule.wake(slot)
    return schedule


def places_of(schedule, slot):
    """Return the places (waiting, queued, on turn, parked) that hold a host."""
    entries = [entry for entry in schedule._heap if entry[3] is slot and entry[2] == slot.serial]
    queues = [each for each in schedule._addresses.values() if slot in each.queue]
    assert len(entries) <= 1
    assert sum(each.queue.count(slot) for each in queues) == slot.queued
    places = {
        "waiting": bool(entries),
        "queued": slot.queued,
        "gated": slot.gate is not None,
        "on turn": slot.turn is not None,
    }
    return [name for name, found in places.items() if found] or ["parked"]


def stalled_gates(schedule):
    """Return the gates that hosts may pass, or will be able to, and that will never be served."""
    in_heap = {id(entry[3]) for entry in schedule._heap if entry[2] == entry[3].serial}
    gates = {id(gate): gate for slot in schedule for gate in slot.gates}
    return [gate.name for key, gate in gates.items() if gate.waits and key not in in_heap]


def stalled_addresses(schedule):
    """Return the addresses whose queue will never be served."""
    in_heap = {id(entry[3]) for entry in schedule._heap if entry[2] == entry[3].serial}
    return [
        name
        for name, each in schedule._addresses.items()
        if each.queue and not each.busy and id(each) not in in_heap
    ]
