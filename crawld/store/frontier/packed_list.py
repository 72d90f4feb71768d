"""Packed pages one by one: looked up by URL, listed, and forgotten.

A listed page has a number in place of a page_id: larger than any, ascending, and valid until its
block is joined or its page becomes a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.core.url import split_url, url_keys
from crawld.store.frontier import packed, packed_block, page_counts
from crawld.store.frontier.packed_block import PackedPage, Queue

FIRST_NUMBER: Final = 1 << 48
"""Numbers of packed pages begin here; page_ids are far below."""

_SHIFT: Final = 12
assert packed_block.MAX_PAGES <= 1 << _SHIFT


class WaitingPage(NamedTuple):
    """A packed page; `number` is its place in lists."""

    number: int
    host_id: int
    host: str
    site_id: int
    depth: int
    url: str
    found_at: float
    referrer_id: int | None


class _Place(NamedTuple):
    """A block."""

    block_id: int
    queue: Queue
    host: str


def _place_of(connection: apsw.Connection, url: str) -> tuple[int, Queue] | None:
    """Return key and queue of the packed page of a URL, None if it is not packed."""
    sql = "SELECT host_id FROM host WHERE host = ?"
    host_id = connection.execute(sql, (split_url(url).host,)).get
    found = None if host_id is None else packed.find(connection, host_id, url)
    if found is None:
        return None
    key, known = found
    return key, Queue(host_id, known.site_id, known.depth)


def find(connection: apsw.Connection, url: str) -> WaitingPage | None:
    """Return the packed page of a canonical URL, None if there is none.

    It reads the blocks of its depth until it comes to it: up to a second on a host of 10^7 pages.
    """
    found = _place_of(connection, url)
    if found is None:
        return None
    queue, host = found[1], split_url(url).host
    for block_id in packed_block.blocks(connection, queue):
        for position, page in enumerate(packed_block.read(connection, block_id)):
            if page.url == url:
                return _listed(_Place(block_id, queue, host), position, page)
    return None


def queue_of(connection: apsw.Connection, number: int) -> Queue | None:
    """Return the queue of a listed page; None: its block is gone."""
    row = connection.execute(
        "SELECT host_id, site_id, depth FROM packed_block WHERE packed_block_id = ?",
        ((number - FIRST_NUMBER) >> _SHIFT,),
    ).fetchone()
    return None if row is None else Queue(*row)


def forget(connection: apsw.Connection, url: str) -> bool:
    """Remove a packed page and its text; return whether there was one."""
    found = _place_of(connection, url)
    if found is None:
        return False
    key, queue = found
    packed.claim(connection, queue.host_id, key)
    page_counts.count_moves(
        connection, [(queue.site_id, queue.host_id, PageState.DISCOVERED, None)]
    )
    erase(connection, url)
    return True


_BLOCKS_OF_HOST: Final = """
SELECT packed_block_id FROM packed_block WHERE host_id = (SELECT host_id FROM host WHERE host = ?)
"""


def erase(connection: apsw.Connection, url: str) -> None:
    """Remove the text of a URL from all blocks of its host, void entries too."""
    rows: list[Any] = connection.execute(_BLOCKS_OF_HOST, (split_url(url).host,)).fetchall()
    for (block_id,) in rows:
        pages = packed_block.read(connection, block_id)
        kept = [page for page in pages if page.url != url]
        if len(kept) < len(pages):
            packed_block.replace(connection, block_id, kept)


_PLACES: Final = """
SELECT packed_block_id, host_id, site_id, depth, host FROM packed_block JOIN host USING (host_id)
WHERE packed_block_id >= ? ORDER BY packed_block_id
"""

_PLACES_OF_HOST: Final = """
SELECT packed_block_id, host_id, site_id, depth, host FROM packed_block JOIN host USING (host_id)
WHERE host_id = ? AND packed_block_id >= ? ORDER BY packed_block_id
"""


def list_packed(
    connection: apsw.Connection,
    *,
    after: int,
    limit: int,
    site_id: int | None = None,
    host_id: int | None = None,
) -> list[WaitingPage]:
    """Return packed pages in the order of their numbers, after a number or a page_id.

    Args:
        site_id, host_id: of this site, of this host only.
    """
    found: list[WaitingPage] = []
    first = max(after + 1, FIRST_NUMBER)
    for place in _places(connection, first, host_id):
        if site_id is None or place.queue.site_id == site_id:
            found += [each for each in _valid(connection, place) if each.number >= first]
        if len(found) >= limit:
            break
    return found[:limit]


def _places(connection: apsw.Connection, first: int, host_id: int | None) -> Iterator[_Place]:
    block_id = (first - FIRST_NUMBER) >> _SHIFT
    rows: Iterator[tuple[Any, ...]]
    if host_id is None:
        rows = connection.execute(_PLACES, (block_id,))
    else:
        rows = connection.execute(_PLACES_OF_HOST, (host_id, block_id))
    for block, *queue, host in rows:
        yield _Place(block, Queue(*queue), host)


def _valid(connection: apsw.Connection, place: _Place) -> list[WaitingPage]:
    """Return the entries of a block that are not void."""
    pages = packed_block.read(connection, place.block_id)
    host_id, site_id, depth = place.queue
    keys = [url_keys(page.url) for page in pages]
    known = packed.keys_of(connection, host_id, [key for own in keys for key in own])

    def is_valid(page: PackedPage, own: tuple[int, int]) -> bool:
        of = (known.get(key) for key in own)
        found = next((key for key in of if key is not None and key.is_of(page.url)), None)
        return found is not None and (found.site_id, found.depth) == (site_id, depth)

    return [
        _listed(place, position, page)
        for position, (page, own) in enumerate(zip(pages, keys, strict=True))
        if is_valid(page, own)
    ]


def _listed(place: _Place, position: int, page: PackedPage) -> WaitingPage:
    host_id, site_id, depth = place.queue
    return WaitingPage(
        FIRST_NUMBER + (place.block_id << _SHIFT) + position,
        host_id,
        place.host,
        site_id,
        depth,
        page.url,
        page.found_at,
        page.referrer_id or None,
    )
