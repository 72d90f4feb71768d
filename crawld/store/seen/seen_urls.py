"""Answers for the URLs of a file, in the way that its size allows.

While all keys fit into the memory that is given for them an answer comes at once; above, within a
batch, in memory that does not grow. The file is the same in both ways.
"""

from __future__ import annotations

from typing import Final, Self

import apsw

from crawld.core.seen.event import Events, SeenMark
from crawld.core.seen.key_set import KEY_BYTES, KeySet
from crawld.store.seen import chunk, immediate, pending, seen
from crawld.store.seen.seen import SeenFile

_ROOM: Final = 0.75
"""Keys are read into memory if they fill at most this share of it: they will grow."""


class SeenUrls:
    """Which URLs of a file are new.

    Whoever offers says afterwards whether it was committed.
    """

    def __init__(self, file: SeenFile, memory_bytes: int) -> None:
        self.file = file
        self.keys: KeySet | None = None
        """Keys of all URLs; None: they do not fit, and answers come within a batch."""
        self._memory_bytes = memory_bytes
        self._offered = KeySet()

    @classmethod
    def open(cls, connection: apsw.Connection, file: SeenFile, memory_bytes: int) -> Self:
        """Return the answers of a file.

        Args:
            memory_bytes: for keys, 8 bytes a URL; 0: never answer at once.
        """
        opened = cls(file, memory_bytes)
        if (chunk.known(connection) + pending.count(connection)) * KEY_BYTES <= (
            _ROOM * memory_bytes
        ):
            opened.keys = immediate.load(connection)
        return opened

    def offer(
        self, connection: apsw.Connection, urls: list[str], mark: SeenMark, *, sets: bool = False
    ) -> list[str]:
        """Offer URLs in an open transaction; return those that nobody was told to be new yet.

        More of them may be told by a later call. Whoever offers more than may wait does the work of
        a batch (`crawld.store.seen.seen.take`).

        Args:
            mark: of those that are new.
            sets: whether known URLs take the mark, too.

        Raises:
            StoreError: a text is too long.
        """
        return self.offer_events(connection, urls, seen.events_of(urls, mark, sets=sets))

    def offer_events(
        self, connection: apsw.Connection, urls: list[str], events: Events
    ) -> list[str]:
        """Do the same for URLs each of which has its own news."""
        new = []
        if self.keys is None:
            seen.offer_events(connection, self.file, urls, events)
        else:
            known = (self.keys, self._offered)
            answer = immediate.offer(connection, self.file, known, urls, events)
            self._offered.add_missing(answer.keys)
            new = answer.new
        return new + seen.settle_excess(connection).urls

    def committed(self) -> None:
        """Remember what was offered; forget all keys if they are too many."""
        if self.keys is None:
            return
        self.keys.merge(self._offered)
        self._offered = KeySet()
        if self.keys.octets > self._memory_bytes:
            self.keys = None

    def rolled_back(self) -> None:
        """Forget what was offered."""
        self._offered = KeySet()
