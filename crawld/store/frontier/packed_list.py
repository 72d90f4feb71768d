"""Packed pages one by one: looked up by URL, listed, and erased.

A listed page has a number in place of a page_id: larger than any, ascending, and valid until its
block is joined or its page becomes a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.seen.place import DEPTH_BITS, NOWHERE, place_of
from crawld.core.url import split_url
from crawld.store.frontier import packed, packed_block, packed_shared
from crawld.store.frontier.packed_block import PackedPage, Queue
from crawld.store.frontier.packed_shared import SharedPages
from crawld.store.seen import seen
from crawld.store.seen.seen import SeenFile

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


def find(connection: apsw.Connection, url: str) -> WaitingPage | None:
    """Return the packed page of a canonical URL that is no row, None if there is none.

    A link that waits for its verdict is none. It reads the blocks of its depth until it comes to
    it: up to a second on a host of 10^7 pages.
    """
    host = split_url(url).host
    sql = "SELECT host_id FROM host WHERE host = ?"
    host_id = connection.execute(sql, (host,)).get
    place = _place_of(connection, url) if host_id is not None else NOWHERE
    if place == NOWHERE:
        return None
    rows: list[Any] = connection.execute(_BLOCKS_OF_SITE, (host_id, place >> DEPTH_BITS)).fetchall()
    for block_id, *queue in rows:
        if place_of(queue[1], queue[2]) != place:
            continue
        for position, page in enumerate(packed_block.read(connection, block_id)):
            if page.url == url:
                return _listed(_Place(block_id, Queue(*queue), host), position, page)
    return _find_shared(connection, host_id, url, place)


def _find_shared(
    connection: apsw.Connection, host_id: int, url: str, place: int
) -> WaitingPage | None:
    for part in packed_shared.pages_of_host(connection, host_id):
        if place_of(part.queue.site_id, part.queue.depth) != place:
            continue
        for position, page in enumerate(part.pages, part.start):
            if page.url == url:
                host = split_url(url).host
                return _listed(_Place(part.block_id, part.queue, host), position, page)
    return None


def _place_of(connection: apsw.Connection, url: str) -> int:
    file = SeenFile.of(connection)
    place = int(seen.places(connection, file, [url])[0])
    return seen.told_place(connection, file, url) if place == NOWHERE else place


def queue_of(connection: apsw.Connection, number: int) -> Queue | None:
    """Return the queue of a listed page; None: its block is gone."""
    block_id = (number - FIRST_NUMBER) >> _SHIFT
    if block_id >= packed_shared.FIRST_ID:
        position = number & ((1 << _SHIFT) - 1)
        queues = packed_shared.queues_of_block(connection, block_id)
        return next((queue for queue, start, end in queues if start <= position < end), None)
    row = connection.execute(
        "SELECT host_id, site_id, depth FROM packed_block WHERE packed_block_id = ?", (block_id,)
    ).fetchone()
    return None if row is None else Queue(*row)


_BLOCKS_OF_SITE: Final = """
SELECT packed_block_id, host_id, site_id, depth FROM packed_block WHERE host_id = ? AND site_id = ?
ORDER BY depth, packed_block_id
"""

_BLOCKS_OF_HOST: Final = """
SELECT packed_block_id, site_id, depth FROM packed_block
WHERE host_id = (SELECT host_id FROM host WHERE host = ?)
"""


def erase(connection: apsw.Connection, url: str) -> bool:
    """Forget a URL, and remove its text from links that wait and from all blocks of its host.

    Returns:
        Whether it was a packed page, counted as one.
    """
    if not packed.any_known(connection):
        return False
    file = SeenFile.of(connection)
    place = _place_of(connection, url)
    seen.erase_waiting(connection, file, url)
    seen.forget(connection, file, [url])
    host = split_url(url).host
    host_id = connection.execute("SELECT host_id FROM host WHERE host = ?", (host,)).get
    if host_id is None:
        return False
    packed_shared.clear(connection, host_id)
    was_page = False
    rows: list[Any] = connection.execute(_BLOCKS_OF_HOST, (host,)).fetchall()
    for block_id, site_id, depth in rows:
        pages = packed_block.read(connection, block_id)
        kept = [page for page in pages if page.url != url]
        removed = len(pages) - len(kept)
        if not removed:
            continue
        if place_of(site_id, depth) == place and not was_page:
            was_page, removed = True, removed - 1
            packed.count_pages(connection, host_id, site_id, -1)
        packed.count_dropped(connection, host_id, site_id, removed)
        packed_block.replace(connection, block_id, kept)
    return was_page


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
            return found[:limit]
    for part in _shared(connection, first, host_id):
        if site_id is None or part.queue.site_id == site_id:
            found += [each for each in _valid_shared(connection, part) if each.number >= first]
        if len(found) >= limit:
            break
    return found[:limit]


def _shared(connection: apsw.Connection, first: int, host_id: int | None) -> Iterator[SharedPages]:
    """Yield pages of shared blocks in the order of their numbers, from the block of a number on."""
    block_id = max((first - FIRST_NUMBER) >> _SHIFT, packed_shared.FIRST_ID)
    if host_id is None:
        for each in packed_shared.block_ids(connection, block_id):
            yield from packed_shared.read(connection, each)
    else:
        of_host = packed_shared.pages_of_host(connection, host_id)
        yield from sorted(
            (part for part in of_host if part.block_id >= block_id),
            key=lambda part: (part.block_id, part.start),
        )


def _valid_shared(connection: apsw.Connection, part: SharedPages) -> list[WaitingPage]:
    sql = "SELECT host FROM host WHERE host_id = ?"
    host = connection.execute(sql, (part.queue.host_id,)).get
    valid = packed.valid_entries(connection, part.queue, [page.url for page in part.pages])
    place = _Place(part.block_id, part.queue, host)
    return [
        _listed(place, position, page)
        for position, page in enumerate(part.pages, part.start)
        if valid[position - part.start]
    ]


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
    valid = packed.valid_entries(connection, place.queue, [page.url for page in pages])
    return [
        _listed(place, position, page) for position, page in enumerate(pages) if valid[position]
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
