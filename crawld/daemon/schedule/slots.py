"""Slots of hosts and addresses: their next permitted time, and the turn that holds them.

There may be ten thousand hosts and more, so each costs one small object. `schedule.py` moves them.
"""

from __future__ import annotations

import math
from collections import deque

import trio


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
    """

    __slots__ = ("done", "granted", "patient_until")

    def __init__(self, patient_until: float) -> None:
        self.granted = trio.Event()
        self.done = trio.Event()
        self.patient_until = patient_until


class Turn:
    """A turn under way.

    Attributes:
        address: the address it keeps busy; None: unknown.
        began_at: when it began (trio clock).
        counts_from: from when (trio clock) the delay after its last request counts; None: it sent
            none.
    """

    __slots__ = ("address", "began_at", "counts_from")

    def __init__(self, address: AddressSlot | None, began_at: float) -> None:
        self.began_at = began_at
        self.address = address
        self.counts_from: float | None = None


class HostSlot:
    """One host name and its next permitted time.

    Attributes:
        next_at: earliest time of its next request (trio clock).
        planned_at: when the running turn was due.
        address: its last known IP address, None if unknown.
        locating: whether its address is being looked up, or waits to be.
        tickets: borrowed turns, served before pages unless these are urgent.
        turn: the turn under way, None if there is none.
    """

    __slots__ = (
        "address",
        "entry_at",
        "host",
        "located_at",
        "locating",
        "next_at",
        "planned_at",
        "queued",
        "serial",
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
        self.tickets: list[Ticket] = []  # rarely more than one: a deque costs 600 bytes a host

    def rest_from(self, from_time: float, delay_s: float) -> None:
        """Start the delay of the host, and of the address of its turn, at a time of trio's clock.

        A delay that is under way is not shortened.
        """
        self.next_at = max(self.next_at, from_time + delay_s)
        if self.turn is not None:
            self.turn.counts_from = max(from_time, self.turn.counts_from or from_time)
