"""Decodes Content-Encoding piece by piece, with limits on output and work.

zlib bounds its own output. zstandard's streaming object does not, but four bytes of input give at
most one block of 128 KiB (RFC 8878, section 3.1.1.2). The input is therefore fed in slices so small
that the output of one cannot exceed the rest of the limit.

Output alone does not bound the work: empty members and blocks have none. So every stage of a chain
(`gzip, gzip`) counts into one `_Work`, and three limits hold for the chain as a whole:

- The output of each stage is at most `max_body_bytes`, and what one stage gives to the next at most
  `FREE_INNER_BYTES + INNER_EXPANSION * wire bytes`: compressed data hardly compress again.
- All stages together decode at most `FREE_MEMBERS + wire bytes / MEMBER_WIRE_BYTES` gzip members
  and zstd frames.
- After `PAUSE_WORK` units of work an empty piece is yielded, so that the caller can let others run
  and check its deadline.

No step copies more than it reads: after the end of a member, slices begin at about its size.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import zstandard

from crawld.core.page import Failure
from crawld.net.errors import FetchError

PIECE_BYTES = 256 * 1024
MAX_CODINGS = 3
ACCEPT_ENCODING = "gzip, deflate, zstd"

FREE_INNER_BYTES = 1024 * 1024
"""Bytes between two stages that are always allowed."""

INNER_EXPANSION = 16
"""Further bytes between two stages, per byte on the wire."""

FREE_MEMBERS = 1024
"""Members and frames of a body that are always allowed."""

MEMBER_WIRE_BYTES = 64
"""Each further member or frame needs so many bytes on the wire; an empty one has 20."""

PAUSE_WORK = 1_000_000
"""Units of work between two pieces: at most some 10 ms."""

INPUT_WORK = 16
"""Units per byte read. An output byte is one unit; tables of empty blocks cost 100 ns a byte."""

MEMBER_WORK = 2048
"""Units per member or frame: memory for its window, and calls."""

_SLICE_BYTES: Final = 32 * 1024
_ZSTD_SLICE_BYTES: Final = 128
"""A slice can decode to 4 MB, which many fetches may hold while they wait for memory."""

_ZSTD_EXPANSION: Final = 32 * 1024
_ZSTD_WINDOW_BYTES: Final = 8 * 1024 * 1024
"""The largest window that a web server may require (RFC 9659)."""
_MIN_SLICE_BYTES: Final = 16

_FOREIGN_CODINGS: Final = frozenset(
    {
        "aes128gcm", "br", "brotli", "bzip2", "compress", "dcb", "dcz", "exi", "lz4", "lzma",
        "pack200-gzip", "sdch", "snappy", "x-bzip2", "x-compress", "x-xz", "xz",
    }
)  # fmt: skip
"""Codings that are not decoded. Other unknown labels are mistakes, as `utf-8`, and mean nothing."""

_COMPRESSED_MAGIC: Final = (
    b"\x1f\x8b",
    b"\x1f\x9d",
    b"\x28\xb5\x2f\xfd",
    b"BZh",
    b"\xfd7zXZ",
)
"""How files of gzip, compress, zstd, bzip2 and xz begin."""

_NO_CODING: Final = frozenset({"identity", "none", "binary", "8bit", "7bit", "utf-8", "utf8"})
"""Labels that say that nothing is compressed, even if the page itself is a compressed file."""


class _Stage(Protocol):
    ended: bool

    def decode(self, data: bytes) -> Iterator[bytes]: ...

    def finish(self) -> Iterator[bytes]: ...


class _Work:
    """Work of one chain of codings.

    Attributes:
        piece_bytes: largest piece of zlib.
        wire_bytes: received so far.
        since_piece: units of work since the last piece.
    """

    __slots__ = ("members", "piece_bytes", "since_piece", "wire_bytes")

    def __init__(self, piece_bytes: int) -> None:
        self.piece_bytes = piece_bytes
        self.wire_bytes = 0
        self.members = 0
        self.since_piece = 0

    def count(self, read_bytes: int, written_bytes: int) -> bool:
        """Count a step; return whether it is time for a pause."""
        self.since_piece += read_bytes * INPUT_WORK + written_bytes
        return self.since_piece >= PAUSE_WORK

    def begin_member(self) -> None:
        """Count a member or frame, and refuse too many."""
        self.members += 1
        self.since_piece += MEMBER_WORK
        if self.members > FREE_MEMBERS + self.wire_bytes // MEMBER_WIRE_BYTES:
            text = f"{self.members} compressed parts in {self.wire_bytes} bytes"
            raise FetchError(Failure.DECODING, text)


class _OutputLimit:
    """The remaining output bytes of one stage; `inner`: its output goes to another stage."""

    __slots__ = ("inner", "left", "limit", "work")

    def __init__(self, limit: int, work: _Work, *, inner: bool = False) -> None:
        self.limit = limit
        self.left = limit
        self.work = work
        self.inner = inner

    def take(self, piece: bytes) -> Iterator[bytes]:
        """Yield a piece; beyond the limit, yield the part that fits (for `cut`), then fail."""
        if self.inner:
            self._check_inner(len(piece))
        yield piece if len(piece) <= self.left else piece[: self.left]
        self.left -= len(piece)
        if self.left < 0:
            raise FetchError(Failure.TOO_LARGE, f"more than {self.limit} bytes after decompression")

    def _check_inner(self, size_bytes: int) -> None:
        wire_bytes = self.work.wire_bytes
        given = self.limit - self.left + size_bytes
        if given > FREE_INNER_BYTES + INNER_EXPANSION * wire_bytes:
            text = f"{wire_bytes} bytes expand to {given} bytes that are compressed again"
            raise FetchError(Failure.TOO_LARGE, text)


def _mismatch(error: Exception) -> FetchError:
    text = f"the body does not match its Content-Encoding: {error}"
    return FetchError(Failure.DECODING, text)


def _incomplete() -> FetchError:
    return FetchError(Failure.TRUNCATED, "the compressed body is incomplete")


class _Inflater:
    """Decodes gzip (any number of members) or deflate (zlib-wrapped or raw).

    Attributes:
        ended: whether the last member is complete.
    """

    def __init__(self, coding: str, bound: _OutputLimit) -> None:
        self._gzip = coding == "gzip"
        self._bound = bound
        self._held = b""
        self._stream: zlib._Decompress | None = None
        self._padding = False
        self._slice_bytes = _SLICE_BYTES
        self._member_bytes = 0
        self.ended = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        if self._padding:
            return
        if self._held:
            data, self._held = self._held + data, b""
        work = self._bound.work
        position, size_bytes = 0, len(data)
        while position < size_bytes:
            if self._stream is None and not self._begin(data, position):
                return
            used, piece = self._step(data, position)
            position += used
            pause = work.count(used, len(piece))
            if piece:
                yield from self._bound.take(piece)
            elif pause:
                yield b""

    def finish(self) -> Iterator[bytes]:
        if self._stream is not None:
            yield from self._bound.take(self._stream.flush())
            if not self._stream.eof:
                raise _incomplete()
            self.ended = True
        elif self._held and not self.ended:
            raise _incomplete()

    def _begin(self, data: bytes, position: int) -> bool:
        """Start the next member; return False if these bytes do not start one (yet)."""
        if len(data) - position < 2:
            self._held = data[position:]
            return False
        if self.ended and not (self._gzip and data.startswith(b"\x1f\x8b", position)):
            # Padding after the last member; browsers ignore it too.
            self._padding = True
            return False
        self._bound.work.begin_member()
        self._member_bytes = 0
        self.ended = False
        wbits = 31 if self._gzip else _deflate_wbits(data[position : position + 2])
        self._stream = zlib.decompressobj(wbits)
        return True

    def _step(self, data: bytes, position: int) -> tuple[int, bytes]:
        """Decode one slice; return how many bytes were used, and a piece."""
        stream = self._stream
        assert stream is not None
        given = data[position : position + self._slice_bytes]
        try:
            piece = stream.decompress(given, self._bound.work.piece_bytes)
        except zlib.error as error:
            raise _mismatch(error) from error
        if not stream.eof:
            if self._slice_bytes < _SLICE_BYTES:
                self._slice_bytes = min(2 * self._slice_bytes, _SLICE_BYTES)
            used = len(given) - len(stream.unconsumed_tail)
            self._member_bytes += used
            return used, piece
        used = len(given) - len(stream.unused_data)
        # zlib copies what follows a member: a slice must not be much longer than its member.
        self._slice_bytes = min(max(64, 2 * (self._member_bytes + used)), _SLICE_BYTES)
        self._stream = None
        self.ended = True
        return used, piece


def _deflate_wbits(start: bytes) -> int:
    """Return zlib's wbits for a body: zlib-wrapped (RFC 1950), or raw as some servers send."""
    wrapped = start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0
    return 15 if wrapped else -15


class _Zstandard:
    """Decodes zstd, any number of frames.

    Attributes:
        ended: whether the last frame is complete.
    """

    def __init__(self, bound: _OutputLimit) -> None:
        self._bound = bound
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._slice_bytes = _MIN_SLICE_BYTES
        self._frame_bytes = 0
        self.ended = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        work = self._bound.work
        gathered: list[bytes] = []  # slices are short: a piece each would cost a pause each
        gathered_bytes = 0
        position, size_bytes = 0, len(data)
        while position < size_bytes:
            if self._frame is None:
                work.begin_member()
                self._frame_bytes = 0
                self.ended = False
                self._frame = self._decompressor.decompressobj()
            used, piece = self._step(self._frame, data, position)
            position += used
            pause = work.count(used, len(piece))
            if piece:
                gathered.append(piece)
                gathered_bytes += len(piece)
            if gathered_bytes >= _SLICE_BYTES or (gathered and position == size_bytes):
                yield from self._bound.take(b"".join(gathered))
                gathered, gathered_bytes = [], 0
            elif pause:
                yield b""

    def finish(self) -> Iterator[bytes]:
        if self._frame is not None:
            raise _incomplete()
        return iter(())

    def _step(
        self, frame: zstandard.ZstdDecompressionObj, data: bytes, position: int
    ) -> tuple[int, bytes]:
        """Decode one slice; return how many bytes were used, and a piece."""
        size = self._slice_bytes
        if size > self._bound.left // _ZSTD_EXPANSION:
            size = max(_MIN_SLICE_BYTES, self._bound.left // _ZSTD_EXPANSION)
        given = data[position : position + size]
        try:
            piece = frame.decompress(given)
        except zstandard.ZstdError as error:
            raise _mismatch(error) from error
        if len(piece) > PIECE_BYTES:
            self._slice_bytes = max(_MIN_SLICE_BYTES, self._slice_bytes // 8)
        elif self._slice_bytes < _ZSTD_SLICE_BYTES:
            self._slice_bytes = min(2 * self._slice_bytes, _ZSTD_SLICE_BYTES)
        used = len(given)
        if frame.eof:
            used -= len(frame.unused_data)
            after = 2 * (self._frame_bytes + used)
            self._slice_bytes = min(max(_MIN_SLICE_BYTES, after), _ZSTD_SLICE_BYTES)
            self._frame = None
            self.ended = True
        else:
            self._frame_bytes += used
        return used, piece


class _Mislabelled:
    """Passes on a body whose label names no coding, unless it is compressed after all."""

    def __init__(self, name: str, bound: _OutputLimit) -> None:
        self._name = name
        self._bound = bound
        self._held: bytes | None = b""
        self.ended = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        if self._held is not None:
            self._held += data
            if len(self._held) < max(map(len, _COMPRESSED_MAGIC)):
                return
            data = self._checked()
        yield from self._bound.take(data)

    def finish(self) -> Iterator[bytes]:
        if self._held:
            yield from self._bound.take(self._checked())

    def _checked(self) -> bytes:
        held, self._held = self._held or b"", None
        if held.startswith(_COMPRESSED_MAGIC):
            raise FetchError(Failure.DECODING, f"unknown content coding {self._name[:20]!r}")
        return held


class Decoder:
    """Decodes the content codings of one body; `max_body_bytes` limits the output.

    Pieces that zlib decodes have at most `piece_bytes` bytes.

    Labels that name no coding (`none`, `utf-8`) are ignored, as browsers do.

    Raises:
        FetchError: `DECODING`: a coding that was not offered. `decode` and `finish` also raise
            `TOO_LARGE` and `TRUNCATED`, and `DECODING` for too many members.
    """

    def __init__(
        self,
        content_encoding: str | None,
        max_body_bytes: int,
        *,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self._work = work = _Work(piece_bytes)
        self._plain = _OutputLimit(max_body_bytes, work)
        self._stages: list[_Stage] = []
        if not content_encoding:
            return
        codings, mistakes = _labels(content_encoding)
        if len(codings) > MAX_CODINGS:
            raise FetchError(Failure.DECODING, f"{len(codings)} content codings on one body")
        for name in reversed(codings):
            inner = len(self._stages) + 1 < len(codings)
            self._stages.append(_stage(name, _OutputLimit(max_body_bytes, work, inner=inner)))
        if mistakes and not codings:
            self._stages.append(_Mislabelled(mistakes[0], self._plain))

    @property
    def is_coded(self) -> bool:
        """Whether the body has a content coding."""
        return bool(self._stages)

    @property
    def proves_end(self) -> bool:
        """Whether the codings show that the body is complete: they mark its end."""
        return bool(self._stages) and all(stage.ended for stage in self._stages)

    def decode(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded form of more bytes of the body, in pieces of limited size.

        An empty piece is a pause after much work that gave no bytes.
        """
        work = self._work
        work.wire_bytes += len(data)
        if not self._stages:
            yield from self._plain.take(data)
            return
        for piece in self._through(0, data):
            work.since_piece = 0
            yield piece

    def finish(self) -> Iterator[bytes]:
        """Yield what remains after the last byte, after checking that the body is complete."""
        for position, stage in enumerate(self._stages):
            for piece in stage.finish():
                yield from self._through(position + 1, piece)

    def _through(self, position: int, data: bytes) -> Iterator[bytes]:
        if position == len(self._stages) or not data:
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


def _labels(content_encoding: str) -> tuple[list[str], list[str]]:
    """Return the codings that a header names, in order, and the labels that name none."""
    codings: list[str] = []
    mistakes: list[str] = []
    for written in content_encoding.split(","):
        name = written.partition(";")[0].strip(" \t\"'").lower()
        if name in _STAGES or name in _FOREIGN_CODINGS:
            codings.append(name)
        elif name and name not in _NO_CODING:
            mistakes.append(name)
    return codings, mistakes


def _stage(name: str, bound: _OutputLimit) -> _Stage:
    if name not in _STAGES:
        raise FetchError(Failure.DECODING, f"content coding {name[:20]!r} was not offered")
    return _STAGES[name](bound)
