"""Decodes Content-Encoding piece by piece, with a limit on the output.

At most one piece is buffered here: a decompression bomb stops at most `PIECE_BYTES` after the
limit. In a chain (`gzip, gzip`) each stage has the full limit, so that a small final result cannot
hide a large intermediate one.

zlib bounds its own output. zstandard's streaming object does not, but four bytes of input give at
most one block of 128 KiB (RFC 8878, section 3.1.1.2). The input is therefore fed in slices so small
that the output of one cannot exceed the rest of the limit.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import zstandard

from crawld.core.page import Failure
from crawld.net.errors import FetchError

PIECE_BYTES = 256 * 1024
MAX_CODINGS = 3
ACCEPT_ENCODING = "gzip, deflate, zstd"

_ZSTD_EXPANSION = 32 * 1024
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
"""The largest window that a web server may require (RFC 9659)."""
_MIN_SLICE_BYTES = 16


class _Stage(Protocol):
    def decode(self, data: bytes) -> Iterator[bytes]: ...

    def finish(self) -> Iterator[bytes]: ...


class _OutputLimit:
    """The remaining output bytes of one stage."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def take(self, piece: bytes) -> Iterator[bytes]:
        """Yield a piece; beyond the limit, yield the part that fits (for `cut`), then fail."""
        yield piece[: self.left]
        self.left -= len(piece)
        if self.left < 0:
            raise FetchError(Failure.TOO_LARGE, f"more than {self.limit} bytes after decompression")


def _mismatch(error: Exception) -> FetchError:
    text = f"the body does not match its Content-Encoding: {error}"
    return FetchError(Failure.DECODING, text)


def _incomplete() -> FetchError:
    return FetchError(Failure.TRUNCATED, "the compressed body is incomplete")


class _Inflater:
    """Decodes gzip (any number of members) or deflate (zlib-wrapped or raw)."""

    def __init__(self, coding: str, bound: _OutputLimit) -> None:
        self._gzip = coding == "gzip"
        self._bound = bound
        self._held = b""
        self._stream: zlib._Decompress | None = None
        self._ended = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        data = self._held + data
        self._held = b""
        while data:
            if self._stream is None and not self._begin(data):
                return
            data, piece = self._step(data)
            if piece:
                yield from self._bound.take(piece)

    def finish(self) -> Iterator[bytes]:
        if self._stream is not None:
            yield from self._bound.take(self._stream.flush())
            if not self._stream.eof:
                raise _incomplete()
        elif self._held and not self._ended:
            raise _incomplete()

    def _begin(self, data: bytes) -> bool:
        """Start the next member; return False if these bytes do not start one (yet)."""
        if len(data) < 2:
            self._held = data
            return False
        if self._ended and not (self._gzip and data.startswith(b"\x1f\x8b")):
            # Padding after the last member; browsers ignore it too.
            return False
        self._stream = zlib.decompressobj(31 if self._gzip else _deflate_wbits(data))
        return True

    def _step(self, data: bytes) -> tuple[bytes, bytes]:
        stream = self._stream
        assert stream is not None
        try:
            piece = stream.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            raise _mismatch(error) from error
        if not stream.eof:
            return stream.unconsumed_tail, piece
        self._stream = None
        self._ended = True
        return stream.unused_data, piece


def _deflate_wbits(data: bytes) -> int:
    """Return zlib's wbits for a body: zlib-wrapped (RFC 1950), or raw as some servers send."""
    wrapped = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
    return 15 if wrapped else -15


class _Zstandard:
    """Decodes zstd, any number of frames."""

    def __init__(self, bound: _OutputLimit) -> None:
        self._bound = bound
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._frame: zstandard.ZstdDecompressionObj | None = None

    def decode(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            size = max(_MIN_SLICE_BYTES, self._bound.left // _ZSTD_EXPANSION)
            try:
                piece = self._frame.decompress(data[:size])
            except zstandard.ZstdError as error:
                raise _mismatch(error) from error
            data = data[size:]
            if self._frame.eof:
                data = self._frame.unused_data + data
                self._frame = None
            if piece:
                yield from self._bound.take(piece)

    def finish(self) -> Iterator[bytes]:
        if self._frame is not None:
            raise _incomplete()
        return iter(())


class Decoder:
    """Decodes the content codings of one body; `max_body_bytes` limits the output.

    Raises:
        FetchError: `DECODING`: a coding that was not offered. `decode` and `finish` also raise
            `TOO_LARGE` and `TRUNCATED`.
    """

    def __init__(self, content_encoding: str | None, max_body_bytes: int) -> None:
        names = [name.strip().lower() for name in (content_encoding or "").split(",")]
        codings = [name for name in names if name and name != "identity"]
        if len(codings) > MAX_CODINGS:
            raise FetchError(Failure.DECODING, f"{len(codings)} content codings on one body")
        self._plain = _OutputLimit(max_body_bytes)
        self._stages = [_stage(name, _OutputLimit(max_body_bytes)) for name in reversed(codings)]

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded form of more bytes of the body, in pieces of limited size."""
        if not self._stages:
            yield from self._plain.take(data)
            return
        yield from self._through(0, data)

    def finish(self) -> Iterator[bytes]:
        """Yield what remains after the last byte, after checking that the body is complete."""
        for position, stage in enumerate(self._stages):
            for piece in stage.finish():
                yield from self._through(position + 1, piece)

    def _through(self, position: int, data: bytes) -> Iterator[bytes]:
        if position == len(self._stages):
            yield data
            return
        for piece in self._stages[position].decode(data):
            yield from self._through(position + 1, piece)


_STAGES: dict[str, Callable[[_OutputLimit], _Stage]] = {
    "gzip": lambda bound: _Inflater("gzip", bound),
    "x-gzip": lambda bound: _Inflater("gzip", bound),
    "deflate": lambda bound: _Inflater("deflate", bound),
    "zstd": _Zstandard,
}


def _stage(name: str, bound: _OutputLimit) -> _Stage:
    if name not in _STAGES:
        raise FetchError(Failure.DECODING, f"content coding {name[:20]!r} was not offered")
    return _STAGES[name](bound)
