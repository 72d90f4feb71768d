"""Flat files of the baselines of uniqueness: records of a key and a payload, sorted by key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint64]

KEY_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Records:
    """Records in ascending order of their keys, each key once.

    Attributes:
        payload: a row of bytes for each; what it holds does not matter to the benchmark.
    """

    keys: Ids
    payload: NDArray[np.uint8]

    @classmethod
    def of(cls, ids: Ids, payload_bytes: int) -> Records:
        """Return new records; a payload repeats its key."""
        octets = np.ascontiguousarray(ids).view(np.uint8).reshape(len(ids), KEY_BYTES)
        repeats = -(-payload_bytes // KEY_BYTES)
        return cls(ids, np.tile(octets, repeats)[:, :payload_bytes])

    @classmethod
    def read(cls, file: BinaryIO, count: int, payload_bytes: int) -> Records:
        """Return the next records of a file."""
        keys = np.fromfile(file, np.uint64, count)
        payload = np.fromfile(file, np.uint8, count * payload_bytes)
        return cls(keys, payload.reshape(count, payload_bytes))

    def write(self, file: BinaryIO) -> None:
        """Append the records to a file."""
        file.write(np.ascontiguousarray(self.keys).data)
        file.write(np.ascontiguousarray(self.payload).data)

    def part(self, start: int, end: int) -> Records:
        """Return the records from `start` to before `end`."""
        return Records(self.keys[start:end], self.payload[start:end])

    def new_of(self, ids: Ids) -> Ids:
        """Return those of ascending distinct keys that no record has."""
        at = np.searchsorted(self.keys, ids)
        inside = at < len(self.keys)
        new = np.ones(len(ids), bool)
        new[inside] = self.keys[at[inside]] != ids[inside]
        return ids[new]

    def merged(self, added: Records) -> Records:
        """Return these records and others, none of which is among them."""
        at = np.searchsorted(self.keys, added.keys) + np.arange(len(added.keys))
        size = len(self.keys) + len(added.keys)
        old = np.ones(size, bool)
        old[at] = False
        keys = np.empty(size, np.uint64)
        payload = np.empty((size, self.payload.shape[1]), np.uint8)
        keys[at], keys[old] = added.keys, self.keys
        payload[at], payload[old] = added.payload, self.payload
        return Records(keys, payload)


def make_durable(file: BinaryIO, path: Path) -> None:
    """Write a new file to the disk and give it its name, both to survive a power loss."""
    file.flush()
    os.fsync(file.fileno())
    Path(file.name).replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def size(folder: Path) -> int:
    """Return the bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.iterdir())
