"""DRUM over a flat file: the baseline whose cost grows with all that is known.

Source: Lee, Leonard, Wang, Loguinov 2008 (IRLbot), "Disk Repository with Update Management": keys
are in buckets by their upper bits; a batch is distributed to the buckets, each bucket's part is
sorted, and one sequential pass reads and writes the whole repository. A record has 39 bytes, as the
space that the UFMG study publishes (13,714 MB for 350 million URLs).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from crawld.bench.seen_files import KEY_BYTES, Ids, Records, make_durable
from crawld.core.seen.keys import distinct

RECORD_BYTES: Final = 39

_BUCKET_BITS: Final = 6


class Drum:
    """A repository of buckets, one after another in a file."""

    def __init__(self, folder: Path, record_bytes: int = RECORD_BYTES) -> None:
        self._path = folder / "repository"
        self._path.touch()
        self._payload_bytes = record_bytes - KEY_BYTES
        self._counts = [0] * (1 << _BUCKET_BITS)

    def check(self, ids: Ids) -> Ids:
        """Return the URLs of a batch that are new, each once, and keep them."""
        found = []
        with self._path.open("rb") as old, self._path.with_suffix(".new").open("wb") as file:
            for bucket, part in enumerate(_buckets(distinct(ids))):
                known = Records.read(old, self._counts[bucket], self._payload_bytes)
                new = known.new_of(part)
                merged = known.merged(Records.of(new, self._payload_bytes))
                merged.write(file)
                self._counts[bucket] = len(merged.keys)
                found.append(new)
            make_durable(file, self._path)
        return np.concatenate(found)


def _buckets(ordered: Ids) -> list[Ids]:
    bounds = np.arange(1, 1 << _BUCKET_BITS, dtype=np.uint64) << np.uint64(64 - _BUCKET_BITS)
    return np.split(ordered, np.searchsorted(ordered, bounds))
