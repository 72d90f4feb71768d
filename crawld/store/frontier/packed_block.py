"""Blocks of packed pages: the URLs of one site and depth on a host, in the order of discovery.

A visit adds a small block. As soon as the last blocks together reach `BLOCK_PAGES`, or are
`MAX_TAILS`, they become one: so a page costs its compressed text and few bytes, and is compressed
two or three times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import apsw
import numpy as np
import numpy.typing as npt
import zstandard

from crawld.core.seen.texts import TextBlock, decoded
from crawld.errors import CorruptDatabaseError

BLOCK_PAGES: Final = 512
"""Pages from which a block is no longer joined; a block has fewer than twice as many, except those
of a call that adds more.
"""

MAX_TAILS: Final = 32
"""Blocks that wait for others to be joined with."""

MAX_PAGES: Final = 1 << 12
"""The most pages of a block; below `NUMBERS` of `packed_list`."""

TAIL_LEVEL: Final = 1
BLOCK_LEVEL: Final = 6

_AT: Final = np.dtype("<f8")
_REFERRER: Final = np.dtype("<i8")
_HEAD_BYTES: Final = _AT.itemsize + _REFERRER.itemsize


class PackedPage(NamedTuple):
    """An entry of a block.

    Attributes:
        found_at: Unix seconds.
        referrer_id: page_id of the page that linked to it; 0: none.
    """

    url: str
    found_at: float
    referrer_id: int


class Columns(NamedTuple):
    """Entries by attribute; see `PackedPage`."""

    urls: Sequence[str]
    found_at: npt.NDArray[np.float64]
    referrers: npt.NDArray[np.int64]

    def part(self, start: int, end: int) -> Columns:
        """Return the entries from position `start` to before `end`."""
        return Columns(self.urls[start:end], self.found_at[start:end], self.referrers[start:end])


class Queue(NamedTuple):
    """The packed pages of a site on a host that have the same depth."""

    host_id: int
    site_id: int
    depth: int


_TAILS: Final = """
SELECT packed_block_id, pages FROM packed_block WHERE host_id = ? AND site_id = ? AND depth = ?
ORDER BY packed_block_id DESC LIMIT ?
"""


def append(connection: apsw.Connection, queue: Queue, pages: Sequence[PackedPage]) -> None:
    """Add pages after all others of a queue."""
    for start in range(0, len(pages), MAX_PAGES // 2):
        _append(connection, queue, pages[start : start + MAX_PAGES // 2])


def _append(connection: apsw.Connection, queue: Queue, pages: Sequence[PackedPage]) -> None:
    tails: list[int] = []
    joined = len(pages)
    rows: list[Any] = connection.execute(_TAILS, (*queue, MAX_TAILS)).fetchall()
    for block_id, size in rows:
        if size >= BLOCK_PAGES:
            break
        tails.append(block_id)
        joined += size
    if joined < BLOCK_PAGES and len(tails) < MAX_TAILS:
        _insert(connection, queue, pages, TAIL_LEVEL)
        return
    before: list[PackedPage] = []
    for block_id in reversed(tails):
        before += take(connection, block_id)
    _insert(connection, queue, [*before, *pages], BLOCK_LEVEL)


def append_full(connection: apsw.Connection, queue: Queue, pages: Columns) -> None:
    """Add many pages after all others of a queue, in blocks of their own."""
    for start in range(0, len(pages.urls), BLOCK_PAGES):
        part = pages.part(start, start + BLOCK_PAGES)
        _insert_frame(connection, queue, len(part.urls), _frame(part, BLOCK_LEVEL))


def _insert(
    connection: apsw.Connection, queue: Queue, pages: Sequence[PackedPage], level: int
) -> None:
    _insert_frame(connection, queue, len(pages), pack(pages, level))


def _insert_frame(connection: apsw.Connection, queue: Queue, pages: int, frame: bytes) -> None:
    connection.execute(
        "INSERT INTO packed_block (host_id, site_id, depth, pages, entries) VALUES (?, ?, ?, ?, ?)",
        (*queue, pages, frame),
    )


def replace(connection: apsw.Connection, block_id: int, pages: Sequence[PackedPage]) -> None:
    """Store other pages in a block; remove it if there are none."""
    if not pages:
        connection.execute("DELETE FROM packed_block WHERE packed_block_id = ?", (block_id,))
        return
    connection.execute(
        "UPDATE packed_block SET pages = ?, entries = ? WHERE packed_block_id = ?",
        (len(pages), pack(pages, BLOCK_LEVEL), block_id),
    )


def read(connection: apsw.Connection, block_id: int) -> list[PackedPage]:
    """Return the pages of a block.

    Raises:
        CorruptDatabaseError: the block is damaged.
    """
    row: tuple[Any, ...] = connection.execute(
        "SELECT entries, pages FROM packed_block WHERE packed_block_id = ?", (block_id,)
    ).get
    return unpack(*row)


def take(connection: apsw.Connection, block_id: int) -> list[PackedPage]:
    """Remove a block; return its pages."""
    pages = read(connection, block_id)
    connection.execute("DELETE FROM packed_block WHERE packed_block_id = ?", (block_id,))
    return pages


def pack(pages: Sequence[PackedPage], level: int) -> bytes:
    """Return pages as the frame of a block."""
    found_at = np.fromiter((page.found_at for page in pages), _AT, len(pages))
    referrers = np.fromiter((page.referrer_id for page in pages), _REFERRER, len(pages))
    return _frame(Columns([page.url for page in pages], found_at, referrers), level)


def _frame(pages: Columns, level: int) -> bytes:
    octets = pages.found_at.astype(_AT).tobytes() + pages.referrers.astype(_REFERRER).tobytes()
    whole = octets + TextBlock.of(pages.urls).pack()
    return zstandard.ZstdCompressor(level=level, write_checksum=True).compress(whole)


def unpack(frame: bytes, count: int) -> list[PackedPage]:
    """Return the pages of a frame.

    Raises:
        CorruptDatabaseError: the frame does not hold `count` pages.
    """
    try:
        whole = zstandard.ZstdDecompressor().decompress(frame)
        found_at = np.frombuffer(whole, _AT, count).tolist()
        referrers = np.frombuffer(whole, _REFERRER, count, count * _AT.itemsize).tolist()
        texts = TextBlock.unpack(whole[count * _HEAD_BYTES :], count)
    except (zstandard.ZstdError, ValueError) as error:
        raise CorruptDatabaseError(f"a block of packed pages is damaged ({error})") from error
    urls = map(decoded, texts.take(np.arange(count)))
    return [PackedPage(*each) for each in zip(urls, found_at, referrers, strict=True)]


def blocks(connection: apsw.Connection, queue: Queue) -> Iterator[int]:
    """Yield the blocks of a queue in order."""
    sql = (
        "SELECT packed_block_id FROM packed_block WHERE host_id = ? AND site_id = ? AND depth = ?"
        " ORDER BY packed_block_id"
    )
    rows: list[Any] = connection.execute(sql, queue).fetchall()
    for (block_id,) in rows:
        yield block_id
