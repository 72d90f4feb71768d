"""The state of one running fetch: phase, deadline and byte counts.

One cancel scope enforces all time limits; its deadline moves with the phase and with each received
piece. (A scope per read, as in the HTTP library, costs more than the read.)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

import trio

from crawld.net.exchange import FetchLimits, Headers, PartialBody

WAIT_SHARE = 0.1
"""A fetch that waited for memory for a larger share of its time failed for this reason."""

HEADER_READ_BYTES = 32 * 1024
"""Largest read before the response header is complete: 2,000 responses "100 Continue", 50 ms."""


class FetchPhase(Enum):
    """Phases of a fetch, in order."""

    CONNECT = "connect"
    HEADER = "header"
    BODY = "body"


class Progress:
    """The state of one fetch.

    Attributes:
        scope: entered by the caller; its deadline is the next time limit.
        sent_at: when the first byte of the request was sent (trio clock); None before.
        arrived_at: when the server had the whole request (trio clock), or later; None: unknown.
        address: the IP address connected to; None before.
        peer_closed: whether the peer closed or reset the connection.
        cut_off: whether the connection ended without the close message of TLS.
        reused: whether the connection was kept alive from an earlier fetch.
        status: of the response; None before its header is complete.
        headers: of the response.
        waited_s: how long the fetch waited for memory.
        evicted: whether it was ended because others waited for its memory.
        partial: the start of a body that broke off, if it can be continued.
    """

    __slots__ = (
        "_bytes_left",
        "_ends_at",
        "_waits_since",
        "address",
        "arrived_at",
        "cut_off",
        "evicted",
        "headers",
        "limits",
        "partial",
        "peer_closed",
        "phase",
        "received_bytes",
        "reused",
        "scope",
        "sent_at",
        "started_at",
        "status",
        "waited_s",
    )

    def __init__(self, limits: FetchLimits) -> None:
        self.limits = limits
        self.started_at = trio.current_time()
        self.phase = FetchPhase.CONNECT
        self.sent_at: float | None = None
        self.arrived_at: float | None = None
        self.address: str | None = None
        self.peer_closed = False
        self.cut_off = False
        self.reused = False
        self.status: int | None = None
        self.headers: Headers = ()
        self._ends_at = self.started_at + limits.total_s
        self.received_bytes = 0
        self.waited_s = 0.0
        self.evicted = False
        self.partial: PartialBody | None = None
        self._waits_since: float | None = None
        self._bytes_left = limits.max_header_bytes
        # That of the connection follows the lookup of its name; one that is kept has none.
        self.scope = trio.CancelScope(deadline=self._ends_at)

    @contextmanager
    def look_up(self) -> Iterator[None]:
        """Suspend the limit of the connection during a name lookup, which has its own limit."""
        self.scope.deadline = self._ends_at
        yield
        self._wait_at_most(self.limits.connect_s, trio.current_time())

    def note_sending(self) -> None:
        """Record that request bytes are sent; the first call sets `sent_at`."""
        if self.sent_at is None:
            self.sent_at = trio.current_time()
            self.phase = FetchPhase.HEADER
            self._wait_at_most(self.limits.header_s, self.sent_at)

    def note_header(self, status: int, headers: Headers, *, is_whole: bool = False) -> float:
        """Record that the response header is complete; return when the server had the request.

        Args:
            is_whole: whether nothing more is read, so that there is no stall: the time left for
                the header is not cut short.
        """
        self.status = status
        self.headers = headers
        now = trio.current_time()
        self.phase = FetchPhase.BODY
        # Framing may add at most a header's size; this stops one-byte chunks with long extensions.
        self._bytes_left = self.limits.max_wire_bytes + self.limits.max_header_bytes
        if not is_whole or self.scope.deadline < now + self.limits.stall_s:
            self._wait_at_most(self.limits.stall_s, now)
        return now if self.arrived_at is None else self.arrived_at

    def read_size(self, wanted_bytes: int) -> int:
        """Return how many bytes may be read now; 0 if the header or body is too long."""
        most = self._bytes_left
        if self.phase is not FetchPhase.BODY and most > HEADER_READ_BYTES:
            most = HEADER_READ_BYTES
        return min(wanted_bytes, most)

    def note_received(self, size_bytes: int) -> None:
        """Count received bytes; inside a body, restart the stall limit."""
        self.received_bytes += size_bytes
        self._bytes_left -= size_bytes
        if self.phase is FetchPhase.BODY:
            self._wait_at_most(self.limits.stall_s, trio.current_time())

    @contextmanager
    def wait_for_memory(self) -> Iterator[None]:
        """Suspend the stall limit while the fetch does not read; the total limit holds."""
        self._waits_since = trio.current_time()
        self.scope.deadline = self._ends_at
        yield
        now = trio.current_time()
        self.waited_s += now - self._waits_since
        self._waits_since = None
        self._wait_at_most(self.limits.stall_s, now)

    def evict(self) -> None:
        """End the fetch: it is slow, and others wait for its memory."""
        self.evicted = True
        self.scope.cancel()

    def lacked_memory(self) -> bool:
        """Whether waiting for memory made the fetch exceed its total time."""
        if self._waits_since is not None:
            return True
        now = trio.current_time()
        return now >= self._ends_at and self.waited_s > WAIT_SHARE * self.limits.total_s

    def response_begun(self) -> bool:
        """Whether any byte of a response was received."""
        return self.phase is FetchPhase.BODY or self._bytes_left < self.limits.max_header_bytes

    def timeout_detail(self) -> str:
        """Return which time limit was exceeded, as text for a person."""
        if trio.current_time() >= self._ends_at:
            return f"not complete after {self.limits.total_s:g} s"
        if self.phase is FetchPhase.CONNECT:
            return f"no connection within {self.limits.connect_s:g} s"
        if self.phase is FetchPhase.HEADER:
            return f"no response within {self.limits.header_s:g} s"
        return f"no data for {self.limits.stall_s:g} s inside the body"

    def _wait_at_most(self, seconds: float, now: float) -> None:
        self.scope.deadline = min(self._ends_at, now + seconds)
