"""The keys of a file in memory while they fit: a URL that is new is known to be new at once.

A link still waits for the turn of its repository, which decides. So the keys need not be exact: a
key that is here although its transaction failed, or its URL was forgotten, costs the answer at
once and nothing else. Only a key that is missing would be wrong; all are read before the first
link is offered.
"""

from __future__ import annotations

from typing import Final

import apsw
import numpy as np

from crawld.core.seen.key_set import KEY_BYTES, KeySet
from crawld.core.seen.keys import UrlKeys
from crawld.core.seen.run import Positions
from crawld.store.seen import chunk, pending, seen
from crawld.store.seen.seen import SeenFile

_ROOM: Final = 0.75
"""Keys are read if they fill at most this share of the memory given for them: they will grow."""


class KeyMemory:
    """Keys of all URLs of a file, until they are too many.

    Attributes:
        keys: None: not read, or too many; answers come within a batch.
    """

    def __init__(self, memory_bytes: int) -> None:
        self.keys: KeySet | None = None
        self._memory_bytes = memory_bytes

    def load(self, connection: apsw.Connection) -> None:
        """Read the keys of a file if they fit; before any link is offered."""
        urls = chunk.known(connection) + pending.count(connection)
        if urls * KEY_BYTES <= _ROOM * self._memory_bytes:
            self.keys = seen.load_keys(connection, SeenFile.of(connection))

    def take_new(self, keys: UrlKeys) -> Positions:
        """Return which URLs are certainly new, each once in ascending order, and remember them."""
        if self.keys is None:
            return np.zeros(0, np.int64)
        new = np.flatnonzero(self.keys.missing(keys))
        self.keys.add_missing(keys.take(new))
        if self.keys.octets > self._memory_bytes:
            self.keys = None
        return new
