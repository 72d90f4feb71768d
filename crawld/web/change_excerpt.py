"""The word difference of a change as a piece of HTML, for feeds; cut where it is long."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from html import escape
from typing import Final

import apsw

from crawld.core.content.analysis import read_blocks
from crawld.core.content.blocks import Blocks
from crawld.core.content.page_diff import diff_pages
from crawld.core.content.words import Hunk, Op
from crawld.errors import CorruptDatabaseError
from crawld.marks import NO_MARKS, Marks
from crawld.store.changes import volatile
from crawld.store.frontier import removal
from crawld.store.mirror.events import ChangeEvent
from crawld.store.versions import version
from crawld.store.versions.version import VersionRow

EXCERPT_CHARACTERS: Final = 6_000
"""Characters of a difference that an entry shows."""

CONTEXT_CHARACTERS: Final = 120
"""Characters of a run of equal words that are shown beside what changed."""

PIECE_CHARACTERS: Final = 20
"""What the markup of a piece counts."""

KEPT_CHARACTERS: Final = 4_000_000
"""Characters of excerpts that are kept, in all."""

BYTES_PER_S: Final = 1_000_000
MAX_SAVED_BYTES: Final = 16_000_000
"""Bytes of copies that are compared in a second, and at once after a rest: a tenth of a core. A
crawl that finds many changes a second would take a whole one for readers of its feed."""

_ELEMENTS: Final = {Op.REMOVED: "del", Op.ADDED: "ins"}


class Excerpts:
    """The excerpts of recent changes, within a bounded rate of work."""

    def __init__(self, marks: Marks = NO_MARKS) -> None:
        """Keep nothing yet; `marks` notes which page is compared."""
        self._marks = marks
        self._kept: OrderedDict[tuple[int, int, int], str] = OrderedDict()
        self._saved_bytes = float(MAX_SAVED_BYTES)
        self._at = 0.0

    def of(
        self, connection: apsw.Connection, event: ChangeEvent, now: float, most_bytes: int
    ) -> str | None:
        """Return the excerpt of a change; empty: the texts are equal; None: none is shown.

        Args:
            now: Unix seconds.
            most_bytes: larger copies are not compared.
        """
        if event.before_id is None or event.version_id is None:
            return None
        if removal.is_withheld(connection, event.page_id):
            return None
        key = event.event_id, event.before_id, event.version_id
        found = self._kept.get(key)
        if found is None:
            found = self._make(connection, event, now, most_bytes)
            if found is not None:
                self._keep(key, found)
        return found

    def _make(
        self, connection: apsw.Connection, event: ChangeEvent, now: float, most_bytes: int
    ) -> str | None:
        old = version.get(connection, event.before_id or 0)
        new = version.get(connection, event.version_id or 0)
        if old is None or new is None:
            return None
        size_bytes = old.size_bytes + new.size_bytes
        if size_bytes > most_bytes or not self._may_compare(size_bytes, now):
            return None
        rules = volatile.rules_for(connection, new.page_id)
        with self._marks.under(event.url):
            try:
                blocks = _blocks(connection, old), _blocks(connection, new)
            except CorruptDatabaseError:
                return None
            return excerpt(diff_pages(*blocks, rules).hunks)

    def _may_compare(self, size_bytes: int, now: float) -> bool:
        saved = self._saved_bytes + BYTES_PER_S * max(now - self._at, 0.0)
        self._saved_bytes, self._at = min(saved, MAX_SAVED_BYTES), now
        if self._saved_bytes < size_bytes:
            return False
        self._saved_bytes -= size_bytes
        return True

    def _keep(self, key: tuple[int, int, int], text: str) -> None:
        # Several threads make excerpts: each step is one operation on the dict.
        self._kept[key] = text
        characters = sum(len(each) + PIECE_CHARACTERS for each in list(self._kept.values()))
        while characters > KEPT_CHARACTERS and self._kept:
            _, oldest = self._kept.popitem(last=False)
            characters -= len(oldest) + PIECE_CHARACTERS


def excerpt(hunks: Sequence[Hunk]) -> str:
    """Return the first differing blocks as HTML; the last line says what is left out.

    >>> excerpt([])
    ''
    """
    parts: list[str] = []
    left, shown = EXCERPT_CHARACTERS, 0
    for hunk in hunks:
        if left <= 0:
            break
        shown += 1
        pieces = []
        for piece in hunk.pieces:
            if left <= 0:
                pieces.append("…")
                break
            element = _ELEMENTS.get(piece.op)
            text = piece.text[:left] if element else _context(piece.text)[:left]
            left -= len(text) + PIECE_CHARACTERS
            if len(text) < len(piece.text) and element:
                text += "…"
            whole = escape(text).replace("\n", "<br>")
            pieces.append(f"<{element}>{whole}</{element}>" if element else whole)
        parts.append(f"<p>{''.join(pieces)}</p>")
    if shown < len(hunks):
        parts.append(f"<p>… and {len(hunks) - shown} more places.</p>")
    return "".join(parts)


def _context(text: str) -> str:
    """Return a run of equal words, without the middle of a long one."""
    if len(text) <= 2 * CONTEXT_CHARACTERS:
        return text
    return f"{text[:CONTEXT_CHARACTERS]} … {text[-CONTEXT_CHARACTERS:]}"


def _blocks(connection: apsw.Connection, row: VersionRow) -> Blocks:
    copy = version.read_copy(connection, row.version_id)
    return read_blocks(*copy) if copy else read_blocks(b"")
