"""Reads WARC files with bounded memory; a file may be truncated, damaged or malicious.

Files are plain or gzip, with one member per record or one for all. A declared length is not trusted
before its bytes have arrived. A block above `MAX_BLOCK_BYTES` is skipped. An endless record or
header, or bytes that are not WARC, raise `DamagedArchiveError` with the position; the records
before it are valid.

warcio is not used, since its lines and headers have no bound: it reads a gzip member of a gigabyte
of the letter A as one line.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from crawld.errors import OperatorError

MAX_HEADER_BYTES: Final = 64 * 1024
MAX_BLOCK_BYTES: Final = 64 * 2**20
"""Equal to the default body limit of a visit."""

MAX_RECORD_BYTES: Final = 8 * 2**30
"""A larger unpacked record counts as damaged."""

_CHUNK_BYTES: Final = 64 * 1024
_GZIP: Final = b"\x1f\x8b"
_END: Final = re.compile(rb"\r?\n\r?\n")


class DamagedArchiveError(OperatorError):
    """An archive is damaged; the records before the damage are valid."""


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """A record of an archive.

    Attributes:
        kind: WARC-Type in lower case.
        fields: header fields by lower-case name.
        block: the content block; None if it is longer than `MAX_BLOCK_BYTES`.
        offset: start position that makes this record the first; None inside a gzip member.
    """

    kind: str
    fields: dict[str, str]
    block: bytes | None
    offset: int | None


def read_warc(file: BinaryIO, start: int = 0) -> Iterator[WarcRecord]:
    """Yield the records of a WARC file from the one at offset `start` on.

    Raises:
        DamagedArchiveError: the file is truncated, damaged or not a WARC file.
    """
    stream = _Stream(file, start)
    while stream.skip_blank_lines():
        offset = stream.record_offset
        fields = _fields(stream.read_header(), stream)
        length = _length(fields, stream)
        if length <= MAX_BLOCK_BYTES:
            block = b"".join(stream.read(length))
        else:
            block = None
            for _ in stream.read(length):
                pass
        yield WarcRecord(fields.get("warc-type", "").lower(), fields, block, offset)


def _fields(head: bytes, stream: _Stream) -> dict[str, str]:
    version, *lines = head.decode("utf-8", "replace").splitlines()
    if not version.startswith("WARC/"):
        raise stream.damaged("not a WARC record")
    fields: dict[str, str] = {}
    for line in lines:
        name, sign, value = line.partition(":")
        if sign and name.strip().lower() not in fields:
            fields[name.strip().lower()] = value.strip()
    return fields


def _length(fields: dict[str, str], stream: _Stream) -> int:
    text = fields.get("content-length", "")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise stream.damaged("a record without a length")
    length = int(text)
    if length > MAX_RECORD_BYTES:
        raise stream.damaged(f"a record of {length} bytes")
    return length


class _Stream:
    """The decompressed bytes of a file, read in chunks.

    Attributes:
        record_offset: file offset of the next record, None inside a gzip member.
    """

    def __init__(self, file: BinaryIO, start: int) -> None:
        file.seek(start)
        self.record_offset: int | None = start
        self._file = file
        self._buffer = b""
        self._input = b""
        self._member: zlib._Decompress | None = None
        self._member_at: int | None = start
        self._is_gzip = self._peek() == _GZIP

    def _peek(self) -> bytes:
        self._input = self._file.read(_CHUNK_BYTES)
        return self._input[:2]

    def damaged(self, what: str) -> DamagedArchiveError:
        """Return a damage error with the current position."""
        name = getattr(self._file, "name", "the archive")
        return DamagedArchiveError(
            f"{name}, byte {self._position()}: {what}",
            hint="the records before it were imported; copy the file again from its source",
        )

    def _position(self) -> int:
        return self._file.tell() - len(self._input)

    def skip_blank_lines(self) -> bool:
        """Skip the blank lines between records; return False at the end of the file."""
        skipped = 0
        self.record_offset = None
        while True:
            skipped += len(self._buffer)
            self._buffer = self._buffer.lstrip(b"\r\n")
            if self._buffer:
                if not self._is_gzip:
                    self.record_offset = self._position() - len(self._buffer)
                return True
            if skipped > MAX_HEADER_BYTES:
                raise self.damaged("only blank lines")
            if not self._fill():
                return False
            self.record_offset = self._member_at

    def read_header(self) -> bytes:
        """Return a header and skip the blank line after it."""
        while True:
            end = _END.search(self._buffer, 0, MAX_HEADER_BYTES)
            if end is not None:
                head, self._buffer = self._buffer[: end.start()], self._buffer[end.end() :]
                return head
            if len(self._buffer) > MAX_HEADER_BYTES:
                raise self.damaged("not a WARC record")
            if not self._fill():
                raise self.damaged("truncated")

    def read(self, length: int) -> Iterator[bytes]:
        """Yield the next `length` bytes in parts."""
        while length:
            if not self._buffer and not self._fill():
                raise self.damaged("truncated")
            part, self._buffer = self._buffer[:length], self._buffer[length:]
            length -= len(part)
            yield part

    def _fill(self) -> bool:
        """Add a chunk to the buffer; return False at the end of the file."""
        if not self._input:
            self._input = self._file.read(_CHUNK_BYTES)
        if not self._is_gzip:
            self._buffer, chunk = self._buffer + self._input, self._input
            self._input = b""
            return bool(chunk)
        return self._decompress()

    def _decompress(self) -> bool:
        self._member_at = None
        while True:
            if not self._input:
                self._input = self._file.read(_CHUNK_BYTES)
            if not self._input:
                if self._member is not None:
                    raise self.damaged("truncated")
                return False
            if self._member is None:
                self._input = self._input.lstrip(b"\0")
                if not self._input:
                    continue
                self._member_at = self._position()
                self._member = zlib.decompressobj(31)
            try:
                chunk = self._member.decompress(self._input, _CHUNK_BYTES)
            except zlib.error as error:
                raise self.damaged("cannot be decompressed") from error
            if self._member.eof:
                self._input, self._member = self._member.unused_data, None
            else:
                self._input = self._member.unconsumed_tail
            if chunk:
                self._buffer += chunk
                return True
