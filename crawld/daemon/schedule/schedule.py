"""Host slots: when each host may be fetched next.

One heap and one timer task hold every host. A host costs a small object; a task exists only while
its turn lasts. The schedule knows times, hosts and addresses, but no pages, policies, robots or
SQL: the `Turns` it serves say what a turn does and when a host wants another.

A host is in exactly one state:

    parked     wants nothing: in no structure, until `wake`
    waiting    in the heap, until its own delay (back-off, quiet hours) is over
    locating   its delay is over but its address is unknown or old: it waits for its lookup, which
               is no turn
    queued     its delay is over but its address is busy: in the address's queue, first come first
    gated      its delay is over but a rate that it shares is used up (`rate_gate.py`)
    on turn    a task runs; one request at a time per host and per address

A turn can be lent (`borrow`): a robots.txt redirect is followed in the turn of the host it leads
to. A task that waits for such a turn has ended its own (`end_turn`) and holds nothing: example.org
and www.example.org mostly share an address and would deadlock.

Invariants, measured from outside by the end-to-end tests:
1. Two requests to a host are at least its delay apart, counted from when the server had the first
   one, so the gap it sees is never shorter. That is when the header of its response is complete;
   or before that, when its system is seen to have acknowledged every byte, .1 s after the end of
   sending at the earliest (`net/arrival.py`). A proxy acknowledges for itself: there, and where
   the system cannot tell, only the header counts; without a response, the end of the fetch.
2. The same holds for an address, with the address delay.
3. After a start every known host and address waits its full delay first, counted from the lock of
   the file, since a request of the killed process may not have been committed.
4. All times are those of trio's clock: a jump of the wall clock neither frees nor freezes a host.
   Wall-clock rules (quiet hours, Retry-After) are checked again at least every `HORIZON_S`.
5. Turns of hosts that share a rate begin evenly spaced (`core/request_rate.py`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from weakref import WeakSet

import trio

from crawld.daemon.pacing import LoopSlices, parts_of
from crawld.daemon.schedule.lateness import Lateness, ScheduleStatistics
from crawld.daemon.schedule.rate_gate import end_slots, leave_gates, pass_gates, take_slots
from crawld.daemon.schedule.recent_turns import RecentTurns
from crawld.daemon.schedule.slots import AddressSlot, HostSlot, RateGate, Ticket, Turn
from crawld.daemon.schedule.turns import Turns
from crawld.daemon.waiting import Events, wait_any
from crawld.net.lookup_slots import LookupSlots, QueuedLookup

HORIZON_S = 600.0
"""Longest wait in the heap; then the wall-clock rules are checked again."""

LOST_TURN_S = 10.0
"""How long other lookups wait for the turn of a host without an address; it may get none."""

SERVED_AT_ONCE = 128
"""Hosts that the timer serves before other tasks run: a page may wake thousands."""

START_SPREAD_S = 0.002
"""Gap between the first turns of two hosts after a start, so that 10,000 do not come at once."""

LOCATION_MAX_AGE_S = 300.0
"""How long a host's address is used without asking the resolver again."""

LOCATING_AT_ONCE = 64
"""Hosts whose lookup is under way or waits in the resolver, twice its slots; the others wait here,
where a host costs 300 bytes and not a task."""


class Schedule:
    """All host slots and the timer task that serves them.

    Attributes:
        changes: turns begun and hosts woken so far; while it stays the same, no host wants a turn
            earlier than it did.
        recent: the turns of the last hour.
    """

    def __init__(
        self, turns: Turns, *, max_on_turn: int, address_open_at: float = -math.inf
    ) -> None:
        """Make an empty schedule.

        Args:
            turns: callbacks that use the turns.
            max_on_turn: the most turns at a time.
            address_open_at: when (trio clock) a new address may have its first request: an earlier
                process may just have sent it one.
        """
        self.lateness = Lateness()
        self.recent = RecentTurns()
        self.changes = 0
        self._turns = turns
        self._max_on_turn = max_on_turn
        self._address_open_at = address_open_at
        self._hosts: dict[str, HostSlot] = {}
        self._addresses: dict[str, AddressSlot] = {}
        self._heap: list[tuple[float, int, int, HostSlot | AddressSlot | RateGate]] = []
        self._pushes = 0
        self._on_turn = 0
        self._locating: LookupSlots[QueuedLookup] = LookupSlots(LOCATING_AT_ONCE)
        self._lost: dict[HostSlot, trio.Event] = {}
        self._pauses: set[str] = set()
        self._turnless: WeakSet[trio.CancelScope] = WeakSet()
        self._stopping = False
        self._woken = trio.Event()
        self._idle = trio.Event()

    # --- for other modules ---------------------------------------------------------------------

    def host(self, host: str, *, first_wait_s: float = 0.0) -> HostSlot:
        """Return the slot of a host; create it if needed.

        Args:
            host: host name.
            first_wait_s: how long a new slot waits before its first turn.
        """
        slot = self._hosts.get(host)
        if slot is None:
            slot = HostSlot(host, trio.current_time() + first_wait_s)
            self._hosts[host] = slot
        return slot

    def __iter__(self) -> Iterator[HostSlot]:
        return iter(self._hosts.values())

    def wake(self, slot: HostSlot) -> None:
        """Check again when a host wants a turn: it has new pages, a ticket or other rules."""
        self.changes += 1
        if slot.turn is None:
            self._wait(slot)

    async def wake_all(self) -> None:
        """Check every host again, in slices: after a reload, a jump of the clock; not cancelled."""
        slices = LoopSlices()
        for part in parts_of(list(self._hosts.values())):
            for slot in part:
                self.wake(slot)
            await slices.pause()

    def set_gates(self, slot: HostSlot, gates: tuple[RateGate, ...]) -> None:
        """Replace the rates that a host shares with others, the narrowest first."""
        if gates == slot.gates:
            return
        waited = slot.gate is not None
        self._leave_gates(slot)
        slot.gates = gates
        if waited:
            self.wake(slot)

    @property
    def on_turn(self) -> int:
        """Turns under way."""
        return self._on_turn

    @property
    def pauses(self) -> frozenset[str]:
        """Reasons why no turn is started; empty while turns are served."""
        return frozenset(self._pauses)

    def pause(self, reason: str) -> None:
        """Start no turn until every reason is removed; turns under way continue."""
        self._pauses.add(reason)

    def resume(self, reason: str) -> None:
        """Remove one reason to pause."""
        self._pauses.discard(reason)
        self._woken.set()

    def stop(self) -> None:
        """Start no more turns; `run` returns when the last has ended."""
        self._stopping = True
        self._woken.set()
        for scope in self._turnless:
            scope.cancel()

    async def wait_idle(self) -> None:
        """Return when no turn is under way."""
        while self._on_turn:
            await self._idle.wait()

    def end_turn(self, slot: HostSlot, scope: trio.CancelScope) -> None:
        """End the running turn of a host, as `borrow` requires; its task continues without one.

        Args:
            slot: the host; the task sends it nothing more without another turn.
            scope: around the rest of the task; cancelled when the schedule stops.
        """
        self._turnless.add(scope)
        if self._stopping:
            scope.cancel()
        if slot.turn is not None:
            self._end(slot, slot.turn)

    @asynccontextmanager
    async def borrow(
        self, slot: HostSlot, *, first: bool = False, patience_s: float = 0.0, unless: Events = ()
    ) -> AsyncIterator[bool]:
        """Hold the host's next turn for one request; yield whether it is held.

        The caller calls `slot.rest_from` when its request is answered, as a turn does, and holds no
        other turn. Once the schedule is stopped, this waits until it is cancelled.

        Args:
            first: whether it comes before all other requests that wait for a turn.
            patience_s: how long urgent pages of the host come first.
            unless: events that end the wait for the turn, which is then not held.
        """
        ticket = Ticket(patience_s, first=first)
        slot.tickets.insert(0 if first else len(slot.tickets), ticket)
        self.wake(slot)
        try:
            await wait_any(ticket.granted, *unless)
            if not ticket.granted.is_set():
                slot.tickets.remove(ticket)
                self.wake(slot)
            yield ticket.granted.is_set()
        finally:
            ticket.done.set()

    def hold_addresses(self, until: float) -> None:
        """Let every address wait until a time (trio clock) before its first request."""
        self._address_open_at = max(self._address_open_at, until)

    def statistics(self) -> ScheduleStatistics:
        """Return counts and lateness."""
        return ScheduleStatistics(
            hosts=len(self._hosts),
            waiting=len(self._heap),
            on_turn=self._on_turn,
            lateness_p50_ms=self.lateness.quantile_ms(0.5),
            lateness_p99_ms=self.lateness.quantile_ms(0.99),
            served=self.lateness.count,
        )

    # --- the timer -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Serve turns until stopped; returns when the last turn has ended."""
        async with trio.open_nursery() as lookups:
            async with trio.open_nursery() as nursery:
                while not self._stopping:
                    self._woken = trio.Event()
                    self._start_due(nursery)
                    if not self._pauses:
                        for lookup in self._locating.take():
                            lookups.start_soon(
                                self._locate, lookup, name=f"look-up of {lookup.host}"
                            )
                    with trio.move_on_at(self._next_at()):
                        await self._woken.wait()
            lookups.cancel_scope.cancel()

    @property
    def _has_room(self) -> bool:
        """Whether one more turn may be under way."""
        return self._on_turn < self._max_on_turn

    def _next_at(self) -> float:
        if self._pauses or not self._has_room or not self._heap:
            return math.inf
        return self._heap[0][0]

    def _start_due(self, nursery: trio.Nursery) -> None:
        now = trio.current_time()
        heap = self._heap
        for _ in range(SERVED_AT_ONCE):
            if not heap or heap[0][0] > now or not self._has_room:
                return
            if self._pauses or self._stopping:
                return
            at, _, serial, slot = heapq.heappop(heap)
            if serial != slot.serial:
                continue  # replaced by a newer entry of the same slot
            slot.entry_at = math.inf
            if isinstance(slot, HostSlot):
                self._serve(slot, at, nursery)
            elif isinstance(slot, AddressSlot):
                self._serve_queue(slot, at, nursery)
            else:
                self._serve_gate(slot, at, nursery)

    def _serve(self, slot: HostSlot, at: float, nursery: trio.Nursery) -> None:
        """The host's delay is over: find its address, start its turn, or queue at the address."""
        wanted_at = self._wanted_at(slot)
        if wanted_at is None or wanted_at > trio.current_time():
            self._wait(slot)
            return
        slot.planned_at = at
        if self._reaches(slot) and self._passes(slot):
            self._start(slot, nursery)

    def _reaches(self, slot: HostSlot) -> bool:
        """Whether the address of a host is known and free; else the host waits for it."""
        if trio.current_time() - slot.located_at > LOCATION_MAX_AGE_S:
            slot.locating = True
            self._locating.add(QueuedLookup(slot.host, known=slot.address is not None))
            if slot.address is None:  # it may take long, or fail
                self._leave_gates(slot, returns=True)
            return False
        address = self._address_of(slot)
        if address is None or (not address.queue and self._free(address)):
            return True
        slot.queued = True
        address.queue.append(slot)
        if not address.busy:
            self._push(address, address.next_at)
        self._leave_gates(slot, returns=True)
        return False

    def _passes(self, slot: HostSlot) -> bool:
        """Whether no shared rate holds a host up; else the host waits for it."""
        if not slot.gates:
            return True
        gate = pass_gates(slot, self._turns.lane(slot), trio.current_time())
        self._push_gates(slot.gates)
        return gate is None

    def _serve_gate(self, gate: RateGate, at: float, nursery: trio.Nursery) -> None:
        """A slot of a shared rate is free: let the first host that still wants it pass."""
        for _ in range(SERVED_AT_ONCE):
            if not gate.waits or gate.next_at > trio.current_time() or not self._has_room:
                break
            slot = gate.order.pop()
            if slot is None:
                return
            slot.gate, gate.holder = None, slot
            wanted_at = self._wanted_at(slot)
            if wanted_at is None or wanted_at > trio.current_time():
                self._wait(slot)
                continue
            slot.planned_at = max(at, slot.planned_at)
            if self._passes(slot) and self._reaches(slot):
                self._start(slot, nursery)
        self._push_gates((gate,))

    def _leave_gates(self, slot: HostSlot, *, returns: bool = False) -> None:
        """Let others pass the gates of a host that has no turn now."""
        if slot.gates:
            self._push_gates(leave_gates(slot, returns=returns))

    def _push_gates(self, gates: Iterable[RateGate]) -> None:
        """Serve gates again when the hosts that wait there may pass."""
        for gate in gates:
            if gate.waits:
                self._push(gate, gate.next_at)

    def _serve_queue(self, address: AddressSlot, at: float, nursery: trio.Nursery) -> None:
        """The address is free: start the turn of the first queued host that still wants one."""
        while address.queue and self._free(address):
            slot = address.queue.popleft()
            slot.queued = False
            wanted_at = self._wanted_at(slot)
            if wanted_at is None or wanted_at > trio.current_time():
                self._wait(slot)
                continue
            slot.planned_at = max(at, slot.planned_at)
            if self._passes(slot):
                self._start(slot, nursery)

    def _free(self, address: AddressSlot) -> bool:
        return not address.busy and address.next_at <= trio.current_time()

    def _start(self, slot: HostSlot, nursery: trio.Nursery) -> None:
        nursery.start_soon(self._take_turn, slot, self._begin(slot), name=f"turn of {slot.host}")

    def _begin(self, slot: HostSlot) -> Turn:
        self.changes += 1
        address = self._address_of(slot)
        slot.turn = turn = Turn(address, trio.current_time())
        slot.serial += 1
        slot.entry_at = math.inf
        self._on_turn += 1
        if address is not None:
            address.busy = True
        if slot.gates:
            turn.taken = take_slots(slot, turn.began_at)
            self._push_gates(slot.gates)
        return turn

    async def _locate(self, lookup: QueuedLookup) -> None:
        """Find a host's address; a host without one gets its next turn nevertheless."""
        slot = self._hosts[lookup.host]
        try:
            slot.address = await self._turns.locate(slot)
            slot.located_at = trio.current_time()
            slot.locating = False
            self._wait(slot)
            if slot.address is None:
                # Thousands of failed lookups must not take all turns: the next lookups wait.
                turn_ended = self._lost[slot] = trio.Event()
                with trio.move_on_after(LOST_TURN_S):
                    await turn_ended.wait()
        finally:
            self._lost.pop(slot, None)
            self._locating.end(lookup)
            self._woken.set()

    async def _take_turn(self, slot: HostSlot, turn: Turn) -> None:
        try:
            if await self._turns.has_moved(slot):
                return  # its turn comes at its new address
            if turn.taken:
                await self._turns.slots_taken(slot)
            ticket = self._next_ticket(slot)
            if ticket is not None:
                slot.tickets.remove(ticket)
                ticket.granted.set()
                await ticket.done.wait()
            else:
                await self._turns.turn(slot)
        finally:
            self._end(slot, turn)

    def _end(self, slot: HostSlot, turn: Turn) -> None:
        if slot.turn is not turn:
            return  # `end_turn` ended it before its task
        if turn.counts_from is not None:
            self.recent.add(slot.host, turn.began_at, trio.current_time())
        if turn.address is not None:
            self._release(turn.address, slot, turn.counts_from)
        if slot.address is None:
            slot.located_at = -math.inf  # looked up again before its next turn
            if slot in self._lost:
                self._lost[slot].set()
        if turn.taken:
            end_slots(turn)
            self._push_gates(gate for gate, _ in turn.taken)
        slot.turn = None
        self._on_turn -= 1
        self._wait(slot)
        self._turns.turn_ended(slot)
        if self._on_turn == self._max_on_turn - 1:
            self._woken.set()
        if not self._on_turn:
            self._idle.set()
            self._idle = trio.Event()

    def _release(self, address: AddressSlot, slot: HostSlot, counts_from: float | None) -> None:
        address.busy = False
        if counts_from is not None:
            address.next_at = counts_from + self._turns.address_delay_s(slot)
        if address.queue:
            self._push(address, address.next_at)

    # --- the heap ------------------------------------------------------------------------------

    def _next_ticket(self, slot: HostSlot) -> Ticket | None:
        """Return the ticket whose turn comes next; None: a page comes before all of them."""
        if not slot.tickets or not self._turns.is_urgent(slot):
            return slot.tickets[0] if slot.tickets else None
        now = trio.current_time()
        return next((each for each in slot.tickets if each.patient_until <= now), None)

    def _wanted_at(self, slot: HostSlot) -> float | None:
        if self._next_ticket(slot) is not None:
            return self._turns.ticket_at(slot)
        return self._turns.wanted_at(slot)

    def _wait(self, slot: HostSlot) -> None:
        """Put the host into the heap, or nowhere if it wants nothing."""
        if slot.queued or slot.locating:
            return  # checked again when its address serves the queue, or is found
        if slot.gate is not None:
            self._reconsider(slot, slot.gate)
            return
        wanted_at = self._wanted_at(slot)
        now = trio.current_time()
        if wanted_at is None or wanted_at > now:
            self._leave_gates(slot)
        if wanted_at is None:
            return
        at = max(wanted_at, slot.next_at, now)
        self._push(slot, min(at, now + HORIZON_S))

    def _reconsider(self, slot: HostSlot, gate: RateGate) -> None:
        """Let a host that waits at a gate wait for what it wants now; its work may be urgent."""
        lane = self._turns.lane(slot)
        gate.order.put(slot, lane)
        gate.give_way(lane)
        self._push_gates((gate,))

    def _push(self, slot: HostSlot | AddressSlot | RateGate, at: float) -> None:
        if slot.entry_at <= at:
            return  # due no later already, and checked again then
        slot.entry_at = at
        slot.serial += 1
        self._pushes += 1
        if not self._heap or at < self._heap[0][0]:
            self._woken.set()
        heapq.heappush(self._heap, (at, self._pushes, slot.serial, slot))

    def _address_of(self, slot: HostSlot) -> AddressSlot | None:
        if slot.address and slot.address not in self._addresses:
            self._addresses[slot.address] = AddressSlot(self._address_open_at)
        return self._addresses[slot.address] if slot.address else None
