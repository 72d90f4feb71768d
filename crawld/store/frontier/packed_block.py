"""Blocks of packed pages: the URLs of one site and depth on a host, in the order of discovery.

A verdict adds a small block. As soon as the last blocks together reach `BLOCK_PAGES`, or are
`MAX_TAILS`, they become one: so a page costs its compressed text and few bytes, and is compressed
two or three times.
"""

from __future__ import annotations

import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import apsw
import numpy as np
import numpy.typing as npt
import zstandard

from crawld.core.seen.texts import TextBlock
from crawld.errors import CorruptDatabaseError

BLOCK_PAGES: Final = 512
"""Pages of a full block; a smaller one is joined with those that come after it."""

MAX_TAILS: Final = 32
"""Blocks that wait for others to be joined with."""

MAX_PAGES: Final = 1 << 12
"""The most pages of a block: older files have such."""

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


@dataclass(frozen=True, slots=True)
class Columns:
    """Entries by attribute; see `PackedPage`."""

    texts: TextBlock
    found_at: npt.NDArray[np.float64]
    referrers: npt.NDArray[np.int64]

    @classmethod
    def of(cls, pages: Sequence[PackedPage]) -> Columns:
        """Return some entries."""
        return cls(
            TextBlock.of([page.url for page in pages]),
            np.fromiter((page.found_at for page in pages), _AT, len(pages)),
            np.fromiter((page.referrer_id for page in pages), _REFERRER, len(pages)),
        )

    @classmethod
    def join(cls, some: Sequence[Columns]) -> Columns:
        """Return all entries, in order."""
        return cls(
            TextBlock.join([each.texts for each in some]),
            np.concatenate([each.found_at for each in some]),
            np.concatenate([each.referrers for each in some]),
        )

    def part(self, start: int, end: int) -> Columns:
        """Return the entries from position `start` to before `end`."""
        texts = self.texts.part(start, end)
        return Columns(texts, self.found_at[start:end], self.referrers[start:end])

    def pages(self) -> list[PackedPage]:
        """Return the entries one by one."""
        columns = self.texts.decoded(), self.found_at.tolist(), self.referrers.tolist()
        return [PackedPage(*each) for each in zip(*columns, strict=True)]

    def frame(self, compressor: zstandard.ZstdCompressor) -> bytes:
        """Return the entries as the frame of a block."""
        octets = self.found_at.astype(_AT, copy=False).tobytes()
        octets += self.referrers.astype(_REFERRER, copy=False).tobytes()
        return compressor.compress(octets + self.texts.pack())


class Queue(NamedTuple):
    """The packed pages of a site on a host that have the same depth."""

    host_id: int
    site_id: int
    depth: int


Group = tuple[Queue, int, int]
"""A queue, and where its entries start and end."""

_SMALL: Final = """
SELECT packed_block.host_id, site_id, depth, sum(pages), count(*)
FROM carray(?1) AS wanted CROSS JOIN packed_block ON packed_block.host_id = wanted.value
WHERE pages < ?2 GROUP BY 1, 2, 3
"""


def append(connection: apsw.Connection, groups: Sequence[Group], entries: Columns) -> None:
    """Add the entries of some queues, each after all others of its queue."""
    hosts = sorted({queue.host_id for queue, _, _ in groups})
    rows = connection.execute(_SMALL, (apsw.carray(array.array("q", hosts)), BLOCK_PAGES))
    small = {(host, site, depth): (pages, blocks) for host, site, depth, pages, blocks in rows}
    compress = compressor(TAIL_LEVEL)
    added = []
    for queue, start, end in groups:
        pages, blocks = small.get(queue, (0, 0))
        if pages + end - start < BLOCK_PAGES and blocks < MAX_TAILS:
            frame = entries.part(start, end).frame(compress)
            added.append((*queue, end - start, frame))
        else:
            _join(connection, queue, entries.part(start, end))
    connection.executemany(_INSERT, added)


_TAILS: Final = """
SELECT packed_block_id, pages FROM packed_block WHERE host_id = ? AND site_id = ? AND depth = ?
ORDER BY packed_block_id DESC LIMIT ?
"""


def _join(connection: apsw.Connection, queue: Queue, entries: Columns) -> None:
    """Add entries to a queue in a block with those of its last blocks that are small."""
    tails: list[int] = []
    rows: list[Any] = connection.execute(_TAILS, (*queue, MAX_TAILS)).fetchall()
    for block_id, size in rows:
        if size >= BLOCK_PAGES:
            break
        tails.append(block_id)
    before = []
    for block_id in reversed(tails):
        before.append(_columns(connection, block_id))
        delete(connection, block_id)
    append_full(connection, queue, Columns.join([*before, entries]))


def append_full(
    connection: apsw.Connection, queue: Queue, entries: Columns, *, level: int | None = None
) -> None:
    """Add entries after all others of a queue, in full blocks, of which the last may be small."""
    compress = compressor(BLOCK_LEVEL if level is None else level)
    count = len(entries.texts)
    starts = range(0, count, BLOCK_PAGES)
    parts = ((start, min(start + BLOCK_PAGES, count)) for start in starts)
    rows = [(*queue, end - start, entries.part(start, end).frame(compress)) for start, end in parts]
    connection.executemany(_INSERT, rows)


_INSERT: Final = """
INSERT INTO packed_block (host_id, site_id, depth, pages, entries) VALUES (?, ?, ?, ?, ?)
"""


def compressor(level: int) -> zstandard.ZstdCompressor:
    """Return a compressor whose frames tell damage."""
    return zstandard.ZstdCompressor(level=level, write_checksum=True)


def replace(connection: apsw.Connection, block_id: int, pages: Sequence[PackedPage]) -> None:
    """Store what is left of a block; remove it if that is nothing."""
    if not pages:
        delete(connection, block_id)
        return
    connection.execute(
        "UPDATE packed_block SET pages = ?, entries = ? WHERE packed_block_id = ?",
        (len(pages), pack(pages, TAIL_LEVEL), block_id),
    )


def read(connection: apsw.Connection, block_id: int) -> list[PackedPage]:
    """Return the pages of a block.

    Raises:
        CorruptDatabaseError: the block is damaged.
    """
    return _columns(connection, block_id).pages()


def _columns(connection: apsw.Connection, block_id: int) -> Columns:
    row: tuple[Any, ...] = connection.execute(
        "SELECT entries, pages FROM packed_block WHERE packed_block_id = ?", (block_id,)
    ).get
    return unpack(*row)


def take(connection: apsw.Connection, block_id: int) -> list[PackedPage]:
    """Remove a block; return its pages."""
    pages = read(connection, block_id)
    delete(connection, block_id)
    return pages


def take_first(connection: apsw.Connection, block_id: int, most: int) -> list[PackedPage]:
    """Remove the first pages of a block, all if it has no more; return them."""
    pages = read(connection, block_id)
    replace(connection, block_id, pages[most:])
    return pages[:most]


def delete(connection: apsw.Connection, block_id: int) -> None:
    """Remove a block."""
    connection.execute("DELETE FROM packed_block WHERE packed_block_id = ?", (block_id,))


def pack(pages: Sequence[PackedPage], level: int) -> bytes:
    """Return pages as the frame of a block."""
    return Columns.of(pages).frame(compressor(level))


def unpack(frame: bytes, count: int) -> Columns:
    """Return the entries of a frame.

    Raises:
        CorruptDatabaseError: the frame does not hold `count` entries.
    """
    try:
        whole = zstandard.ZstdDecompressor().decompress(frame)
        found_at = np.frombuffer(whole, _AT, count)
        referrers = np.frombuffer(whole, _REFERRER, count, count * _AT.itemsize)
        texts = TextBlock.unpack(whole[count * _HEAD_BYTES :], count)
    except (zstandard.ZstdError, ValueError) as error:
        raise CorruptDatabaseError(f"a block of packed pages is damaged ({error})") from error
    if count and texts.ends[-1] != len(texts.octets):
        raise CorruptDatabaseError("a block of packed pages is damaged (its lengths do not add up)")
    return Columns(texts, found_at, referrers)


def blocks(connection: apsw.Connection, queue: Queue) -> Iterator[int]:
    """Yield the blocks of a queue in order."""
    sql = (
        "SELECT packed_block_id FROM packed_block WHERE host_id = ? AND site_id = ? AND depth = ?"
        " ORDER BY packed_block_id"
    )
    rows: list[Any] = connection.execute(sql, queue).fetchall()
    for (block_id,) in rows:
        yield block_id
