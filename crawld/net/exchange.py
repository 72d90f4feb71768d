"""One request and what came of it: the values that `net/` takes and hands back.

A remote fault is a value (`FetchFailure`), never an exception. Instants are trio's clock
(`trio.current_time()`), since politeness needs intervals that no clock jump touches; the caller
turns them into Unix seconds where it stores them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from crawld.core.page import Failure

Headers = tuple[tuple[bytes, bytes], ...]
"""Header lines as received: order, repetitions and spelling kept."""

Accept = Callable[[int, Headers, bytes], Failure | None]
"""Looks at status, headers and the first decoded bytes; a `Failure` stops the download."""

Sink = Callable[[bytes], Awaitable[None]]
"""Takes a piece of a decoded body; the next is read from the network when it returns."""

Receive = Callable[[int, Headers], Sink | None]
"""Looks at status and headers; a `Sink` takes the body, None lets it be gathered as usual."""

PREFIX_BYTES = 1024
"""How much of the decoded body `FetchRequest.accept` is shown: enough to sniff any type."""

MIB = 1024 * 1024


def header_value(headers: Headers, name: str) -> str | None:
    """Return the values of a header joined by a comma, or None if it is absent.

    Args:
        headers: raw header lines.
        name: the name in any case.
    """
    wanted = name.lower().encode("latin-1")
    values = [value for key, value in headers if key.lower() == wanted]
    return b", ".join(values).decode("latin-1") if values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The most one request may take.

    Attributes:
        connect_s: name lookup, TCP and TLS together.
        header_s: from the sent request to the complete response header.
        stall_s: the longest silence inside a body.
        total_s: the whole fetch, body included.
        max_wire_bytes: body bytes as sent, before decompression.
        max_body_bytes: body bytes after decompression.
        max_header_bytes: the response header.
    """

    connect_s: float = 10.0
    header_s: float = 20.0
    stall_s: float = 15.0
    total_s: float = 60.0
    max_wire_bytes: int = 16 * MIB
    max_body_bytes: int = 64 * MIB
    max_header_bytes: int = 64 * 1024


DEFAULT_LIMITS = FetchLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """One GET.

    Attributes:
        url: canonical http or https URL.
        headers: further request headers: validators, what the site's config adds. One of the names
            the fetcher sends itself (User-Agent, Accept, Accept-Encoding) replaces it.
        limits: the most it may take.
        allow_private: whether a private, loopback or link-local address may be connected to.
        keep_alive: False closes the connection after the answer.
        accept: called once, before the body is read to its end.
        max_bytes_per_s: how fast a body is read, as sent; None: as fast as it comes.
        proxy: `http://host:port` that the request goes through; None: straight to the host.
        cut: an answer longer than the limits is cut to what fits instead of failing.
        receive: called once the response header is complete; what its sink takes is not gathered.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    limits: FetchLimits = DEFAULT_LIMITS
    allow_private: bool = False
    keep_alive: bool = True
    accept: Accept | None = None
    cut: bool = False
    max_bytes_per_s: float | None = None
    proxy: str | None = None
    receive: Receive | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponse:
    """A complete answer, whatever its status.

    Attributes:
        status: HTTP status code.
        reason: reason phrase as sent; empty under HTTP/2.
        http_version: `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
        headers: header lines as received.
        body: decoded body.
        wire_bytes: body bytes as sent.
        address: the IP address connected to.
        sent_at: when the request was sent (trio clock).
        answered_at: when the response header was complete (trio clock).
        duration_s: from the call to the last byte.
        certificate: host names on the certificate of the peer; none without TLS.
        cut: the body is the beginning of a longer one.
        received_bytes: what was received: header, body and framing, as sent; without TLS.
    """

    status: int
    reason: str
    http_version: str
    headers: Headers
    body: bytes
    wire_bytes: int
    address: str
    sent_at: float
    answered_at: float
    duration_s: float
    certificate: tuple[str, ...] = ()
    cut: bool = False
    received_bytes: int = 0

    def header(self, name: str) -> str | None:
        """Return a header, repetitions joined by a comma; None if absent."""
        return header_value(self.headers, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchFailure:
    """A fetch that gave no complete answer.

    Attributes:
        failure: the family of the fault.
        detail: short text for a person.
        address: the IP address connected to, None if none was.
        sent_at: when the request was sent (trio clock); None if none reached the wire, so that
            nothing counts against the host's politeness.
        at: when the fault was seen (trio clock).
        status: of the response, if its header was complete.
        headers: of the response; empty if its header was not complete.
        local_fault: the fault lies on our side (resolver, network, open files), not the host's.
        reused: it happened on a kept-alive connection, which the server may just have closed.
        received_bytes: what was received nevertheless, as of `FetchResponse`.
    """

    failure: Failure
    detail: str
    address: str | None
    sent_at: float | None
    at: float
    status: int | None = None
    headers: Headers = ()
    local_fault: bool = False
    reused: bool = False
    received_bytes: int = 0

    def header(self, name: str) -> str | None:
        """Return a header, repetitions joined by a comma; None if absent."""
        return header_value(self.headers, name)
