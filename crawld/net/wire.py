"""Opens a connection to a checked address: resolve, check, dial, TLS handshake.

The name is resolved once per connection, every address is checked, and the checked address itself
is dialed, so no second lookup can return another result. SNI and the certificate check use the
name. Addresses are tried in order, at most `MAX_DIALED`, each with its share of the remaining time.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, NamedTuple

import httpcore
import trio

from crawld.core.page import Failure
from crawld.net.address import BLOCKED_PORTS, refusal
from crawld.net.arrival import AllArrived, ArrivalWatch
from crawld.net.errors import FetchError, NoFilesError, connect_error
from crawld.net.http2 import FrameMeter
from crawld.net.network import Connection, Network
from crawld.net.progress import FetchPhase, Progress
from crawld.net.proxy import check_target, open_tunnel, proxy_address
from crawld.net.resolver import ResolutionError, Resolver
from crawld.net.tls import certificate_names, explain_tls, offer_protocols, tls_cause

MAX_DIALED = 4


class Endpoint(NamedTuple):
    """The target and permissions of a connection; connections are shared within one endpoint only.

    Attributes:
        scheme: `http` or `https`.
        host: as in the URL, IPv6 in brackets.
        port: always given.
        allow_private: whether private addresses may be dialed.
        proxy: `http://host:port` that is dialed instead; None: no proxy.
        http2: whether the handshake offers HTTP/2.
    """

    scheme: str
    host: str
    port: int
    allow_private: bool
    proxy: str | None = None
    http2: bool = False


class Wire(httpcore.AsyncNetworkStream):
    """The byte stream under an HTTP connection.

    Every byte passes the `Progress` of the current fetch, which enforces the limits; the time
    limits of the HTTP library are ignored. Without a fetch it can only be closed.

    Attributes:
        address: the IP address connected to.
        certificate: names on the peer's certificate; empty without TLS.
        readable: returns whether bytes or the end of the stream can be read; on an idle connection
            it is the end.
        progress: of the current fetch.
        frames: counts frames; None: not HTTP/2.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        address: str,
        is_readable: Callable[[], bool],
        arrivals: ArrivalWatch,
        all_arrived: AllArrived | None,
    ) -> None:
        self._stream = stream
        self._arrivals = arrivals
        self._all_arrived = all_arrived
        self._unwatched = False
        self.address = address
        self.readable = is_readable
        self.certificate = (
            certificate_names(stream.getpeercert()) if isinstance(stream, trio.SSLStream) else ()
        )
        self.progress: Progress | None = None
        self.frames = FrameMeter() if self._speaks_http2() else None

    def begin(self, progress: Progress) -> None:
        """Apply the limits of a fetch to what is sent and received from now on."""
        progress.address = self.address
        self.progress = progress
        self._unwatched = self._all_arrived is not None
        if self.frames is not None:
            self.frames.begin()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: D102
        progress = self.progress
        if progress is None:
            raise httpcore.ReadError("abandoned")
        size = progress.read_size(max_bytes)
        if size == 0:
            raise _too_long(progress)
        if self.frames is not None:
            size = min(size, self.frames.read_bytes)
        if self._unwatched:
            self._watch(progress)
        try:
            data = bytes(await self._stream.receive_some(size))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            progress.peer_closed = True
            raise httpcore.ReadError(_reason(error)) from error
        progress.note_received(len(data))
        if not data:
            progress.peer_closed = True
            progress.cut_off = await self._is_cut_off()
        elif self.frames is not None:
            self.frames.note(data)
        return data

    def _watch(self, progress: Progress) -> None:
        """Observe when the request arrives; it was sent whole before the first read."""
        self._unwatched = False
        if self._all_arrived is not None and not progress.peer_closed:
            self._arrivals.watch(progress, self._all_arrived)

    async def _is_cut_off(self) -> bool:
        """Whether the stream ended without the close message of TLS (close_notify)."""
        if not isinstance(self._stream, trio.SSLStream):
            return False
        try:
            # After such an end trio returns no data once, as web servers want it, and then fails.
            await self._stream.receive_some(1)
        except trio.BrokenResourceError:
            return True
        return False

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: D102
        if not buffer:
            return
        progress = self.progress
        if progress is None:
            raise httpcore.WriteError("abandoned")
        progress.note_sending()
        try:
            await self._stream.send_all(buffer)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            progress.peer_closed = True
            raise httpcore.WriteError(_reason(error)) from error

    async def aclose(self) -> None:
        """Close at once, without a TLS close message."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Not used: `open_wire` does the handshake before HTTP begins."""
        raise NotImplementedError

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401, D102 (the library's signature)
        return self.readable() if info == "is_readable" else None

    def _speaks_http2(self) -> bool:
        """Whether the handshake selected HTTP/2."""
        if not isinstance(self._stream, trio.SSLStream):
            return False
        return bool(self._stream.selected_alpn_protocol() == "h2")


def _too_long(progress: Progress) -> FetchError:
    limits = progress.limits
    if progress.phase is FetchPhase.BODY:
        return FetchError(Failure.TOO_LARGE, f"more than {limits.max_wire_bytes} bytes sent")
    return FetchError(
        Failure.PROTOCOL, f"response header longer than {limits.max_header_bytes} bytes"
    )


async def open_wire(
    endpoint: Endpoint,
    progress: Progress,
    *,
    network: Network,
    resolver: Resolver,
    ssl_context: ssl.SSLContext,
    arrivals: ArrivalWatch,
) -> Wire:
    """Connect to an endpoint; `progress` receives the address.

    `arrivals` observes its requests, but not those through a proxy, which acknowledges them itself.

    Raises:
        FetchError: `DNS`, `ADDRESS_REFUSED`, `CONNECT`, `TIMEOUT` or `TLS`.
    """
    if endpoint.proxy is not None:
        connection = await _dial_proxy(endpoint, endpoint.proxy, progress, network, resolver)
    else:
        with progress.look_up():
            addresses = await permitted_addresses(endpoint, resolver)
        connection = await _dial(addresses[:MAX_DIALED], endpoint.port, progress, network)
    stream = connection.stream
    assert progress.address is not None
    if endpoint.scheme == "https":
        stream = await _shake_hands(stream, endpoint, ssl_context)
    check = connection.all_arrived if endpoint.proxy is None else None
    return Wire(stream, progress.address, connection.is_readable, arrivals, check)


async def _dial_proxy(
    endpoint: Endpoint, proxy: str, progress: Progress, network: Network, resolver: Resolver
) -> Connection:
    """Connect to a proxy, and for https through it; failures of the proxy are local faults."""
    host = endpoint.host.removeprefix("[").removesuffix("]")
    allow = endpoint.allow_private
    name, port = proxy_address(proxy)
    with progress.look_up():  # a target that is refused is no fault of the proxy
        await check_target(host, endpoint.port, allow_private=allow, resolver=resolver)
    try:
        with progress.look_up():
            addresses = await resolver.resolve(name)
        connection = await _dial(addresses[:MAX_DIALED], port, progress, network)
    except ResolutionError as error:
        if error.kind == "no_files":
            raise NoFilesError from error
        raise FetchError(Failure.DNS, f"the proxy: {error.detail}", local=True) from error
    except NoFilesError:
        raise
    except FetchError as fault:
        raise FetchError(fault.failure, f"the proxy: {fault.detail}", local=True) from fault
    if endpoint.scheme == "https":
        try:
            await open_tunnel(connection.stream, host, endpoint.port)
        except BaseException:
            await trio.aclose_forcefully(connection.stream)
            raise
    return connection


async def permitted_addresses(endpoint: Endpoint, resolver: Resolver) -> tuple[str, ...]:
    """Return the addresses of an endpoint that may be dialed, at least one.

    Raises:
        FetchError: `DNS`, or `ADDRESS_REFUSED` if no address is permitted.
    """
    if endpoint.port in BLOCKED_PORTS:
        raise FetchError(
            Failure.ADDRESS_REFUSED, f"port {endpoint.port} belongs to another service"
        )
    host = endpoint.host.removeprefix("[").removesuffix("]")
    try:
        addresses = await resolver.resolve(host)
    except ResolutionError as error:
        if error.kind == "no_files":
            raise NoFilesError from error
        local = error.kind != "nxdomain"
        raise FetchError(Failure.DNS, f"{error.kind}: {error.detail}", local=local) from error
    allow = endpoint.allow_private
    refusals = [refusal(address, allow_private=allow) for address in addresses]
    permitted = tuple(
        address for address, reason in zip(addresses, refusals, strict=True) if reason is None
    )
    if not permitted:
        raise FetchError(Failure.ADDRESS_REFUSED, refusals[0] or "the name has no address")
    return permitted


async def _dial(
    addresses: tuple[str, ...], port: int, progress: Progress, network: Network
) -> Connection:
    fault: FetchError | None = None
    for position, address in enumerate(addresses):
        progress.address = address
        left_s = progress.scope.deadline - trio.current_time()
        share_s = left_s / (len(addresses) - position)
        try:
            # The last address gets all the remaining time, until the time limit of the fetch.
            with trio.move_on_after(share_s if position + 1 < len(addresses) else float("inf")):
                return await network.connect(address, port)
            fault = connect_error(None, address)
        except OSError as error:
            fault = connect_error(error, address)
            if isinstance(fault, NoFilesError):
                break  # another address would not help
    assert fault is not None
    raise fault


async def _shake_hands(
    stream: trio.abc.Stream, endpoint: Endpoint, ssl_context: ssl.SSLContext
) -> trio.SSLStream[trio.abc.Stream]:
    name = endpoint.host.removeprefix("[").removesuffix("]")
    # A connection takes over what the shared context offers at this moment.
    offer_protocols(ssl_context, http2=endpoint.http2)
    try:
        tls = trio.SSLStream(stream, ssl_context, server_hostname=name, https_compatible=True)
        await tls.do_handshake()
    except ValueError as error:
        # A name that no certificate can have; a proxy would still dial it.
        await trio.aclose_forcefully(stream)
        raise FetchError(Failure.TLS, f"the host name is not valid: {error}"[:200]) from error
    except trio.BrokenResourceError as error:
        await trio.aclose_forcefully(stream)
        cause = tls_cause(error)
        detail = _reason(error) if cause is None else explain_tls(cause)
        raise FetchError(Failure.TLS, detail) from error
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return tls


def _reason(error: BaseException) -> str:
    cause = error.__cause__
    text = cause.strerror if isinstance(cause, OSError) else None
    return (text or str(error) or "connection lost").lower()
