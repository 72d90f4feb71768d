"""WARC files of anybody, read within bounds: a file may be cut off, damaged or made to harm.

Plain or compressed by gzip, a member a record or one for all. Nothing is believed about a length
before that many bytes have come; what a record holds beyond `MAX_BLOCK_BYTES` is passed over, and a
record that never ends, a header that never ends, or bytes that are no WARC end the reading with a
`DamagedArchiveError` that says where. What came before it is good.

Read here and not by warcio, whose lines and headers have no bound: a gzip member of a gigabyte of
the letter A is one line to it.
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
"""As much as a visit takes of a body by default."""

MAX_RECORD_BYTES: Final = 8 * 2**30
"""A record that unpacks to more is no record."""

_CHUNK_BYTES: Final = 64 * 1024
_GZIP: Final = b"\x1f\x8b"
_END: Final = re.compile(rb"\r?\n\r?\n")


class DamagedArchiveError(OperatorError):
    """An archive cannot be read any further; what came before is good."""


@dataclass(frozen=True, slots=True)
class WarcRecord:
    """A record of an archive.

    Attributes:
        kind: its WARC-Type, in lower case.
        fields: header fields by their names in lower case.
        block: its content; None where it is longer than `MAX_BLOCK_BYTES`.
        offset: where reading may begin again to meet this record first; None: nowhere before.
    """

    kind: str
    fields: dict[str, str]
    block: bytes | None
    offset: int | None


def read_warc(file: BinaryIO, start: int = 0) -> Iterator[WarcRecord]:
    """Yield the records of a WARC file.

    Args:
        file: open for reading and able to seek.
        start: the offset of a record to begin at.

    Raises:
        DamagedArchiveError: it is cut off or damaged, or no WARC file.
    """
    stream = _Stream(file, start)
    while stream.skip_blank_lines():
        offset = stream.record_offset
        head = stream.until_blank_line()
        fields = _fields(head, stream)
        length = _length(fields, stream)
        block = None
        if length <= MAX_BLOCK_BYTES:
            block = stream.take(length)
        else:
            stream.skip(length)
        yield WarcRecord(fields.get("warc-type", "").lower(), fields, block, offset)


def _fields(head: bytes, stream: _Stream) -> dict[str, str]:
    version, *lines = head.decode("utf-8", "replace").splitlines()
    if not version.startswith("WARC/"):
        raise stream.damaged("is no WARC record")
    fields: dict[str, str] = {}
    for line in lines:
        name, sign, value = line.partition(":")
        if sign and name.strip().lower() not in fields:
            fields[name.strip().lower()] = value.strip()
    return fields


def _length(fields: dict[str, str], stream: _Stream) -> int:
    text = fields.get("content-length", "")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise stream.damaged("is a record without a length")
    length = int(text)
    if length > MAX_RECORD_BYTES:
        raise stream.damaged(f"says it has {length} bytes")
    return length


class _Stream:
    """The bytes of the records, unpacked piece by piece.

    Attributes:
        record_offset: where in the file the record that comes next begins, None inside a member.
    """

    def __init__(self, file: BinaryIO, start: int) -> None:
        file.seek(start)
        self.record_offset: int | None = start
        self._file = file
        self._held = b""
        self._packed = b""
        self._member: zlib._Decompress | None = None
        self._member_at: int | None = start
        self._is_gzip = self._peek() == _GZIP

    def _peek(self) -> bytes:
        self._packed = self._file.read(_CHUNK_BYTES)
        return self._packed[:2]

    def damaged(self, what: str) -> DamagedArchiveError:
        """Return the error of what stands here."""
        name = getattr(self._file, "name", "the archive")
        return DamagedArchiveError(
            f"{name}: what is at byte {self._position()} {what}",
            hint="the records before it were read; copy the file again from where it came",
        )

    def _position(self) -> int:
        return self._file.tell() - len(self._packed)

    def skip_blank_lines(self) -> bool:
        """Pass over what separates records; False at the end of the file."""
        passed = 0
        self.record_offset = None
        while True:
            passed += len(self._held)
            self._held = self._held.lstrip(b"\r\n")
            if self._held:
                if not self._is_gzip:
                    self.record_offset = self._position() - len(self._held)
                return True
            if passed > MAX_HEADER_BYTES:
                raise self.damaged("is nothing but blank lines")
            if not self._more():
                return False
            self.record_offset = self._member_at

    def until_blank_line(self) -> bytes:
        """Return a header and pass over the blank line behind it."""
        while True:
            end = _END.search(self._held, 0, MAX_HEADER_BYTES)
            if end is not None:
                head, self._held = self._held[: end.start()], self._held[end.end() :]
                return head
            if len(self._held) > MAX_HEADER_BYTES:
                raise self.damaged("is no WARC record")
            if not self._more():
                raise self.damaged("is cut off")

    def take(self, length: int) -> bytes:
        """Return so many bytes."""
        parts, left = [], length
        while left:
            if not self._held and not self._more():
                raise self.damaged("is cut off")
            part, self._held = self._held[:left], self._held[left:]
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def skip(self, length: int) -> None:
        """Pass over so many bytes."""
        left = length
        while left:
            if not self._held and not self._more():
                raise self.damaged("is cut off")
            gone = min(left, len(self._held))
            self._held = self._held[gone:]
            left -= gone

    def _more(self) -> bool:
        """Add the next piece to what is held; False at the end of the file."""
        if not self._packed:
            self._packed = self._file.read(_CHUNK_BYTES)
        if not self._is_gzip:
            self._held, piece = self._held + self._packed, self._packed
            self._packed = b""
            return bool(piece)
        return self._unpack()

    def _unpack(self) -> bool:
        self._member_at = None
        while True:
            if not self._packed:
                self._packed = self._file.read(_CHUNK_BYTES)
            if not self._packed:
                if self._member is not None:
                    raise self.damaged("is cut off")
                return False
            if self._member is None:
                self._packed = self._packed.lstrip(b"\0")
                if not self._packed:
                    continue
                self._member_at = self._position()
                self._member = zlib.decompressobj(31)
            try:
                piece = self._member.decompress(self._packed, _CHUNK_BYTES)
            except zlib.error as error:
                raise self.damaged("cannot be unpacked") from error
            if self._member.eof:
                self._packed, self._member = self._member.unused_data, None
            else:
                self._packed = self._member.unconsumed_tail
            if piece:
                self._held += piece
                return True
