"""The request and result values of a fetch.

A remote fault is a value (`FetchFailure`), never an exception. Times are on trio's clock
(`trio.current_time()`), because clock changes must not affect politeness intervals; the caller
converts them to Unix seconds for storage.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import SecretStr

from crawld.core.page import Failure
from crawld.core.politeness import parse_retry_after
from crawld.core.value_type import value_type
from crawld.memory import MemoryLease

Headers = tuple[tuple[bytes, bytes], ...]
"""Header lines as received: order, repetitions and case are kept."""

HeaderValue = str | SecretStr
"""A value to send; a secret one is hidden until the request is written."""

SecretHeaders = tuple[tuple[str, SecretStr], ...]

Accept = Callable[[int, Headers, bytes], Failure | None]
"""Checks status, headers and the first decoded bytes; a returned `Failure` stops the download."""

Sink = Callable[[bytes], Awaitable[None]]
"""Takes a piece of a decoded body; the next piece is read when it returns."""

Receive = Callable[[int, Headers], Sink | None]
"""Gets status and headers; returns a `Sink` for the body, or None to collect it in memory."""

PermitsPrivate = Callable[[str], bool]
"""Whether a host (name, or IP address without brackets) may have a private address."""

PREFIX_BYTES = 1024
"""Decoded bytes given to `FetchRequest.accept`: enough to sniff any content type."""

MIB = 1024 * 1024

_CACHED_HEADERS = 32
"""Response headers whose names are looked up in a table: a visit asks for a dozen."""

_AGREEING = frozenset({b"etag", b"last-modified"})
_SINGLE = _AGREEING | {
    *(b"location", b"content-length", b"content-type", b"retry-after", b"date", b"age", b"expires"),
}


def header_value(headers: Headers, name: str) -> str | None:
    """Return the value of a header (name in any case), None if it is absent.

    Repetitions are joined by a comma, except of headers that have one value: equal ones count once;
    of different ones the last media type counts, as in browsers, no validator, and else the first.
    """
    return _values_by_name(headers).get(name.lower())


@lru_cache(maxsize=_CACHED_HEADERS)
def _values_by_name(headers: Headers) -> dict[str, str | None]:
    found: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value)
    return {name.decode("latin-1"): _value_of(name, values) for name, values in found.items()}


def _value_of(name: bytes, values: list[bytes]) -> str | None:
    if len(values) > 1 and name in _SINGLE:
        return _single_value(name, values)
    return b", ".join(values).decode("latin-1")


def _single_value(name: bytes, values: list[bytes]) -> str | None:
    different = list(dict.fromkeys(value.strip() for value in values))
    if len(different) > 1:
        if name in _AGREEING:
            return None  # one of them would confirm a copy that it does not belong to
        if name == b"content-type":
            # Fetch standard, section "extract a MIME type".
            different = [value for value in different if b"/" in value][-1:] or different
    return different[0].decode("latin-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Limits of one request.

    Attributes:
        connect_s: TCP and TLS together; a name lookup has its own limit.
        header_s: from the sent request to the complete response header.
        stall_s: longest silence inside a body.
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


def permits_public_only(host: str) -> bool:
    """Permit a private address to no host."""
    return False


@value_type(kw_only=True)
class FetchRequest:
    """One GET request.

    `permits_private` is a rule, not its result: the fetcher asks it about the host of `url`, so
    that no request can carry the permission of another URL, such as one that redirects to it.

    Attributes:
        url: canonical http or https URL.
        headers: further request headers, such as validators and those of the site's config. They
            replace the fetcher's own of the same name (User-Agent, Accept, Accept-Encoding).
        limits: limits of time and size.
        permits_private: which hosts may have a private, loopback or link-local address.
        keep_alive: False closes the connection after the response.
        accept: called once, before the body is read to its end.
        max_bytes_per_s: limit of the body's bytes per second, as sent and as a sink gets them;
            None: no limit.
        proxy: `http://host:port` to send the request through; None: no proxy.
        cut: whether a body longer than the limits is cut to what fits instead of failing.
        receive: called when the response header is complete; a body passed to its sink is not
            collected.
        decode: whether to remove content codings; False: a body that has one fails.
        keeps_partial: whether a failure keeps the start of a body that can be continued.
        partial: the start of the body, from an earlier request; only the rest is asked for.
        http2: whether HTTP/2 is offered to an https host; None: as the fetcher offers it.
        first_bytes: read these first bytes of the body only, by a range request; what a server
            sends beyond them is not read. None: the whole body.
    """

    url: str
    headers: tuple[tuple[str, HeaderValue], ...] = ()
    limits: FetchLimits = DEFAULT_LIMITS
    permits_private: PermitsPrivate = permits_public_only
    keep_alive: bool = True
    accept: Accept | None = None
    cut: bool = False
    max_bytes_per_s: float | None = None
    proxy: str | None = None
    receive: Receive | None = None
    decode: bool = True
    keeps_partial: bool = False
    partial: PartialBody | None = None
    http2: bool | None = None
    first_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PartialBody:
    """The start of a body, to be continued by a request for the rest.

    Attributes:
        body: its first bytes.
        validator: strong ETag, or Last-Modified, as sent.
        total_bytes: length of the whole.
        lease: on the memory of `body`, while it is held.
    """

    body: bytes
    validator: str
    total_bytes: int
    lease: MemoryLease | None = field(default=None, repr=False, compare=False)


@value_type(kw_only=True)
class FetchResponse:
    """A complete response of any status.

    Attributes:
        status: HTTP status code.
        reason: reason phrase as sent; empty under HTTP/2.
        http_version: `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
        headers: header lines as received.
        body: decoded body.
        wire_bytes: body bytes as sent.
        address: the IP address connected to.
        sent_at: when the request was sent (trio clock).
        arrived_at: when the server had the request (trio clock): the time of the complete response
            header, or before it an observation of `ArrivalWatch`.
        ended_at: when its last byte came (trio clock).
        duration_s: from the call to the last byte.
        certificate: host names on the peer's certificate; empty without TLS.
        cut: whether the body was cut at a limit, or only its first bytes were asked for.
        received_bytes: header, body and framing as sent, without TLS.
        lease: on the memory of the body; None if it is small. It ends with the response at the
            latest; who keeps the body longer keeps the lease too.
    """

    status: int
    reason: str
    http_version: str
    headers: Headers
    body: bytes
    wire_bytes: int
    address: str
    sent_at: float
    arrived_at: float
    ended_at: float
    duration_s: float
    certificate: tuple[str, ...] = ()
    cut: bool = False
    received_bytes: int = 0
    lease: MemoryLease | None = field(default=None, repr=False, compare=False)

    def header(self, name: str) -> str | None:
        """Return the value of a header, as `header_value` does; None if absent."""
        return header_value(self.headers, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchFailure:
    """A fetch without a complete response.

    Attributes:
        failure: the kind of failure.
        detail: short text for a person.
        address: the IP address connected to; None if there was no connection.
        sent_at: when the request was sent (trio clock); None if it was not, so that it does not
            count against the host's politeness.
        at: when the fetch failed (trio clock).
        status: of the response, if its header was complete.
        headers: of the response; empty if its header was not complete.
        local_fault: whether the cause is on our side (resolver, network, open files, memory).
        reused: whether it failed on a kept-alive connection, which the server may have closed.
        received_bytes: as in `FetchResponse`.
        partial: the start of the body, if the request keeps it and it can be continued.
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
    partial: PartialBody | None = field(default=None, repr=False, compare=False)

    @property
    def arrived_at(self) -> float:
        """When the fetch failed: the next request waits as if the server had it only then."""
        return self.at

    def header(self, name: str) -> str | None:
        """Return the value of a header, as `header_value` does; None if absent."""
        return header_value(self.headers, name)


def retry_after_s(response: FetchResponse | FetchFailure, now: float) -> float | None:
    """Return the seconds of a Retry-After from `now` (Unix seconds); None: it names none.

    A date is one of the server's clock: see `politeness.parse_retry_after`.
    """
    value = response.header("retry-after")
    return parse_retry_after(value, now, response.header("date")) if value else None
