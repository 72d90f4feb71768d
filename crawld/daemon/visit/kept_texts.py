"""Texts that visits have cut out of new copies: the search need not read these copies again.

A text waits for the next run of the `search` job, a minute at most. One that finds no room is read
from the file then, not the oldest: the job comes to that first. A job that is behind would find
none of the texts that it needs, fall behind further, and never find one again. In a one-off mirror
visits wait until there is room: to read a copy again takes as long as its visit, and the job would
fall behind more and more.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import trio

FULL_BYTES: Final = 2 * 2**20
"""Texts from which visits wait that can: more than a slice of the search, articles of 22 KB."""

MOST_BYTES: Final = 16 * 2**20
"""Memory of all texts; those of turns under way find room although others wait."""

ROOM_S: Final = 2.0
"""Longest wait for room: the text of a copy that was never stored must not stop a mirror."""


class KeptTexts:
    """Texts by the digest of their copy, the oldest first; one that finds no room is not kept."""

    def __init__(self, full_bytes: int = FULL_BYTES, most_bytes: int = MOST_BYTES) -> None:
        self._full_bytes = full_bytes
        self._most_bytes = most_bytes
        self._texts: OrderedDict[bytes, tuple[int, str]] = OrderedDict()
        self._run = 0
        self._bytes = 0
        self._room = trio.Event()

    @property
    def is_full(self) -> bool:
        """Whether visits that can wait should."""
        return self._bytes > self._full_bytes

    def keep(self, digest: bytes, text: str) -> None:
        """Keep the searchable text of a copy if there is room."""
        self.take(digest)
        size_bytes = text.__sizeof__()
        if self._bytes + size_bytes <= self._most_bytes:
            self._texts[digest] = (self._run, text)
            self._bytes += size_bytes

    def take(self, digest: bytes) -> str | None:
        """Return the text of a copy and forget it; None if it is not kept."""
        _, text = self._texts.pop(digest, (0, None))
        if text is not None:
            self._bytes -= text.__sizeof__()
            if not self.is_full:
                self._room.set()
        return text

    def end_run(self) -> None:
        """Forget the texts that were there at the end of the run before, too.

        All copies that waited at its begin are indexed. What two runs have not taken is of copies
        that were never stored, and nobody takes it any more.
        """
        while self._texts and next(iter(self._texts.values()))[0] < self._run:
            self.take(next(iter(self._texts)))
        self._run += 1

    async def wait_for_room(self) -> None:
        """Return when there is room, or after `ROOM_S`."""
        if self.is_full:
            self._room = trio.Event() if self._room.is_set() else self._room
            with trio.move_on_after(ROOM_S):
                await self._room.wait()
