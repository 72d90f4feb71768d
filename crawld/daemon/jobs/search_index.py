"""The `search` job: add new copies to the full-text index, slice by slice.

The text of a copy that a visit has just analysed is kept until then. Other copies are read one by
one, each within the memory for analyses. The words of a slice are stored in one short transaction.
The job rests as long as it works, so it takes at most half of a core. Of a page that is too large
for the memory the leading part is indexed.

Beside a one-off mirror, which has no jobs, whole slices are indexed as they come; its end indexes
the rest (`store/versions/finish_copies.py`).
"""

from __future__ import annotations

from functools import partial
from typing import Final

import trio

from crawld.daemon.analyser import weight_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.pacing import Pace
from crawld.store.versions import search_index
from crawld.store.versions.search_index import (
    SLICE_COPIES,
    CopySlice,
    CopyToIndex,
    IndexedPage,
    IndexSlice,
)

EVERY_S: Final = 60.0
"""Longest time until a new copy can be found."""

LOOK_S: Final = 0.1
"""How often a one-off mirror looks whether a slice is full: 40 more copies at full speed."""

MOST_COPIES: Final = 4 * SLICE_COPIES
"""Copies that a one-off mirror indexes at a time: all that its last commits stored."""

REST_FACTOR: Final = 1.0
"""Rest after each slice, as a multiple of its work."""


class SearchIndexJob(BackgroundWork):
    """The `search` job."""

    name = "search"
    every_s = EVERY_S

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._indexed = 0
        self._looked_at = -1

    def has_work(self) -> bool:
        """Whether copies were stored since the last run."""
        return self._database.changes("version") != self._looked_at

    async def run(self) -> str:
        """Index all copies that wait.

        Those that visits store meanwhile wait for the next run: a busy mirror stores some at any
        time, and each would have a transaction of its own.
        """
        if not self._state.settings.search:
            return "off"
        before, looked_at = self._indexed, self._database.changes("version")
        newest = self._database.look_up(search_index.newest_copy)
        pace = Pace(REST_FACTOR)
        while self._database.look_up(search_index.any_new, newest):
            if not await self._index_slice(SLICE_COPIES):
                break
            await pace.rest()
        self._state.kept_texts.end_run()
        self._looked_at = looked_at
        return f"{self._indexed - before} pages indexed"

    async def follow(self) -> None:
        """Index whole slices of copies while their texts are kept, until cancelled."""
        texts = self._state.kept_texts
        while True:
            await trio.sleep(LOOK_S)
            while self._database.look_up(search_index.count_pending) >= (
                1 if texts.is_full else SLICE_COPIES
            ):
                if not await self._index_slice(MOST_COPIES):
                    break

    async def _index_slice(self, most: int) -> bool:
        """Index the next copies; return whether there were any."""
        found = await self._database.read(search_index.next_copies, limit=most)
        if found is None:
            return False
        await self._database.write(search_index.apply, await self._words(found))
        self._indexed += len(found.copies)
        return True

    async def _words(self, found: CopySlice) -> IndexSlice:
        entries = []
        for digest in found.passed:
            self._state.kept_texts.take(digest)
        for copy in found.copies:
            text = self._state.kept_texts.take(copy.digest)
            if text is not None:
                # Takes microseconds; a pass of a busy loop takes longer than the whole slice.
                entries.append(search_index.words_of_text(copy, text))
                continue
            entries.append(await self._read(copy))
            await trio.lowlevel.checkpoint()
        return IndexSlice(tuple(entries), found.up_to)

    async def _read(self, copy: CopyToIndex) -> IndexedPage:
        async with self._analyser.memory.copy(copy.size_bytes) as memory:
            if memory is None:
                return search_index.words_of(copy, copy.content_type, b"")
            content = await self._database.read(search_index.read_content, copy)
            words_of = partial(search_index.words_of, copy, content.content_type)
            weight = weight_of(content.content_type)
            return await self._analyser.read_copy(
                words_of, content.body, memory, url=copy.url, weight=weight
            )

    async def progress(self) -> dict[str, int]:
        """Return pages indexed since the start, and how many copies wait."""
        return {
            "indexed": self._indexed,
            "waiting": await self._database.read(search_index.count_pending),
        }
