"""How far one fetch has come: its phase, its deadline, its counters.

One cancel scope serves all time limits; its deadline moves with the phase and with each received
piece. (A scope per read, as the HTTP library would open, costs more than the read.)
"""

from __future__ import annotations

from enum import Enum

import trio

from crawld.net.exchange import FetchLimits, Headers


class FetchPhase(Enum):
    """Phases of a fetch, in order."""

    CONNECT = "connect"
    HEADER = "header"
    BODY = "body"


class Progress:
    """The running state of one fetch; ends with it.

    Attributes:
        scope: the caller enters it; its deadline is the next time limit.
        sent_at: when the first byte of the request was sent; None before.
        address: the address connected to; None before.
        peer_closed: whether the peer closed or reset the connection.
        reused: whether it runs on a kept-alive connection.
        status: of the response; None before its header is complete.
        headers: of the response.
    """

    __slots__ = (
        "_bytes_left",
        "_ends_at",
        "address",
        "headers",
        "limits",
        "peer_closed",
        "phase",
        "received_bytes",
        "reused",
        "scope",
        "sent_at",
        "started_at",
        "status",
    )

    def __init__(self, limits: FetchLimits) -> None:
        self.limits = limits
        self.started_at = trio.current_time()
        self.phase = FetchPhase.CONNECT
        self.sent_at: float | None = None
        self.address: str | None = None
        self.peer_closed = False
        self.reused = False
        self.status: int | None = None
        self.headers: Headers = ()
        self._ends_at = self.started_at + limits.total_s
        self.received_bytes = 0
        self._bytes_left = limits.max_header_bytes
        self.scope = trio.CancelScope(
            deadline=min(self._ends_at, self.started_at + limits.connect_s)
        )

    def note_sending(self) -> None:
        """Note that request bytes go out; the first ones set the instant that counts."""
        if self.sent_at is None:
            self.sent_at = trio.current_time()
            self.phase = FetchPhase.HEADER
            self._wait_at_most(self.limits.header_s, self.sent_at)

    def note_header(self, status: int, headers: Headers) -> float:
        """Note that the response header is complete; return the instant."""
        self.status = status
        self.headers = headers
        now = trio.current_time()
        self.phase = FetchPhase.BODY
        # Framing may cost as much as a header: chunks of one byte with long extensions end here.
        self._bytes_left = self.limits.max_wire_bytes + self.limits.max_header_bytes
        self._wait_at_most(self.limits.stall_s, now)
        return now

    def read_size(self, wanted_bytes: int) -> int:
        """Return how many bytes may be read now; 0 where header or body is too long."""
        return min(wanted_bytes, self._bytes_left)

    def note_received(self, size_bytes: int) -> None:
        """Note received bytes; inside a body each piece gives the next one its time."""
        self.received_bytes += size_bytes
        self._bytes_left -= size_bytes
        if self.phase is FetchPhase.BODY:
            self._wait_at_most(self.limits.stall_s, trio.current_time())

    def response_begun(self) -> bool:
        """Whether any byte of an answer has been received."""
        return self.phase is FetchPhase.BODY or self._bytes_left < self.limits.max_header_bytes

    def timeout_detail(self) -> str:
        """Return which limit ran out, for a person."""
        if trio.current_time() >= self._ends_at:
            return f"not complete after {self.limits.total_s:g} s"
        if self.phase is FetchPhase.CONNECT:
            return f"no connection within {self.limits.connect_s:g} s"
        if self.phase is FetchPhase.HEADER:
            return f"no answer within {self.limits.header_s:g} s"
        return f"silent for {self.limits.stall_s:g} s inside the body"

    def _wait_at_most(self, seconds: float, now: float) -> None:
        self.scope.deadline = min(self._ends_at, now + seconds)
