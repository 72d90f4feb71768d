"""Sends POST requests of the operator's own, such as webhooks, behind the address fence.

A request has a connection of its own, which is closed after it: receivers get few. The response is
read up to a limit and dropped. A redirect is a response like any other: it is not followed.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

import trio
from pydantic import SecretStr

from crawld.net.arrival import ArrivalWatch
from crawld.net.errors import REMOTE_ERRORS, FetchError, http_error
from crawld.net.exchange import (
    FetchLimits,
    FetchRequest,
    Headers,
    HeaderValue,
    PermitsPrivate,
    header_value,
    permits_public_only,
)
from crawld.net.http1 import Http1Connection
from crawld.net.network import Network
from crawld.net.outgoing import encode_headers, header_lines, request_target
from crawld.net.progress import Progress
from crawld.net.resolver import Resolver
from crawld.net.secret_echo import hide_secrets
from crawld.net.tls import client_context
from crawld.net.wire import open_wire

POST_LIMITS = FetchLimits(
    connect_s=10.0, header_s=20.0, stall_s=5.0, total_s=30.0, max_wire_bytes=65_536
)
"""Of one request and its response, of which nobody reads the body."""

MAX_LOCATION_CHARACTERS = 200

_DEFAULTS: Headers = ((b"Accept", b"*/*"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostRequest:
    """One POST request.

    Attributes:
        url: canonical http or https URL.
        body: what is sent.
        headers: request headers.
        permits_private: which hosts may have a private, loopback or link-local address.
        hides_url: whether the path of the URL is a secret.
        limits: limits of time and size.
    """

    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: tuple[tuple[str, HeaderValue], ...] = ()
    permits_private: PermitsPrivate = permits_public_only
    hides_url: bool = False
    limits: FetchLimits = POST_LIMITS


@dataclass(frozen=True, slots=True)
class PostResult:
    """What became of a POST request.

    Attributes:
        status: HTTP status; None: there was no response.
        trouble: why it was not accepted, for a person; empty: status 2xx.
        retry_after: the header of this name; None: there was none, or the request was accepted.
    """

    status: int | None
    trouble: str
    retry_after: str | None = None


class Poster:
    """Sends POST requests; holds nothing between them.

    Args:
        resolver: resolves host names.
        network: connects to addresses.
        ssl_context: for https; None trusts the system's certificate authorities.
    """

    def __init__(
        self,
        *,
        resolver: Resolver,
        network: Network,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._resolver = resolver
        self._network = network
        self._ssl_context = ssl_context

    async def post(self, request: PostRequest) -> PostResult:
        """Send a request; no remote fault raises.

        A response counts from its header on: whatever the receiver does then, it has answered.
        """
        progress = Progress(request.limits)
        fault: FetchError | None = None
        retry_after: str | None = None
        with progress.scope:
            try:
                await self._exchange(request, progress)
            except FetchError as raised:
                fault = raised
            except REMOTE_ERRORS as error:
                fault = http_error(error, progress)
        if progress.status is not None:
            trouble = _trouble(progress.status, progress.headers, request)
            if trouble:
                retry_after = header_value(progress.headers, "retry-after")
        else:
            trouble = fault.detail if fault is not None else progress.timeout_detail()
        secrets = [value for _, value in request.headers if isinstance(value, SecretStr)]
        return PostResult(progress.status, hide_secrets(trouble, secrets), retry_after)

    async def _exchange(self, request: PostRequest, progress: Progress) -> None:
        """Send the request and read the response."""
        target = request_target(
            FetchRequest(url=request.url, permits_private=request.permits_private)
        )
        length = ("Content-Length", str(len(request.body)))
        given = encode_headers((*request.headers, length, ("Connection", "close")))
        wire = await open_wire(
            target.endpoint,
            progress,
            network=self._network,
            resolver=self._resolver,
            ssl_context=self._tls(),
            arrivals=ArrivalWatch(),
        )
        connection = Http1Connection(wire)
        try:
            wire.begin(progress)
            lines = header_lines(target, _DEFAULTS, given)
            head, body = await connection.send(target.path, lines, request.body)
            progress.note_header(head.status, tuple(head.headers))
            # Read, although nobody needs it: many servers take an early end for a failure.
            async for _ in body:
                await trio.lowlevel.checkpoint()
        finally:
            with trio.CancelScope(shield=True):
                await connection.aclose()

    def _tls(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = client_context()
        return self._ssl_context


def _trouble(status: int, headers: Headers, request: PostRequest) -> str:
    if 200 <= status < 300:
        return ""
    location = header_value(headers, "location") if 300 <= status < 400 else None
    if location is None:
        return f"status {status}"
    if request.hides_url:
        location = "/".join(location.split("/")[:3])
    return (
        f"status {status}, a redirect to {location[:MAX_LOCATION_CHARACTERS]}; redirects are not "
        "followed: name the final URL"
    )
