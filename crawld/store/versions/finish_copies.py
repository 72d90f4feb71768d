"""Index and analyse the copies that wait, each read once: the end of a one-off mirror.

The daemon does the same in two jobs that rest between slices. Here nobody waits for anything else,
so the blocks of a copy that were cut for its words also give its digest and sketch.
"""

from __future__ import annotations

import math

import apsw

from crawld.core.content.analysis import read_blocks
from crawld.core.content.blocks import Blocks
from crawld.core.content.media import media_type
from crawld.core.content.volatile import VolatileRules
from crawld.store.changes import volatile
from crawld.store.versions import search_index, unanalysed, version
from crawld.store.versions.search_index import (
    SLICE_BYTES,
    SLICE_COPIES,
    CopyToIndex,
    IndexedPage,
    IndexSlice,
)
from crawld.store.versions.unanalysed import ContentIdentity, UnanalysedCopy


class CopyFinisher:
    """Finishes copies slice by slice, each slice in a transaction of the caller."""

    def __init__(self, connection: apsw.Connection, *, index: bool, analyse: bool) -> None:
        """Take a connection that may write.

        Args:
            index: whether to index what waits for the full-text search.
            analyse: whether to analyse first copies that were only stored.
        """
        self._connection = connection
        self._index = index
        self._analyse = analyse
        self._blocks: dict[int, Blocks] = {}

    def finish_slice(self) -> bool:
        """Finish the next copies; return whether more may wait."""
        indexed = self._index_slice() if self._index else None
        analysed = self._analyse and self._analyse_slice(indexed or unanalysed.NEWEST)
        # At most those of one slice of the index are held.
        self._blocks.clear()
        return indexed is not None or analysed

    def _index_slice(self) -> int | None:
        """Index the next copies; return the last version_id examined, None if none waited."""
        found = search_index.next_copies(self._connection)
        if found is None:
            return None
        work = IndexSlice(tuple(map(self._words, found.copies)), found.up_to)
        search_index.apply(self._connection, work)
        return found.up_to

    def _words(self, copy: CopyToIndex) -> IndexedPage:
        stored = version.undamaged_copy(self._connection, copy.version_id)
        if stored is None:
            return search_index.words_of(copy, copy.content_type, b"")
        blocks = read_blocks(*stored)
        if self._analyse:
            self._blocks[copy.version_id] = blocks
        return search_index.words_in(copy, media_type(stored.content_type), blocks)

    def _analyse_slice(self, last: int) -> bool:
        """Analyse the next copies up to a version_id; return whether any was examined."""
        copies, up_to = unanalysed.next_copies(
            self._connection, before=math.inf, limit=SLICE_COPIES, last=last
        )
        if up_to is None:
            return False
        found = [identity for copy in copies if (identity := self._identity(copy)) is not None]
        unanalysed.put(self._connection, found, up_to=up_to)
        return True

    def _identity(self, copy: UnanalysedCopy) -> ContentIdentity | None:
        """Return the identity of a copy; None if it is damaged, or too large for this."""
        blocks = self._blocks.get(copy.version_id)
        if blocks is None:
            if version.body_bytes(self._connection, copy.version_id) > SLICE_BYTES:
                return None
            stored = version.undamaged_copy(self._connection, copy.version_id)
            if stored is None:
                return None  # doctor reports the damage
            blocks = read_blocks(*stored)
        rules = VolatileRules.union(volatile.rules_for(self._connection, copy.page_id))
        return unanalysed.identity_of(copy.version_id, blocks, rules)
