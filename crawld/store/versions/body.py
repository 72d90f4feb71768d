"""Bodies by digest: each content is compressed and stored once, for all pages and versions.

`encode` is pure and does most of the work (a hash and zstd), so that the caller runs it before the
write, off the writer's thread. A body that zstd does not make smaller by an eighth (images,
archives) is stored as it is: reading it back then costs nothing.

A body may be a delta: a zstd frame whose dictionary is another body, its base, which may be a delta
too. Reading follows the bases to a body that is no delta and decodes from there. `delta` decides
which bodies become deltas and bounds the chains; this module only reads and writes them.

Large data are written and read by SQLite's blob functions. A statement would hold two more copies
of them, one of them until the next use of the statement, and copy them with the interpreter locked.

Invariants: a body is read with the digest it was stored under, or reading raises; a chain has at
most `MAX_LINKS` links. Two threads must not use one `ZstdCompressor` at a time, so each has its
own.
"""

from __future__ import annotations

import hashlib
import threading
from functools import partial
from typing import Any, Final, NamedTuple

import apsw
import zstandard

from crawld.core.value_type import value_type
from crawld.errors import CorruptDatabaseError
from crawld.store.engine.in_parts import InParts, finish

LEVEL: Final = 2
"""A third to two fifths less time than level 3, and pages of 25 to 30 KB within 3 % of its size,
some smaller; higher levels cost more than they save."""

DELTA_LEVEL: Final = 9
"""A delta of revised pages is a quarter smaller than at level 3 for half as much time again
(135 µs at 40 KB); level 12 takes twenty times as long for a twentieth."""

DIGEST_BYTES: Final = 16

MAX_LINKS: Final = 256
"""More deltas in a row than `delta` ever creates: a longer chain is a cycle."""

IDENTITY: Final = "identity"
ZSTD: Final = "zstd"

_MIN_SAVING: Final = 8
"""Compressed only if it saves at least one part in this many."""

_LARGE_BYTES: Final = 256 * 1024
"""A longer body takes milliseconds to compress, a new compressor microseconds; and milliseconds to
copy, where opening it as a blob takes microseconds."""

_local = threading.local()


@value_type
class EncodedBody:
    """A body in its stored form.

    Attributes:
        digest: blake2b of the decoded body, 16 bytes.
        encoding: `identity` or `zstd`.
        size_bytes: length of the decoded body.
        text: of a body that has another form, such as PDF; stored by `document_text`.
    """

    digest: bytes
    encoding: str
    size_bytes: int
    data: bytes
    text: EncodedBody | None = None


def digest(content: bytes) -> bytes:
    """Return the key of a body: blake2b, 16 bytes."""
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()


def encode(content: bytes, content_digest: bytes | None = None) -> EncodedBody:
    """Return the stored form of a body; pure, for any thread.

    Args:
        content: the decoded body.
        content_digest: its digest, if the caller has it already.
    """
    key = digest(content) if content_digest is None else content_digest
    packed = _compress(_compressor(len(content)), content)
    if not saves(len(packed), len(content)):
        return EncodedBody(key, IDENTITY, len(content), content)
    return EncodedBody(key, ZSTD, len(content), packed)


def saves(packed_bytes: int, plain_bytes: int) -> bool:
    """Return whether a packed form is small enough to be worth decoding."""
    return packed_bytes <= plain_bytes - plain_bytes // _MIN_SAVING


def encode_delta(content: bytes, base: bytes) -> bytes:
    """Return a body as a zstd frame with another body as its dictionary; pure, for any thread.

    The window spans both bodies, so that it reaches everything an edit repeats.
    """
    parameters = zstandard.ZstdCompressionParameters.from_level(
        DELTA_LEVEL, source_size=len(content) + len(base), write_dict_id=False
    )
    dictionary = _dictionary(base) if base else None
    compressor = zstandard.ZstdCompressor(dict_data=dictionary, compression_params=parameters)
    return _compress(compressor, content)


def _compress(compressor: zstandard.ZstdCompressor, content: bytes) -> bytes:
    # The bytes that zstandard returns hold the memory of the largest frame there could be: some
    # hundred bodies wait for a commit.
    return memoryview(compressor.compress(content)).tobytes()


def decode(encoding: str, size_bytes: int, data: bytes, base: bytes | None = None) -> bytes:
    """Return the body that was encoded.

    Args:
        encoding: `identity` or `zstd`.
        base: the decoded base of a delta.

    Raises:
        CorruptDatabaseError: the stored bytes are damaged.
    """
    try:
        content = data if encoding == IDENTITY else _decompress(size_bytes, data, base)
    except zstandard.ZstdError as error:
        raise _damaged() from error
    if len(content) != size_bytes:
        raise _damaged()
    return content


def _decompress(size_bytes: int, data: bytes, base: bytes | None) -> bytes:
    if not base:
        return _decompressor().decompress(data, size_bytes)
    return zstandard.ZstdDecompressor(dict_data=_dictionary(base)).decompress(data, size_bytes)


def _dictionary(base: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _damaged() -> CorruptDatabaseError:
    return CorruptDatabaseError(
        "a stored body cannot be decompressed", hint="check the file with: crawld doctor"
    )


def _compressor(size_bytes: int) -> zstandard.ZstdCompressor:
    """Return the compressor of this thread; a large body gets one of its own.

    A compressor keeps the memory of its largest input, some megabytes a thread.
    """
    if size_bytes > _LARGE_BYTES:
        return zstandard.ZstdCompressor(level=LEVEL)
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
    """Return the body_id of a body; store the body if it is new."""
    return finish(ensure_in_parts(connection, encoded))


def ensure_in_parts(connection: apsw.Connection, encoded: EncodedBody) -> InParts[int]:
    """Do the same as `ensure`, with a large body stored apart."""
    known = connection.execute("SELECT body_id FROM body WHERE digest = ?", (encoded.digest,)).get
    if known is not None:
        return int(known)
    if len(encoded.data) > _LARGE_BYTES:
        yield partial(_insert_large, connection, encoded)
    else:
        connection.execute(_INSERT, _bindings(encoded, encoded.data))
    return connection.last_insert_rowid()


_INSERT: Final = "INSERT INTO body (digest, encoding, size_bytes, data) VALUES (?, ?, ?, ?)"


def _bindings(encoded: EncodedBody, data: bytes | apsw.zeroblob) -> tuple[object, ...]:
    return encoded.digest, encoded.encoding, encoded.size_bytes, data


def _insert_large(connection: apsw.Connection, encoded: EncodedBody) -> None:
    connection.execute(_INSERT, _bindings(encoded, apsw.zeroblob(len(encoded.data))))
    _write_data(connection, connection.last_insert_rowid(), encoded.data)


def _write_data(connection: apsw.Connection, body_id: int, data: bytes) -> None:
    with connection.blob_open("main", "body", "data", body_id, True) as blob:
        blob.write(data)


def put_encoding(
    connection: apsw.Connection, body_id: int, encoding: str, base_id: int | None, data: bytes
) -> None:
    """Store a body in another form; nothing happens if it no longer exists."""
    is_large = len(data) > _LARGE_BYTES
    connection.execute(
        "UPDATE body SET encoding = ?, base_id = ?, data = ? WHERE body_id = ?",
        (encoding, base_id, apsw.zeroblob(len(data)) if is_large else data, body_id),
    )
    if is_large and connection.changes():
        _write_data(connection, body_id, data)


def size_of(connection: apsw.Connection, body_id: int) -> int:
    """Return the decoded size of a body, 0 if the body_id does not exist."""
    size_bytes = connection.execute("SELECT size_bytes FROM body WHERE body_id = ?", (body_id,)).get
    return int(size_bytes or 0)


class _Link(NamedTuple):
    digest: bytes
    encoding: str
    size_bytes: int
    base_id: int | None
    data: bytes


_LINK: Final = f"""
SELECT digest, encoding, size_bytes, base_id,
    CASE WHEN length(data) <= {_LARGE_BYTES} THEN data END
FROM body WHERE body_id = ?
"""


def read(connection: apsw.Connection, body_id: int) -> bytes | None:
    """Return a decoded body, None if the body_id does not exist.

    Raises:
        CorruptDatabaseError: the stored bytes are damaged, or a base is missing.
    """
    links = _chain(connection, body_id)
    if not links:
        return None
    content: bytes | None = None
    for link in reversed(links):
        content = decode(link.encoding, link.size_bytes, link.data, content)
    if content is None or digest(content) != links[0].digest:
        raise _damaged()
    return content


def _chain(connection: apsw.Connection, body_id: int) -> list[_Link]:
    """Return a body and its bases, up to the one that is no delta."""
    links: list[_Link] = []
    following: int | None = body_id
    while following is not None:
        row: tuple[Any, ...] | None = connection.execute(_LINK, (following,)).fetchone()
        if row is None and not links:
            return links
        if row is None or len(links) == MAX_LINKS:
            raise _damaged()
        if row[-1] is None:
            row = (*row[:-1], _read_data(connection, following))
        links.append(_Link(*row))
        following = links[-1].base_id
    return links


def _read_data(connection: apsw.Connection, body_id: int) -> bytes:
    with connection.blob_open("main", "body", "data", body_id, False) as blob:
        data: bytes = blob.read()
    return data


def unused(connection: apsw.Connection) -> int:
    """Return the number of bodies that no version has; a delta may still need one of them."""
    sql = "SELECT count(*) FROM body WHERE body_id NOT IN (SELECT body_id FROM version)"
    count: int = connection.execute(sql).get
    return count
