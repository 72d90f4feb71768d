"""What the schedule knows of hosts and addresses: the instants that bind them, and who holds them.

A host costs a small object; there may be ten thousand and more. What moves them is `schedule.py`.
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
    """A turn lent to something that is no page: robots.txt behind a redirect, a poll."""

    __slots__ = ("done", "granted")

    def __init__(self) -> None:
        self.granted = trio.Event()
        self.done = trio.Event()


class Turn:
    """A turn under way: the address it keeps busy, and what `next_at` was before it."""

    __slots__ = ("address", "next_before")

    def __init__(self, address: AddressSlot | None, next_before: float) -> None:
        self.address = address
        self.next_before = next_before


class HostSlot:
    """One host name and the instants that bind it.

    Attributes:
        host: host name.
        next_at: earliest instant of its next request (trio clock).
        planned_at: the instant the running turn was due.
        address: IP address it was last found at, None if unknown.
        tickets: turns asked for by others, served before pages.
        turn: the turn under way, None if there is none.
    """

    __slots__ = (
        "address",
        "entry_at",
        "host",
        "located_at",
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
        self.turn: Turn | None = None
        self.queued = False
        self.serial = 0
        self.entry_at = math.inf
        self.tickets: list[Ticket] = []  # seldom more than one: a deque costs 600 bytes a host
