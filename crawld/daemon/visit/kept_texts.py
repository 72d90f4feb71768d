"""Texts that visits have cut out of new copies: the search need not read these copies again.

A text waits for the next run of the `search` job, a minute at most. One that finds no room is read
from the file then.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

KEPT_BYTES: Final = 8 * 2**20
"""Memory of all texts; an article has 22 KB."""


class KeptTexts:
    """Texts by the digest of their copy; the oldest make room for new ones."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._texts: OrderedDict[bytes, str] = OrderedDict()
        self._bytes = 0

    def keep(self, digest: bytes, text: str) -> None:
        """Keep the searchable text of a copy."""
        self.take(digest)
        self._texts[digest] = text
        self._bytes += text.__sizeof__()
        while self._bytes > self._most_bytes:
            self.take(next(iter(self._texts)))

    def take(self, digest: bytes) -> str | None:
        """Return the text of a copy and forget it; None if it is not kept."""
        text = self._texts.pop(digest, None)
        if text is not None:
            self._bytes -= text.__sizeof__()
        return text
