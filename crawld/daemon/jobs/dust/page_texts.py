"""Main texts of visited pages, and whether two pages show the same."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

import apsw

from crawld.core.content.analysis import read_blocks
from crawld.core.content.volatile import VolatileRules
from crawld.core.dust.main_text import MainBlocks, chrome_of, main_blocks, main_digest
from crawld.core.page import GOOD_COPY, Outcome
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.pacing import Pace
from crawld.store.changes import volatile
from crawld.store.frontier.dust_page import SeenPage
from crawld.store.versions import version
from crawld.store.versions.version import StoredCopy

MAX_COPY_BYTES: Final = 2**20
"""Larger copies are not compared."""

MAX_KEPT: Final = 400
"""Pages whose blocks are kept during a run."""

PARSE_WEIGHT: Final = 12
"""See `Analyser.read`: what is parsed on the event loop takes a millisecond at most."""

REST_FACTOR: Final = 2.0
"""Rest after each copy, as a multiple of its work."""

_GONE: Final = frozenset({Outcome.GONE, Outcome.SOFT_GONE})
_ABSENT: Final = _GONE | {Outcome.MOVED}


class Sameness(StrEnum):
    """How two pages compare.

    `NOTHING`: their texts are too short to prove anything, or there are none. `UNKNOWN`: a later
    visit decides.
    """

    EQUAL = "equal"
    DIFFERS = "differs"
    NOTHING = "nothing"
    UNKNOWN = "unknown"


class Compared(NamedTuple):
    """How two pages compare, and the digest of the main text of both; None: not equal."""

    sameness: Sameness
    digest: bytes | None = None


class PageTexts(BackgroundWork):
    """Reads the main texts of pages; keeps their blocks during one run."""

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._blocks: dict[int, MainBlocks | None] = {}

    def forget(self) -> None:
        """Drop all blocks."""
        self._blocks.clear()

    async def chrome(self, pages: Iterable[SeenPage]) -> frozenset[int]:
        """Return the blocks that stand on many of some pages of different texts."""
        found = [await self._read(page) for page in pages if shows_text(page)]
        return chrome_of(blocks for blocks in found if blocks is not None)

    async def compare(
        self, page: SeenPage, canonical: SeenPage, chrome: frozenset[int]
    ) -> Compared:
        """Return whether a page shows the same as the one that would stand for it.

        A redirect to that page is the word of the server. A page that is absent has no text, so
        that nothing stands for it. That both are absent proves nothing: dead links have all forms.
        """
        if page.last_outcome in _GONE and canonical.last_outcome in _GONE:
            return Compared(Sameness.NOTHING)
        if not shows_text(canonical):
            absent = canonical.last_outcome in _ABSENT
            return Compared(Sameness.DIFFERS if absent else Sameness.UNKNOWN)
        moved = page.last_outcome is Outcome.MOVED
        if moved and page.redirect_url != canonical.url:
            return Compared(Sameness.DIFFERS)
        if not moved and not shows_text(page):
            absent = page.last_outcome in _ABSENT
            return Compared(Sameness.DIFFERS if absent else Sameness.UNKNOWN)
        theirs = await self._read(canonical)
        own = theirs if moved else await self._read(page)
        if own is None or theirs is None:
            return Compared(Sameness.NOTHING)
        one, other = main_digest(own, chrome), main_digest(theirs, chrome)
        if one != other:
            return Compared(Sameness.DIFFERS)
        return Compared(Sameness.EQUAL, one) if one is not None else Compared(Sameness.NOTHING)

    async def _read(self, page: SeenPage) -> MainBlocks | None:
        """Return the blocks of the last copy of a page; None: it cannot be read."""
        key = page.version_id
        if key is None:
            return None
        if key not in self._blocks:
            if len(self._blocks) >= MAX_KEPT:
                self._blocks.clear()
            pace = Pace(REST_FACTOR)
            self._blocks[key] = await self._parse(page, key)
            await pace.rest()
        return self._blocks[key]

    async def _parse(self, page: SeenPage, version_id: int) -> MainBlocks | None:
        size_bytes = self._database.look_up(version.body_bytes, version_id)
        if size_bytes > MAX_COPY_BYTES:
            return None
        async with self._analyser.memory.copy(size_bytes) as memory:
            if memory is None:
                return None
            found = await self._database.read(_read, version_id, page.page_id)
            if found is None:
                return None
            return await self._analyser.read_copy(
                partial(_identify, found),
                found.copy.body,
                memory,
                url=page.url,
                weight=PARSE_WEIGHT,
            )


class _ReadCopy(NamedTuple):
    copy: StoredCopy
    rules: VolatileRules


def shows_text(page: SeenPage) -> bool:
    """Whether the last visit of a page found a text."""
    return page.version_id is not None and page.last_outcome in GOOD_COPY


def _read(connection: apsw.Connection, version_id: int, page_id: int) -> _ReadCopy | None:
    """Return a copy, and the noise rules of its page and host; on a reader's thread."""
    copy = version.readable_copy(connection, version_id)
    if copy is None:
        return None
    return _ReadCopy(copy, VolatileRules.union(volatile.rules_for(connection, page_id)))


def _identify(found: _ReadCopy, body: bytes) -> MainBlocks | None:
    """Return the blocks of a copy; None if there is memory for a part of its body only."""
    if len(body) < len(found.copy.body):
        return None
    return main_blocks(read_blocks(*found.copy), found.rules)
