"""Packed pages of a replica whose twin has a copy become rows, to be counted and deferred as such.

They are at most as many as the pages of the canonical host that have a copy; the others stay packed
until their turn comes (`store/frontier/packed.py`).
"""

from __future__ import annotations

import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.url import server_name, url_hash
from crawld.store.engine.in_parts import PART_ROWS, InParts
from crawld.store.frontier import packed, packed_block, packed_shared, server
from crawld.store.frontier.packed_block import PackedPage, Queue
from crawld.store.replica.pages import origins_of, urls_at


class TwinBlock(NamedTuple):
    """A block of packed pages of a replica's host.

    Attributes:
        server: the name of the replica: pages of other servers of its host stay packed.
        importance: returns the importance of a page's freshness, > 0, by site_id; of sites that are
            missing it is 1.
    """

    block_id: int
    server: str
    canonical_id: int
    importance: Mapping[int, Callable[[str], float]] = {}


_NEXT_BLOCK: Final = f"""
SELECT min(packed_block_id) FROM packed_block
WHERE host_id = {server.host_of("?1")} AND packed_block_id > ?2
"""


def draw(connection: apsw.Connection, server_id: int) -> None:
    """Move the pages of a server's host from shared blocks to blocks of its own."""
    packed_shared.draw(connection, connection.execute(_HOST, (server_id,)).get)


_HOST: Final = f"SELECT {server.host_of('?1')}"


def next_block(connection: apsw.Connection, server_id: int, after: int) -> int | None:
    """Return the next block of packed pages of a server's host after a block_id; None: no more."""
    block_id: int | None = connection.execute(_NEXT_BLOCK, (server_id, after)).get
    return block_id


def unpack_in_parts(connection: apsw.Connection, block: TwinBlock) -> InParts[int]:
    """Make those pages of a block rows whose twin has a copy; return how many."""
    row = connection.execute(_QUEUE, (block.block_id,)).fetchone()
    if row is None:
        return 0  # its pages became rows meanwhile
    queue = Queue(*row)
    pages = packed_block.read(connection, block.block_id)
    valid = packed.valid_entries(connection, queue, [page.url for page in pages])
    chosen = {at for at in _with_twin(connection, block, pages) if valid[at]}
    importance = block.importance.get(queue.site_id)
    origins: dict[str, int] = {}
    made = 0
    for done, at in enumerate(sorted(chosen), 1):
        made += packed.make_row(connection, queue, pages[at], importance, origins)
        if done % PART_ROWS == 0:
            yield None
    if chosen:
        left = [page for at, page in enumerate(pages) if at not in chosen]
        packed_block.replace(connection, block.block_id, left)
        packed.count_dropped(connection, queue.host_id, queue.site_id, len(chosen) - made)
    return made


_QUEUE: Final = "SELECT host_id, site_id, depth FROM packed_block WHERE packed_block_id = ?"

_COPIED: Final = f"""
SELECT url FROM carray(?1) AS wanted CROSS JOIN page
  ON page.host_id = {server.host_of("?2")} AND page.url_hash = wanted.value
WHERE version_id IS NOT NULL
"""


def _with_twin(
    connection: apsw.Connection, block: TwinBlock, pages: Sequence[PackedPage]
) -> set[int]:
    """Return the places of the pages of a replica whose twin has a copy."""
    origins = origins_of(connection, block.canonical_id)
    own = [(at, page.url) for at, page in enumerate(pages) if server_name(page.url) == block.server]
    twins = [(at, url) for at, page_url in own for url in urls_at(origins, page_url)]
    hashes = apsw.carray(array.array("q", [url_hash(url) for _, url in twins] or [0]))
    rows: list[Any] = connection.execute(_COPIED, (hashes, block.canonical_id)).fetchall()
    copied = {url for (url,) in rows}
    return {at for at, url in twins if url in copied}
