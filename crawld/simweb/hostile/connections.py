"""Servers that misbehave below HTTP/1 messages: at connect, during TLS, in HTTP/2 frames."""

from __future__ import annotations

import contextlib
import itertools
import ssl
from collections.abc import Callable
from typing import Protocol, cast

import trio

from crawld.simweb.hostile.case import (
    BROKEN,
    STORED,
    TIMEOUT,
    Connection,
    HostileCase,
    Place,
    Transport,
    failed,
    html,
)

_NO_LINGER = b"\x01\x00\x00\x00\x00\x00\x00\x00"
_PAGE = html("<p>over a connection")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
_SIZED = _HEAD + b"Content-Length: %d\r\n\r\n" % len(_PAGE) + _PAGE
_OPEN = _HEAD + b"Connection: close\r\n\r\n" + _PAGE
_NO_CONNECTION = failed("connect", "tls", "timeout", "protocol", "truncated") | {"robots"}
_TLS_FAILED = failed("tls", "connect", "timeout", "protocol") | {"robots"}


class ResettableStream(Protocol):
    """A connection in memory."""

    def reset(self) -> None:
        """Break it: the peer sees a reset."""


def reset(stream: trio.abc.HalfCloseableStream | ResettableStream) -> None:
    """Reset a connection, of a socket or in memory."""
    if not isinstance(stream, trio.SocketStream):
        cast("ResettableStream", stream).reset()
        return
    stream.socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, _NO_LINGER)
    stream.socket.close()


async def swallow(stream: trio.abc.ReceiveStream) -> None:
    """Read until the client closes."""
    while await stream.receive_some(65_536):
        pass


def _raw(name: str, connect: Connection, outcomes: frozenset[str]) -> HostileCase:
    return HostileCase(
        name=name,
        family="",
        connect=lambda _: connect,
        outcomes=outcomes,
        transport=Transport.RAW,
        wait=4.0,
    )


async def _reset_at_accept(stream: trio.abc.HalfCloseableStream) -> None:
    reset(stream)


async def _close_at_accept(stream: trio.abc.HalfCloseableStream) -> None:
    await stream.aclose()


async def _never_read(stream: trio.abc.HalfCloseableStream) -> None:
    await trio.sleep_forever()


async def _respond_unasked(stream: trio.abc.HalfCloseableStream) -> None:
    await stream.send_all(b"HTTP/1.1 408 Timeout\r\nContent-Length: 0\r\n\r\n" * 3_000)
    await swallow(stream)


async def _one_bytes(stream: trio.abc.HalfCloseableStream) -> None:
    await stream.receive_some(65_536)
    for byte in itertools.cycle(b"HTTP/1.1 100 Continue\r\n\r\n"):
        await stream.send_all(bytes((byte,)))
        await trio.sleep(0.2)


async def _reset_half_sent(stream: trio.abc.HalfCloseableStream) -> None:
    await stream.receive_some(65_536)
    await stream.send_all(_SIZED[:-20])
    reset(stream)


def _tls(
    name: str,
    dialogue: Callable[[Place], Connection],
    outcomes: frozenset[str],
    *,
    quick: bool = False,
) -> HostileCase:
    return HostileCase(
        name=name,
        family="",
        connect=dialogue,
        outcomes=outcomes,
        transport=Transport.TLS,
        wait=4.0,
        quick=quick,
    )


def _answering(
    response: bytes, *, cut: bool = False, names: tuple[str, ...] = (), **context: bool
) -> Callable[[Place], Connection]:
    """Return a server of fixed bytes; `cut` ends without close_notify."""

    def made(place: Place) -> Connection:
        tls = place.context(*(names or (place.host,)), **context)

        async def connect(plain: trio.abc.HalfCloseableStream) -> None:
            stream = trio.SSLStream(plain, tls, server_side=True, https_compatible=True)
            request = await _request(stream)
            if b"/robots.txt" in request.partition(b"\r\n")[0]:
                await stream.send_all(b"HTTP/1.1 404 No\r\nConnection: close\r\n\r\n")
                await stream.unwrap() if not cut else None
                return
            await stream.send_all(response)
            if cut:
                await plain.send_eof()
                await swallow(plain)
            else:
                await stream.aclose()

        return connect

    return made


async def _request(stream: trio.abc.ReceiveStream) -> bytes:
    read = b""
    while b"\r\n\r\n" not in read and len(read) < 100_000:
        data = await stream.receive_some(65_536)
        if not data:
            break
        read += data
    return read


def _plain(*steps: bytes | float) -> Callable[[Place], Connection]:
    """Return a server that ignores TLS and sends these bytes, then waits for the client."""

    async def connect(stream: trio.abc.HalfCloseableStream) -> None:
        await stream.receive_some(65_536)
        for step in steps:
            if isinstance(step, bytes):
                await stream.send_all(step)
            else:
                await trio.sleep(step)
        await swallow(stream)

    return lambda place: connect


def _hang_up_in_handshake(place: Place) -> Connection:
    async def connect(stream: trio.abc.HalfCloseableStream) -> None:
        await stream.receive_some(65_536)
        reset(stream)

    return connect


def _dripped_handshake(place: Place) -> Connection:
    """Send a real server handshake, one byte each tenth of a second."""
    tls = place.context(place.host)

    async def connect(stream: trio.abc.HalfCloseableStream) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = tls.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(await stream.receive_some(65_536))
        with contextlib.suppress(ssl.SSLWantReadError):
            session.do_handshake()
        for byte in outgoing.read():
            await stream.send_all(bytes((byte,)))
            await trio.sleep(0.1)
        await swallow(stream)

    return connect


def _renewed_keys(place: Place) -> Connection:
    """Complete the handshake, then send empty records for ever."""
    tls = place.context(place.host)

    async def connect(plain: trio.abc.HalfCloseableStream) -> None:
        stream = trio.SSLStream(plain, tls, server_side=True, https_compatible=True)
        await _request(stream)
        await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await stream.send_all(b" ")

    return connect


_ALERTS = b"\x15\x03\x03\x00\x02\x01\x00" * 8_000
_BIG_RECORD = b"\x16\x03\x03\xff\xff" + bytes(65_535)

CASES: tuple[HostileCase, ...] = (
    _raw("accept-reset", _reset_at_accept, _NO_CONNECTION),
    _raw("accept-close", _close_at_accept, _NO_CONNECTION),
    _raw("accept-never-read", _never_read, _NO_CONNECTION),
    _raw("respond-unasked", _respond_unasked, _NO_CONNECTION | failed("http_status") | STORED),
    _raw("one-byte-at-a-time", _one_bytes, _NO_CONNECTION),
    _raw("reset-half-sent", _reset_half_sent, _NO_CONNECTION | BROKEN),
    _tls("tls-healthy", _answering(_SIZED), STORED),
    _tls("tls-cut-open", _answering(_OPEN, cut=True), failed("truncated"), quick=True),
    _tls("tls-cut-sized", _answering(_SIZED, cut=True), STORED),
    _tls("tls-cut-short", _answering(_SIZED[:-9], cut=True), failed("truncated")),
    _tls("tls-stalled", _plain(), _TLS_FAILED, quick=True),
    _tls("tls-dripped", _dripped_handshake, _TLS_FAILED | TIMEOUT),
    _tls("tls-hang-up", _hang_up_in_handshake, _TLS_FAILED),
    _tls("tls-http", _plain(_SIZED), _TLS_FAILED),
    _tls("tls-junk", _plain(bytes(range(256)) * 100), _TLS_FAILED),
    _tls("tls-alerts", _plain(_ALERTS), _TLS_FAILED),
    _tls("tls-record-64kb", _plain(_BIG_RECORD), _TLS_FAILED),
    _tls("tls-hello-endless", _plain(*[b"\x16\x03\x03\x40\x00" + bytes(16_384)] * 50), _TLS_FAILED),
    _tls("tls-wrong-name", _answering(_SIZED, names=("other.test",)), _TLS_FAILED, quick=True),
    _tls("tls-self-signed", _answering(_SIZED, trusted=False), _TLS_FAILED),
    _tls("tls-expired", _answering(_SIZED, expired=True), _TLS_FAILED),
    _tls(
        "tls-many-names",
        _answering(_SIZED, names=tuple(f"n{k}.tls-many-names.test" for k in range(1_500))),
        _TLS_FAILED,
    ),
    _tls("tls-trickle", _renewed_keys, failed("too_large", "timeout") | {"robots"}),
)
