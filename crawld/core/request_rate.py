"""A limit on requests and bytes per second, kept by spacing the requests evenly.

A request may begin at the end of the slot of the one before it. A request that begins late does not
move the slots after it, as long as it is late by less than half a slot, so that the full rate is
reached; two requests are never less than half a slot apart. Hence any time of n slots holds at most
n + 1 requests.

Bytes are known only after a response. A request reserves the mean of those before it, and what it
received replaces this in the end: the next request waits until the bytes are paid for.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

LATE_SLOTS: Final = 0.5
"""Part of a slot by which a request may be late without moving the slots after it."""

FIRST_BYTES: Final = 20_000.0
"""Bytes that a request is expected to receive before any was sent: a small page."""

MEAN_OVER: Final = 16.0
"""Requests over which the mean of received bytes is taken."""


class TakenSlot(NamedTuple):
    """A slot that a request uses.

    Attributes:
        before, after: when the next request might begin before and after it was taken.
        reserved_s: time reserved for the bytes it will receive.
    """

    before: float
    after: float
    reserved_s: float


class RequestRate:
    """When the next request may begin; times are those of the caller's clock, in seconds.

    Attributes:
        requests_per_s: most requests per second, None: no limit.
        bytes_per_s: most received bytes per second, None: no limit.
        mean_bytes: mean of the bytes that recent requests received.
    """

    __slots__ = ("_bytes_at", "_requests_at", "bytes_per_s", "mean_bytes", "requests_per_s")

    def __init__(
        self,
        requests_per_s: float | None,
        bytes_per_s: float | None,
        *,
        open_at: float = -math.inf,
    ) -> None:
        """Make a limit whose first request may begin at `open_at`."""
        self.requests_per_s = requests_per_s
        self.bytes_per_s = bytes_per_s
        self.mean_bytes = FIRST_BYTES
        self._requests_at = open_at
        self._bytes_at = -math.inf

    @property
    def next_at(self) -> float:
        """When the next request may begin."""
        return max(self._requests_at, self._bytes_at)

    @property
    def interval_s(self) -> float:
        """The mean time between two requests at the full rate, 0 without a limit."""
        requests_s = 1.0 / self.requests_per_s if self.requests_per_s else 0.0
        return max(requests_s, self._bytes_s(self.mean_bytes))

    @property
    def rate(self) -> float:
        """Requests per second at the full rate; ∞ without a limit."""
        interval_s = self.interval_s
        return 1.0 / interval_s if interval_s else math.inf

    def change(self, requests_per_s: float | None, bytes_per_s: float | None, now: float) -> None:
        """Replace the limits; the next request waits no longer than one new slot and its debt."""
        owed = max(self._bytes_at - now, 0.0) * (self.bytes_per_s or 0.0)
        self.requests_per_s, self.bytes_per_s = requests_per_s, bytes_per_s
        slot_s = 1.0 / requests_per_s if requests_per_s else 0.0
        self._requests_at = min(self._requests_at, now + slot_s)
        self._bytes_at = now + self._bytes_s(owed)

    def hold(self, until: float) -> None:
        """Let the next request wait until a time, as after a restart."""
        self._requests_at = max(self._requests_at, until)

    def take(self, now: float) -> TakenSlot:
        """Begin a request, at or after `next_at`."""
        before = self._requests_at
        if self.requests_per_s:
            slot_s = 1.0 / self.requests_per_s
            self._requests_at = max(before + slot_s, now + LATE_SLOTS * slot_s)
        reserved_s = self._bytes_s(self.mean_bytes)
        self._bytes_at = max(self._bytes_at, now) + reserved_s
        return TakenSlot(before, self._requests_at, reserved_s)

    def give_back(self, taken: TakenSlot) -> None:
        """End a turn that sent no request; its slot is free again unless a later one is taken."""
        self.end(taken)
        if self._requests_at == taken.after:
            self._requests_at = taken.before

    def end(self, taken: TakenSlot) -> None:
        """End a request: what it reserved is replaced by what it received."""
        self._bytes_at -= taken.reserved_s

    def receive(self, received_bytes: int, *, whole: bool = True) -> None:
        """Count received bytes; `whole`: all of a request, which counts for the mean."""
        self._bytes_at += self._bytes_s(received_bytes)
        if whole:
            self.mean_bytes += (received_bytes - self.mean_bytes) / MEAN_OVER

    def _bytes_s(self, number: float) -> float:
        return number / self.bytes_per_s if self.bytes_per_s else 0.0
