"""Slots of hosts, addresses and shared rates: their next permitted time, and who holds them.

There may be ten thousand hosts and more, so each costs one small object. `schedule.py` moves them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import trio

from crawld.core.request_rate import RequestRate, TakenSlot
from crawld.core.turn_order import Lane, TurnOrder


class AddressSlot:
    """One IP address: the hosts behind it share a delay."""

    __slots__ = ("busy", "entry_at", "next_at", "queue", "serial")

    def __init__(self, next_at: float) -> None:
        self.next_at = next_at
        self.busy = False
        self.queue: deque[HostSlot] = deque()
        self.serial = 0
        self.entry_at = math.inf


class Ticket:
    """A turn lent to a request that is not for a page: a robots.txt redirect, a poll.

    Attributes:
        patient_until: until when (trio clock) urgent pages come first.
        patient: whether it comes after all that is urgent, elsewhere too.
    """

    __slots__ = ("done", "granted", "patient", "patient_until")

    def __init__(self, patience_s: float, *, first: bool = False) -> None:
        """Create a ticket; `first`: it comes before others, though not before urgent pages."""
        self.granted = trio.Event()
        self.done = trio.Event()
        self.patient = patience_s > 0.0 and not first
        self.patient_until = trio.current_time() + patience_s


class Turn:
    """A turn under way.

    Attributes:
        address: the address it keeps busy; None: unknown.
        began_at: when it began (trio clock).
        counts_from: from when (trio clock) the delay after its last request counts; None: it sent
            none.
        taken: the slots of gates that it uses.
    """

    __slots__ = ("address", "began_at", "counts_from", "taken")

    def __init__(self, address: AddressSlot | None, began_at: float) -> None:
        self.began_at = began_at
        self.address = address
        self.counts_from: float | None = None
        self.taken: Sequence[tuple[RateGate, TakenSlot]] = ()


class HostSlot:
    """One host name and its next permitted time.

    Attributes:
        next_at: earliest time of its next request (trio clock).
        planned_at: when the running turn was due.
        address: its last known IP address, None if unknown.
        locating: whether its address is being looked up, or waits to be.
        tickets: borrowed turns, served before pages unless these are urgent.
        turn: the turn under way, None if there is none.
        gates: rates that it shares with other hosts, the narrowest first.
        gate: the gate where it waits, None if it waits at none.
        share: its part of a shared rate for revisits, relative to the mean of all hosts.
    """

    __slots__ = (
        "address",
        "entry_at",
        "gate",
        "gates",
        "host",
        "located_at",
        "locating",
        "next_at",
        "planned_at",
        "queued",
        "serial",
        "share",
        "tickets",
        "turn",
    )

    def __init__(self, host: str, next_at: float) -> None:
        self.host = host
        self.next_at = next_at
        self.planned_at = next_at
        self.address: str | None = None
        self.located_at = -math.inf
        self.locating = False
        self.turn: Turn | None = None
        self.queued = False
        self.serial = 0
        self.entry_at = math.inf
        self.gates: tuple[RateGate, ...] = ()
        self.gate: RateGate | None = None
        self.share = 1.0
        self.tickets: list[Ticket] = []  # rarely more than one: a deque costs 600 bytes a host

    @property
    def is_waiting(self) -> bool:
        """Whether it wants a turn, or has one, and no other hosts of its address come first."""
        return (
            self.entry_at < math.inf
            or self.locating
            or self.gate is not None
            or self.turn is not None
        )

    def rest_from(self, from_time: float, delay_s: float) -> None:
        """Start the delay of the host, and of the address of its turn, at a time of trio's clock.

        A delay that is under way is not shortened.
        """
        self.next_at = max(self.next_at, from_time + delay_s)
        if self.turn is not None:
            self.turn.counts_from = max(from_time, self.turn.counts_from or from_time)


class RateGate:
    """A shared rate, and the hosts that wait for it.

    Attributes:
        name: what it limits, as the config names it.
        rate: when the next request may begin (trio clock).
        order: the hosts that wait here.
        holder: the host that has passed, and whose turn has not begun; None: no host.
    """

    __slots__ = ("entry_at", "holder", "name", "order", "rate", "serial")

    def __init__(self, name: str, rate: RequestRate, *, new_share: float) -> None:
        self.name = name
        self.rate = rate
        self.order: TurnOrder[HostSlot] = TurnOrder(new_share)
        self.holder: HostSlot | None = None
        self.serial = 0
        self.entry_at = math.inf

    @property
    def next_at(self) -> float:
        """When (trio clock) the next host may pass; ∞ while one holds it."""
        return math.inf if self.holder is not None else self.rate.next_at

    @property
    def waits(self) -> bool:
        """Whether hosts wait that may pass at `next_at`."""
        return len(self.order) > 0 and self.holder is None

    def let_wait(self, slot: HostSlot, lane: Lane) -> None:
        """Let a host wait here."""
        self.order.put(slot, lane)
        slot.gate = self

    def give_way(self, lane: Lane) -> None:
        """Let the holder wait here again if it waits elsewhere for less urgent work."""
        holder = self.holder
        if holder is None or holder.gate is None:
            return
        own_lane = holder.gate.order.lane_of(holder)
        if own_lane is not None and lane < own_lane:
            holder.gate.order.discard(holder)
            self.holder = None
            self.let_wait(holder, own_lane)
