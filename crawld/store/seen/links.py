"""Links to URLs that may be known: their texts, and what becomes of those that are new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import zstandard

from crawld.core.seen.place import Places, places_of
from crawld.core.seen.run import Positions
from crawld.core.seen.texts import TextBlock
from crawld.errors import CorruptDatabaseError

_LEVEL: Final = 1
"""A link is written and read twice."""

FACTS: Final = np.dtype(
    [
        ("site", "<u2"),
        ("depth", "<u2"),
        ("told", "?"),
        ("host", "<i8"),
        ("found_at", "<f8"),
        ("referrer", "<i8"),
    ]
)
"""What a link says but for its URL: site_id, links from a seed, whether the URL was told to be new
and is packed already, host_id, Unix seconds, and the page_id of the page that linked, 0 for none.
"""

_OCTETS: Final = f"V{FACTS.itemsize}"

MAX_DEPTH: Final = (1 << 16) - 1


@dataclass(frozen=True, slots=True)
class Links:
    """Links in order of arrival.

    Attributes:
        facts: see `FACTS`; a site_id is at most `crawld.core.seen.place.MAX_SITE`, a depth
            `MAX_DEPTH`.
        texts: their URLs.
    """

    facts: npt.NDArray[np.void]
    texts: TextBlock

    @classmethod
    def join(cls, some: Sequence[Self]) -> Self:
        """Return all links, in order."""
        octets = [np.zeros(0, _OCTETS), *(each.facts.view(_OCTETS) for each in some)]
        return cls(
            np.concatenate(octets).view(FACTS), TextBlock.join([each.texts for each in some])
        )

    @classmethod
    def unpack(cls, frame: bytes, count: int) -> Self:
        """Return the links of a frame.

        Raises:
            CorruptDatabaseError: the frame does not hold `count` links.
        """
        facts, at = np.empty(count, FACTS), 0
        try:
            whole = zstandard.ZstdDecompressor().decompress(frame)
            for name, (column, *_) in (FACTS.fields or {}).items():
                facts[name] = np.frombuffer(whole, column, count, at)
                at += count * column.itemsize
            texts = TextBlock.unpack(whole[at:], count)
        except (zstandard.ZstdError, ValueError) as error:
            raise CorruptDatabaseError(f"a block of links is damaged ({error})") from error
        if count and texts.ends[-1] != len(texts.octets):
            raise CorruptDatabaseError("a block of links is damaged (its lengths do not add up)")
        return cls(facts, texts)

    def pack(self) -> bytes:
        """Return the links as a frame, column by column."""
        columns = b"".join([self.facts[name].tobytes() for name in FACTS.names or ()])
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        return compressor.compress(columns + self.texts.pack())

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def places(self) -> Places:
        """Return the place of each."""
        return places_of(self.facts["site"], self.facts["depth"])

    def select(self, positions: Positions) -> Self:
        """Return the links at some positions, in their order."""
        # As mere bytes: numpy copies the fields of a record one by one.
        facts = self.facts.view(_OCTETS)[positions].view(FACTS)
        return type(self)(facts, self.texts.select(positions))

    def part(self, start: int, end: int) -> Self:
        """Return the links from position `start` to before `end`."""
        return type(self)(self.facts[start:end], self.texts.part(start, end))
