"""Files whose packed pages have a row of `packed_key` each: older versions packed so.

Their entries become links that were told to be new (`crawld.store.seen`): the turns of their
repositories store their keys. Entries without a key of their place are void. It runs before links
are offered, in slices, and goes on after a restart where it was.
"""

from __future__ import annotations

import array
from typing import Any, Final

import apsw

from crawld.core.seen.place import MAX_SITE
from crawld.core.url import second_hash, url_keys
from crawld.store.engine import meta
from crawld.store.frontier import packed, packed_block
from crawld.store.frontier.packed_block import PackedPage, Queue
from crawld.store.seen import pending
from crawld.store.seen.links import Links

SLICE_BLOCKS: Final = 64
"""Blocks converted in one transaction, at most 60,000 pages: half a second."""

_CURSOR: Final = "packed_keys_cursor"

_BLOCKS: Final = """
SELECT packed_block_id, host_id, site_id, depth FROM packed_block WHERE packed_block_id > ?
ORDER BY packed_block_id LIMIT ?
"""

_KEYS: Final = """
SELECT packed_key.url_hash, url_check
FROM carray(?1) AS wanted CROSS JOIN packed_key
  ON packed_key.host_id = ?2 AND packed_key.url_hash = wanted.value
WHERE site_id = ?3 AND depth = ?4
"""


def any_left(connection: apsw.Connection) -> bool:
    """Return whether a file was packed by an older version."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM packed_key)").get)


def convert_some(connection: apsw.Connection) -> bool:
    """Convert the next blocks; return whether there were any, else the file is converted."""
    after = int(meta.get(connection, _CURSOR) or 0)
    rows: list[Any] = connection.execute(_BLOCKS, (after, SLICE_BLOCKS)).fetchall()
    if not rows:
        connection.execute("DELETE FROM packed_key")
        connection.execute("DELETE FROM meta WHERE key = ?", (_CURSOR,))
        return False
    links = [_convert(connection, block_id, Queue(*queue)) for block_id, *queue in rows]
    whole = Links.join(links)
    if len(whole):
        pending.put_found(connection, whole)
    meta.put(connection, _CURSOR, str(rows[-1][0]))
    return True


def _convert(connection: apsw.Connection, block_id: int, queue: Queue) -> Links:
    """Return links to the pages of a block; count its void entries."""
    pages = packed_block.read(connection, block_id)
    valid = _valid(connection, queue, pages) if queue.site_id <= MAX_SITE else []
    if len(valid) < len(pages):
        packed.add_void(connection, queue.host_id, queue.site_id, len(pages) - len(valid))
    return packed.told_links(queue, [page.url for page in valid])


def _valid(connection: apsw.Connection, queue: Queue, pages: list[PackedPage]) -> list[PackedPage]:
    """Return the pages of a block that have a key of its queue."""
    keys = [url_keys(page.url) for page in pages]
    wanted = array.array("q", [key for both in keys for key in both])
    rows = connection.execute(
        _KEYS, (apsw.carray(wanted), queue.host_id, queue.site_id, queue.depth)
    )
    checks = dict(rows)

    def is_valid(page: PackedPage, both: tuple[int, int]) -> bool:
        check = (second_hash(page.url) & 0xFFFF_FFFF) - (1 << 31)
        return any(key in checks and checks[key] in (None, check) for key in both)

    pairs = zip(pages, keys, strict=True)
    return [page for page, both in pairs if is_valid(page, both)]
