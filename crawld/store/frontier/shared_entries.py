"""Packed pages of many hosts as columns, and the frames of a shared block.

The pages of one site and depth on a host are neighbours, in the order of discovery. What they have
in common, the queue, is kept once: a host of one or two pages costs three or four bytes besides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import zstandard

from crawld.core.seen.run import Positions
from crawld.errors import CorruptDatabaseError
from crawld.store.frontier.packed_block import Columns, Queue, compressor, unpack

LEVEL: Final = 3
SHORT_LIVED_LEVEL: Final = 1

_NUMBER: Final = np.dtype("<i8")
_QUEUE_COLUMNS: Final = 4


@dataclass(frozen=True, slots=True)
class SharedEntries:
    """Entries by attribute.

    Attributes:
        hosts, sites, depths: the queue of each.
    """

    hosts: npt.NDArray[np.int64]
    sites: npt.NDArray[np.int64]
    depths: npt.NDArray[np.int64]
    columns: Columns

    @classmethod
    def join(cls, some: Sequence[Self]) -> Self:
        """Return all entries, in order; of one part at least."""
        return cls(
            np.concatenate([each.hosts for each in some]),
            np.concatenate([each.sites for each in some]),
            np.concatenate([each.depths for each in some]),
            Columns.join([each.columns for each in some]),
        )

    @classmethod
    def unpack(cls, queues: SharedQueues, frame: bytes) -> Self:
        """Return the entries of a block.

        Raises:
            CorruptDatabaseError: the frame does not hold as many as the queues have.
        """
        counts = queues.counts
        columns = unpack(frame, int(counts.sum()))
        hosts, sites, depths = (
            np.repeat(each, counts) for each in (queues.hosts, queues.sites, queues.depths)
        )
        return cls(hosts, sites, depths, columns)

    def __len__(self) -> int:
        return len(self.hosts)

    def select(self, positions: Positions) -> Self:
        """Return the entries at some positions, in their order."""
        columns = Columns(
            self.columns.texts.select(positions),
            self.columns.found_at[positions],
            self.columns.referrers[positions],
        )
        queue = self.hosts[positions], self.sites[positions], self.depths[positions]
        return type(self)(*queue, columns)

    def ordered(self) -> Self:
        """Return the entries by host, site and depth; those of a queue in their order."""
        return self.select(np.lexsort((self.depths, self.sites, self.hosts)))

    def part(self, start: int, end: int) -> Self:
        """Return the entries from position `start` to before `end`."""
        of = slice(start, end)
        columns = self.columns.part(start, end)
        return type(self)(self.hosts[of], self.sites[of], self.depths[of], columns)

    def queues(self) -> SharedQueues:
        """Return the queues of ordered entries, and how many entries each has."""
        begins = begins_of(self.hosts, self.sites, self.depths)
        counts = np.diff(begins, append=len(self))
        return SharedQueues(self.hosts[begins], self.sites[begins], self.depths[begins], counts)

    def frame(self, level: int = LEVEL) -> bytes:
        """Return the entries without their queues, as a frame."""
        return self.columns.frame(compressor(level))


@dataclass(frozen=True, slots=True)
class SharedQueues:
    """The queues of a block in the order of its entries.

    Attributes:
        hosts: ascending.
        counts: how many entries each has.
    """

    hosts: npt.NDArray[np.int64]
    sites: npt.NDArray[np.int64]
    depths: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @classmethod
    def unpack(cls, frame: bytes) -> Self:
        """Return the queues that `pack` wrote.

        Raises:
            CorruptDatabaseError: the frame is damaged.
        """
        try:
            octets = np.frombuffer(zstandard.ZstdDecompressor().decompress(frame), np.uint8)
            numbers = octets.reshape(_QUEUE_COLUMNS, _NUMBER.itemsize, -1).transpose(0, 2, 1)
        except (zstandard.ZstdError, ValueError) as error:
            raise CorruptDatabaseError(f"the queues of a block are damaged ({error})") from error
        columns = np.ascontiguousarray(numbers).view(_NUMBER)[..., 0]
        return cls(np.cumsum(columns[0]), columns[1], columns[2], columns[3])

    def pack(self) -> bytes:
        """Return the queues as a frame: steps from host to host, first bytes of all together."""
        steps = np.diff(self.hosts, prepend=0)
        columns = np.stack([steps, self.sites, self.depths, self.counts]).astype(_NUMBER)
        octets = columns.view(np.uint8).reshape(_QUEUE_COLUMNS, -1, _NUMBER.itemsize)
        return compressor(LEVEL).compress(octets.transpose(0, 2, 1).tobytes())

    def __len__(self) -> int:
        return len(self.hosts)

    def groups(self) -> Iterator[tuple[Queue, int, int]]:
        """Yield each queue, and where its entries start and end."""
        ends = np.cumsum(self.counts)
        starts = ends - self.counts
        columns = (self.hosts, self.sites, self.depths, starts, ends)
        for host, site, depth, start, end in zip(*(each.tolist() for each in columns), strict=True):
            yield Queue(host, site, depth), start, end

    def count_of(self, host_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many entries each of some hosts has."""
        first = np.searchsorted(self.hosts, host_ids)
        last = np.searchsorted(self.hosts, host_ids, side="right")
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])
        count: npt.NDArray[np.int64] = before[last] - before[first]
        return count

    def select(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return some queues."""
        return type(self)(
            self.hosts[chosen], self.sites[chosen], self.depths[chosen], self.counts[chosen]
        )


def begins_of(*columns: npt.NDArray[np.integer]) -> Positions:
    """Return where a row differs from the one before it."""
    count = len(columns[0])
    begins = np.zeros(count, bool)
    begins[:1] = True
    for column in columns:
        begins[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(begins)


def bounds_of(*columns: npt.NDArray[np.integer]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each range of equal rows."""
    begins = begins_of(*columns).tolist()
    yield from pairwise([*begins, len(columns[0])] if begins else [])
