"""Bodies by digest: compressed once, stored once, however many pages and versions show them.

`encode` is pure and costs most of the work (a hash and zstd), so that the caller runs it before
the write, off the writer's thread. A body that zstd does not make smaller by an eighth (images,
archives) is kept as it is: reading it back then costs nothing.

A `ZstdCompressor` must not be used by two threads at a time, therefore each thread has its own.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from typing import Final

import apsw
import zstandard

from crawld.errors import CorruptDatabaseError

LEVEL: Final = 3
"""53 µs for a 26 KB page at a quarter of its size; higher levels cost more than they save."""

DIGEST_BYTES: Final = 16

IDENTITY: Final = "identity"
ZSTD: Final = "zstd"

_MIN_SAVING: Final = 8
"""Compressed only if it saves at least one part in this many."""

_local = threading.local()


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """A body as it will be stored.

    Attributes:
        digest: blake2b of the decoded body, 16 bytes.
        encoding: `identity` or `zstd`.
        size_bytes: length of the decoded body.
        data: the stored bytes.
    """

    digest: bytes
    encoding: str
    size_bytes: int
    data: bytes


def digest(content: bytes) -> bytes:
    """Return the key of a body: blake2b, 16 bytes."""
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


def encode(content: bytes, content_digest: bytes | None = None) -> EncodedBody:
    """Return a body as it will be stored; pure, for any thread.

    Args:
        content: the decoded body.
        content_digest: its digest, where the caller has it already.
    """
    key = digest(content) if content_digest is None else content_digest
    packed = _compressor().compress(content)
    if len(packed) > len(content) - len(content) // _MIN_SAVING:
        return EncodedBody(key, IDENTITY, len(content), content)
    return EncodedBody(key, ZSTD, len(content), packed)


def decode(encoding: str, size_bytes: int, data: bytes) -> bytes:
    """Return the body that was encoded.

    Raises:
        CorruptDatabaseError: the stored bytes are not what was stored.
    """
    try:
        content = data if encoding == IDENTITY else _decompressor().decompress(data, size_bytes)
    except zstandard.ZstdError as error:
        raise _damaged() from error
    if len(content) != size_bytes:
        raise _damaged()
    return content


def _damaged() -> CorruptDatabaseError:
    return CorruptDatabaseError(
        "a stored body cannot be decompressed", hint="look at the file with: crawld doctor"
    )


def _compressor() -> zstandard.ZstdCompressor:
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=LEVEL)
    compressor: zstandard.ZstdCompressor = _local.compressor
    return compressor


def _decompressor() -> zstandard.ZstdDecompressor:
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    decompressor: zstandard.ZstdDecompressor = _local.decompressor
    return decompressor


def ensure(connection: apsw.Connection, encoded: EncodedBody) -> int:
    """Return the body_id of a body, stored if it is not yet."""
    known = connection.execute("SELECT body_id FROM body WHERE digest = ?", (encoded.digest,)).get
    if known is not None:
        return int(known)
    connection.execute(
        "INSERT INTO body (digest, encoding, size_bytes, data) VALUES (?, ?, ?, ?)",
        (encoded.digest, encoded.encoding, encoded.size_bytes, encoded.data),
    )
    return connection.last_insert_rowid()


def read(connection: apsw.Connection, body_id: int) -> bytes | None:
    """Return a decoded body, None if there is none of that number."""
    row = connection.execute(
        "SELECT encoding, size_bytes, data FROM body WHERE body_id = ?", (body_id,)
    ).fetchone()
    return decode(*row) if row else None
