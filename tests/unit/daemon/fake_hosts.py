"""What the schedule serves in its tests: hosts with their pages, and a witness of spacing."""

import functools
from dataclasses import dataclass, field

import trio
from trio.testing import MockClock

from crawld.daemon.schedule.schedule import Schedule


def on_autojump_clock(test):
    """Run a test on a clock that stands still and jumps to the next instant anybody waits for."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        clock = MockClock(autojump_threshold=0)
        trio.run(functools.partial(test, *args, **kwargs), clock=clock)

    return run


@dataclass
class HostPlan:
    """How one host behaves.

    Attributes:
        turns: turns it still wants.
        delay_s: rest after an answer.
        address: where it is; None: it is not found.
        address_delay_s: rest of the address after an answer of this host.
        fetch_s: how long each of its answers takes.
        open_at: instant before which it may not be asked.
        locate_s: how long it takes to find its address.
    """

    turns: int = 1
    delay_s: float = 10.0
    address: str | None = "192.0.2.1"
    address_delay_s: float = 1.0
    fetch_s: float = 0.25
    open_at: float = 0.0
    locate_s: float = 0.0


@dataclass(frozen=True)
class SentRequest:
    """One request: who was asked when, and when the answer came."""

    host: str
    address: str | None
    sent_at: float
    response_at: float
    delay_s: float
    address_delay_s: float


@dataclass
class FakeTurns:
    """The core loop of the tests; serves `Schedule` as its `Turns`."""

    plans: dict[str, HostPlan]
    requests: list[SentRequest] = field(default_factory=list)
    located: list[str] = field(default_factory=list)
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

    def address_delay_s(self, slot):
        return self.plans[slot.host].address_delay_s

    def ended(self, slot):
        pass

    async def turn(self, slot):
        await self.send_request(slot)
        self.plans[slot.host].turns -= 1

    async def send_request(self, slot):
        """Send one request to a host in its turn, and let it rest from the answer on."""
        plan, sent_at = self.plans[slot.host], trio.current_time()
        self._under_way += 1
        self.max_at_once = max(self.max_at_once, self._under_way)
        await trio.sleep(plan.fetch_s)
        self._under_way -= 1
        now = trio.current_time()
        self.requests.append(
            SentRequest(slot.host, slot.address, sent_at, now, plan.delay_s, plan.address_delay_s)
        )
        slot.next_at = now + plan.delay_s

    @property
    def done(self):
        return not any(plan.turns for plan in self.plans.values())

    async def wait_done(self):
        """Return when no host wants a turn any more."""
        while not self.done:  # noqa: ASYNC110 (the clock jumps)
            await trio.sleep(0.5)

    def request_order(self):
        """Return who was asked, in order."""
        return [each.host for each in sorted(self.requests, key=lambda each: each.sent_at)]

    def early_requests(self):
        """Return every request that came before the rest of its host or its address was over."""
        found = []
        rests = {}
        for each in sorted(self.requests, key=lambda each: each.sent_at):
            keys = [("host", each.host), ("address", each.address)][: 2 if each.address else 1]
            for key in keys:
                if each.sent_at < rests.get(key, 0.0) - 1e-9:
                    found.append((key, each.sent_at, rests[key]))
            rests[keys[0]] = each.response_at + each.delay_s
            if each.address:
                rests[keys[1]] = each.response_at + each.address_delay_s
        return found


def make_schedule(turns, *, max_on_turn=100, located=False, **more):
    """Return a schedule that knows the hosts of a plan and has been told that they want turns."""
    schedule = Schedule(turns, max_on_turn=max_on_turn, **more)
    for host, plan in turns.plans.items():
        slot = schedule.host(host)
        if located:
            slot.address, slot.located_at = plan.address, trio.current_time()
        schedule.wake(slot)
    return schedule


def places_of(schedule, slot):
    """Return in which of its places a host stands: one of them, or it is parked."""
    entries = [entry for entry in schedule._heap if entry[3] is slot and entry[2] == slot.serial]
    queues = [each for each in schedule._addresses.values() if slot in each.queue]
    assert len(entries) <= 1
    assert sum(each.queue.count(slot) for each in queues) == slot.queued
    places = {"waiting": bool(entries), "queued": slot.queued, "on turn": slot.turn is not None}
    return [name for name, there in places.items() if there] or ["parked"]


def stalled_addresses(schedule):
    """Return the addresses at which hosts queue and which nothing will serve."""
    held = {id(entry[3]) for entry in schedule._heap if entry[2] == entry[3].serial}
    return [
        name
        for name, each in schedule._addresses.items()
        if each.queue and not each.busy and id(each) not in held
    ]
