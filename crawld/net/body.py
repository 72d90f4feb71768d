"""Reads one response body within its limits: size on the wire, decoded size, content type.

A chunk of one byte costs as much as one of 64 KiB, so chunks have limits of their own, and others
run after every few of them. The same holds for the steps of the decoder.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator
from dataclasses import replace

import trio

from crawld.core.page import Failure
from crawld.marks import NO_MARKS, Marks, Step
from crawld.net.body_buffer import BodyBuffer
from crawld.net.decompress import Decoder
from crawld.net.errors import FetchError
from crawld.net.exchange import (
    PREFIX_BYTES,
    FetchLimits,
    FetchRequest,
    Headers,
    PartialBody,
    header_value,
)
from crawld.net.partial import check_rest, check_start, partial_body

FREE_CHUNKS = 65_536
"""Chunks of a body that are always allowed, of any size."""

CHUNK_BYTES = 16
"""Mean size of the chunks beyond these; the shortest server-sent event is as long."""

PACE_MEMORY_S = 1.0
"""How long a body that comes slower than it may keeps the right to catch up."""

PAUSE_CHUNKS = 64
"""Chunks received in one turn of the event loop, 20 us each."""


class BodyReader:
    """Reads and decodes the body of one response, under the limits and hooks of its request.

    Raises:
        FetchError: `DECODING`: a content coding that was not offered; `TOO_LARGE`: Content-Length
            exceeds the limit.

    Attributes:
        wire_bytes: body bytes as sent, without framing.
        cut: whether reading stopped at a limit.
    """

    def __init__(
        self,
        request: FetchRequest,
        status: int,
        headers: Headers,
        buffer: BodyBuffer,
        marks: Marks = NO_MARKS,
    ) -> None:
        limits = self._limits = _limits_of(request)
        cut = request.cut or request.first_bytes is not None
        self._cuts = cut
        stated = header_value(headers, "content-length") or ""
        too_large = stated.isdecimal() and int(stated) > limits.max_wire_bytes
        if too_large and not cut:
            raise FetchError(Failure.TOO_LARGE, f"{stated} bytes in Content-Length")
        self._request = request
        self._status = status
        self._headers = headers
        self._accept = request.accept
        self._sink = request.receive(status, headers) if request.receive else None
        # Only a response of this status continues the partial body of a request.
        self._partial = request.partial if status == 206 else None
        if self._partial is not None:
            check_rest(self._partial, headers)
        self._start: tuple[int, int | None] | None = None
        if request.first_bytes is not None and status == 206:
            self._start = check_start(request.first_bytes, headers)
        self._decoder = Decoder(header_value(headers, "content-encoding"), limits.max_body_bytes)
        self._buffer = buffer
        self._marks = marks
        if self._decoder.is_coded and not request.decode:
            raise FetchError(Failure.DECODING, "in quarantine: its content coding is not removed")
        self._chunks = 0
        self._prefix = b""
        self.wire_bytes = 0
        self.cut = False
        self._is_taken = False
        self._paced_until = 0.0 if request.max_bytes_per_s is None else trio.current_time()
        self._decoded_bytes = 0

    @property
    def is_rest(self) -> bool:
        """Whether the response continues the partial body of the request."""
        return self._partial is not None

    @property
    def is_start(self) -> bool:
        """Whether the response is the start of a body, as it was asked for."""
        return self._start is not None

    @property
    def is_part(self) -> bool:
        """Whether the whole body is, or may be, longer than what was read."""
        return self.cut or (self._start is not None and self._start[0] != self._start[1])

    @property
    def proves_end(self) -> bool:
        """Whether the body's content coding shows that it is complete."""
        return self._decoder.proves_end

    async def read(self, stream: AsyncIterable[bytes]) -> bytes:
        """Read the body to its end and return it decoded.

        Raises:
            FetchError: `TOO_LARGE`, `DECODING`, `TRUNCATED`, or the failure that `accept` returns.
        """
        try:
            if self._partial is not None:
                await self._gather([self._partial.body])
            async for chunk in stream:
                await self._receive(chunk)
            await self._gather(self._marked(self._decoder.finish()))
        except FetchError as fault:
            if not (self._cuts and fault.failure is Failure.TOO_LARGE):
                raise
            self.cut = True
        self._check_accepted(self._prefix)
        self._is_taken = True
        body = self._buffer.take()[: self._limits.max_body_bytes]
        if self._partial is not None and len(body) != self._partial.total_bytes:
            text = f"{len(body)} of {self._partial.total_bytes} bytes with the range"
            raise FetchError(Failure.PROTOCOL, text)
        if self._start is not None and not self.cut and len(body) != self._start[0]:
            text = f"{len(body)} of {self._start[0]} bytes of the range"
            raise FetchError(Failure.TRUNCATED, text)
        return body

    def take_partial(self) -> PartialBody | None:
        """Return the start of a body that broke off, if it can be continued."""
        whole = self._is_taken or self._decoder.is_coded or self._sink is not None
        if whole or not self._request.keeps_partial:
            return None
        body = self._buffer.take()
        found = partial_body(self._status, self._headers, body, self._partial)
        return replace(found, lease=self._buffer.lease) if found else None

    async def _receive(self, chunk: bytes) -> None:
        limit = self._limits.max_wire_bytes
        room = limit - self.wire_bytes
        self.wire_bytes += len(chunk)
        decoded_before = self._decoded_bytes
        self._chunks += 1
        if not self._chunks % PAUSE_CHUNKS:
            await self._pause()
        await self._gather(self._marked(self._decoder.decode(chunk[:room])))
        if len(chunk) > room:
            raise FetchError(Failure.TOO_LARGE, f"more than {limit} bytes sent")
        # The decoded bytes were paced on their way to the sink.
        await self._pace(len(chunk) - (self._decoded_bytes - decoded_before))

    async def _pause(self) -> None:
        """Let others run, and refuse a body of too many chunks."""
        if self._chunks > FREE_CHUNKS + self.wire_bytes // CHUNK_BYTES:
            text = f"{self._chunks} chunks with {self.wire_bytes} bytes"
            raise FetchError(Failure.PROTOCOL, text)
        await trio.lowlevel.checkpoint()

    async def _pace(self, size_bytes: int) -> None:
        """Wait to keep below `max_bytes_per_s`; unread bytes slow the sender down.

        A pause of the sender gives it no right to a flood afterwards.
        """
        bytes_per_s = self._request.max_bytes_per_s
        if bytes_per_s is not None and size_bytes > 0:
            since = max(self._paced_until, trio.current_time() - PACE_MEMORY_S)
            self._paced_until = since + size_bytes / bytes_per_s
            await trio.sleep_until(self._paced_until)

    def _marked(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Mark the URL during each step of its decoder, and not while a piece is handled."""
        if not self._decoder.is_coded:
            return pieces
        return self._mark_steps(pieces)

    def _mark_steps(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        url = self._request.url
        while True:
            with self._marks.under(url, Step.DECODING):
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece

    async def _gather(self, pieces: Iterable[bytes]) -> None:
        for position, piece in enumerate(pieces):
            if position:
                # One chunk can decode to many pieces; other hosts must not wait for all of them.
                await trio.lowlevel.checkpoint()
            if not piece:
                continue
            if self._sink is not None:
                self._decoded_bytes += len(piece)
                await self._sink(piece)
                await self._pace(len(piece))
                continue
            size_bytes = self._buffer.size_bytes + len(piece)
            if size_bytes > self._buffer.room_bytes:
                await self._buffer.grow(size_bytes)
            self._buffer.append(piece)
            if self._accept is not None:
                self._prefix += piece[: PREFIX_BYTES - len(self._prefix)]
                if len(self._prefix) == PREFIX_BYTES:
                    self._check_accepted(self._prefix)

    def _check_accepted(self, prefix: bytes) -> None:
        """Call the request's `accept` hook, once."""
        if self._accept is None:
            return
        accept, self._accept = self._accept, None
        failure = accept(self._status, self._headers, prefix)
        if failure is not None:
            kind = header_value(self._headers, "content-type") or "no Content-Type"
            raise FetchError(failure, f"not accepted: {kind[:80]}")


def _limits_of(request: FetchRequest) -> FetchLimits:
    """Return the limits of a body, of which only the first bytes may be wanted."""
    limits, first_bytes = request.limits, request.first_bytes
    if first_bytes is None or first_bytes >= limits.max_body_bytes:
        return limits
    # On the wire a coded body may be longer than what it decodes to.
    return replace(limits, max_body_bytes=first_bytes)
