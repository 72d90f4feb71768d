"""Rename packed pages after a change of the rules for canonical URLs, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.seen.place import place_of
from crawld.store.frontier import packed, packed_block, packed_shared, page_counts, tombstone
from crawld.store.frontier.packed_block import PackedPage, Queue
from crawld.store.seen import pending, seen
from crawld.store.seen.seen import SeenFile

NewUrlOf = Callable[[int, str], str]
"""Returns the URL that a page of a site should have."""

_NEXT: Final = """
SELECT packed_block_id, host_id, site_id, depth FROM packed_block WHERE packed_block_id > ?
ORDER BY packed_block_id LIMIT 1
"""


class RenamedBlock(NamedTuple):
    """A block whose URLs follow the rules now: how many got another URL, how many were dropped."""

    renamed: int
    dropped: int


def next_block(
    connection: apsw.Connection, after: int, new_url: NewUrlOf
) -> tuple[int, bool] | None:
    """Return the next block, and whether a URL in it must be renamed; None: there are no more."""
    row: tuple[Any, ...] | None = connection.execute(_NEXT, (after,)).fetchone()
    if row is not None:
        pages = packed_block.read(connection, row[0])
        return row[0], any(new_url(row[2], page.url) != page.url for page in pages)
    block_id = packed_shared.next_block(connection, after)
    if block_id is None:
        return None
    parts = packed_shared.read(connection, block_id)
    pairs = ((part.queue.site_id, page.url) for part in parts for page in part.pages)
    return block_id, any(new_url(site_id, url) != url for site_id, url in pairs)


def rename_in(connection: apsw.Connection, block_id: int, new_url: NewUrlOf) -> RenamedBlock:
    """Give the pages of a block their URLs; those whose URL has a row or was purged are dropped."""
    if block_id >= packed_shared.FIRST_ID:
        return _rename_in_shared(connection, block_id, new_url)
    row = connection.execute(_NEXT, (block_id - 1,)).fetchone()
    if row is None or row[0] != block_id:
        return RenamedBlock(0, 0)  # its pages have become rows
    queue = Queue(*row[1:])
    kept, done = _rename(connection, queue, packed_block.read(connection, block_id), new_url)
    packed_block.replace(connection, block_id, kept)
    return done


def _rename_in_shared(
    connection: apsw.Connection, block_id: int, new_url: NewUrlOf
) -> RenamedBlock:
    if packed_shared.next_block(connection, block_id - 1) != block_id:
        return RenamedBlock(0, 0)  # it was merged with others, which come later
    left, renamed, dropped = [], 0, 0
    for part in packed_shared.read(connection, block_id):
        kept, done = _rename(connection, part.queue, part.pages, new_url)
        left.append((part.queue, kept))
        # Pages of shared blocks are not counted on their host.
        page_counts.count_discovered(connection, (), [(part.queue.host_id, done.dropped)])
        renamed, dropped = renamed + done.renamed, dropped + done.dropped
    packed_shared.replace(connection, block_id, left)
    return RenamedBlock(renamed, dropped)


def _rename(
    connection: apsw.Connection, queue: Queue, pages: list[PackedPage], new_url: NewUrlOf
) -> tuple[list[PackedPage], RenamedBlock]:
    """Return what is left of some pages of a queue, with their URLs."""
    urls = [new_url(queue.site_id, page.url) for page in pages]
    former = {page.url: new for page, new in zip(pages, urls, strict=True) if page.url != new}
    if not former:
        return pages, RenamedBlock(0, 0)
    changed = set(former.values())
    taken = packed.rows_of(connection, queue.host_id, list(changed))
    taken |= {url for url in changed if tombstone.exists(connection, url)}
    kept: dict[str, PackedPage] = {}
    for page, url in zip(pages, urls, strict=True):
        if page.url == url or url not in taken:
            kept.setdefault(url, page._replace(url=url))
    dropped = len(pages) - len(kept)
    packed.count_dropped(connection, queue.host_id, queue.site_id, dropped)
    packed.forget(connection, list(former))
    told = [url for url in kept if url in changed]
    if told:
        place = place_of(queue.site_id, queue.depth)
        told = seen.put_back(connection, SeenFile.of(connection), told, place)
        if told:
            pending.put_found(connection, packed.told_links(queue, told))
    return list(kept.values()), RenamedBlock(len(former), dropped)
