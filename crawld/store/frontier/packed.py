"""Never-visited pages of a large frontier, packed: their compressed text, and a key of 14 bytes.

In a file of many pages (`Packing`) a link to a URL without a row waits (`LinkBatch`) until its
repository has its turn (`verdicts.settle`). If the URL is new it becomes a packed page: an entry in
a block of its queue. It becomes a row before it is handed out (`unpack_in_parts`). Each step is one
transaction of the only writer. So does an entry of a replica that could defer it
(`crawld.store.replica.packed_twins`).

**A row decides.** Seeds, requisites and pages whose history comes with them get rows at once, also
if the URL waits or is packed; so its entry is void when its turn comes, and is dropped. Until then
it is counted as a page of its own: the counters of sites and hosts are the rows, and the entries of
blocks less those that are known to be void (`packed_void`). Those of hosts leave out shared blocks
(`packed_shared`).

The order of visits is that of rows: depth, then discovery. A page found again nearer to the seeds
is entered once more; its first entry is void then.

What is known is exact but for collisions: see `crawld.core.seen.keys`.
"""

from __future__ import annotations

import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import apsw
import numpy as np

from crawld.core.seen.place import MAX_SITE, NOWHERE, place_of
from crawld.core.seen.texts import TextBlock
from crawld.core.url import split_url, url_keys
from crawld.store.engine.in_parts import PART_ROWS, InParts
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import packed_block, packed_shared, page_counts, tombstone
from crawld.store.frontier.packed_block import PackedPage, Queue
from crawld.store.seen import pending, seen
from crawld.store.seen.key_memory import KeyMemory
from crawld.store.seen.links import FACTS, MAX_DEPTH, Links
from crawld.store.seen.seen import SeenFile

UNPACKED_AT_ONCE: Final = 256
"""Pages that become rows in one transaction: a look-ahead, and minutes of a polite host."""


@dataclass(frozen=True, slots=True)
class Packing:
    """From which size on links wait for a verdict, and are packed.

    Attributes:
        file_pages: page rows that the file must have had, so that mirrors of up to a million pages
            stay as they are.
        keys: tells at once what is new, while it can.
    """

    file_pages: int = 1_000_000
    keys: KeyMemory | None = None


DEFAULT_PACKING: Final = Packing()

# Its referrer may have been purged since.
_INSERT: Final = """
INSERT INTO page (site_id, host_id, origin_id, url_hash, state, depth, importance, discovered_at,
                  referrer_id, url)
VALUES (?, ?, ?, ?, 'discovered', ?, ?, ?, (SELECT page_id FROM page WHERE page_id = ?), ?)
"""

_ROW: Final = "SELECT url FROM page WHERE host_id = ? AND url_hash = ?"


def free_key(connection: apsw.Connection, host_id: int, url: str) -> int | None:
    """Return the key for the row of a URL that has none; None: it has a row, or no key is free."""
    for key in url_keys(url):
        row = connection.execute(_ROW, (host_id, key)).get
        if row is None:
            return key
        if row == url:
            return None
    return None


def forget(connection: apsw.Connection, urls: Sequence[str]) -> None:
    """Let URLs that are no rows any more, or became none, be new when they are found again."""
    if urls and any_known(connection):
        seen.forget(connection, SeenFile.of(connection), urls)


def any_known(connection: apsw.Connection) -> bool:
    """Return whether any URL was packed, or waits."""
    some = bool(connection.execute("SELECT EXISTS (SELECT 1 FROM seen_chunk)").get)
    return some or pending.any_waits(connection)


class LinkBatch:
    """The links of one call of `discover` that wait for their verdict."""

    def __init__(self, connection: apsw.Connection, packing: Packing | None) -> None:
        self._connection = connection
        self._packing = packing
        self._is_large: bool | None = None
        self._facts: list[tuple[int, int, bool, int, float, int]] = []
        self._urls: list[str] = []

    def takes(self, site_id: int) -> bool:
        """Return whether links to pages of a site that have no row wait."""
        packing = self._packing
        if packing is None or site_id > MAX_SITE:
            return False
        if self._is_large is None:
            newest = self._connection.execute("SELECT ifnull(max(page_id), 0) FROM page").get
            self._is_large = newest >= packing.file_pages
        return self._is_large

    def add(self, host_id: int, depth: int, site_id: int, page: PackedPage) -> None:
        """Let a link wait."""
        place = site_id, min(depth, MAX_DEPTH), False
        self._facts.append((*place, host_id, page.found_at, page.referrer_id))
        self._urls.append(page.url)

    def links(self) -> Links | None:
        """Return the links; None: there are none."""
        if not self._urls:
            return None
        return Links(np.array(self._facts, FACTS), TextBlock.of(self._urls))


def told_links(queue: Queue, urls: Sequence[str]) -> Links:
    """Return links to URLs that are entries of a queue already, to make them known."""
    facts = np.zeros(len(urls), FACTS)
    facts["site"], facts["depth"] = queue.site_id, min(queue.depth, MAX_DEPTH)
    facts["told"], facts["host"] = True, queue.host_id
    return Links(facts, TextBlock.of(urls))


class Portion(NamedTuple):
    """Which packed pages become rows.

    Attributes:
        importance: returns the importance of a page's freshness, > 0; None: 1 for all.
        in_force: returns the URL by the rules in force of one that was found at a depth: those it
            was packed by may be former ones. None: they are the same.
        most: how many entries.
    """

    host_id: int
    site_id: int
    importance: Callable[[str], float] | None = None
    in_force: Callable[[str, int], str] | None = None
    most: int = UNPACKED_AT_ONCE


_FIRST: Final = """
SELECT packed_block_id, depth, pages FROM packed_block WHERE host_id = ? AND site_id = ?
ORDER BY depth, packed_block_id
"""


def unpack_in_parts(connection: apsw.Connection, portion: Portion) -> InParts[int]:
    """Make the first packed pages of a site on a host rows; return how many.

    Fewer than asked for: there are no more, or some entries were void.
    """
    host_id, site_id = portion.host_id, portion.site_id
    packed_shared.draw(connection, host_id)
    chosen, pages = [], 0
    for block_id, depth, size in connection.execute(_FIRST, (host_id, site_id)):
        chosen.append((block_id, depth))
        pages += size
        if pages >= portion.most:
            break
    has_tombstones = tombstone.any_exists(connection)
    origins: dict[str, int] = {}
    replaced: list[str] = []
    taken = made = 0
    for block_id, depth in chosen:
        queue = Queue(host_id, site_id, depth)
        for page in packed_block.take_first(connection, block_id, portion.most - taken):
            taken += 1
            current = page
            if portion.in_force is not None:
                current = page._replace(url=portion.in_force(page.url, depth))
            if current.url != page.url:
                replaced.append(page.url)
            is_purged = has_tombstones and tombstone.exists(connection, current.url)
            if not is_purged and make_row(connection, queue, current, portion.importance, origins):
                made += 1
            if taken % PART_ROWS == 0:
                yield None
    count_dropped(connection, host_id, site_id, taken - made)
    forget(connection, replaced)
    return made


_VOID: Final = "SELECT entries FROM packed_void WHERE host_id = ? AND site_id = ?"

_ADD_VOID: Final = """
INSERT INTO packed_void (host_id, site_id, entries) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET entries = entries + excluded.entries
"""

_DROP_VOID: Final = "DELETE FROM packed_void WHERE host_id = ? AND site_id = ? AND entries = 0"


def void_entries(connection: apsw.Connection, host_id: int, site_id: int) -> int:
    """Return how many entries of a site on a host are void because their pages wait elsewhere."""
    return connection.execute(_VOID, (host_id, site_id)).get or 0


def add_void(connection: apsw.Connection, host_id: int, site_id: int, entries: int) -> None:
    """Add to the number of void entries, or take from it."""
    connection.execute(_ADD_VOID, (host_id, site_id, entries))
    if entries < 0:
        connection.execute(_DROP_VOID, (host_id, site_id))


def count_dropped(connection: apsw.Connection, host_id: int, site_id: int, entries: int) -> None:
    """Count entries that were removed and became no rows: void ones first, which are no pages."""
    void = min(entries, void_entries(connection, host_id, site_id)) if entries else 0
    if void:
        add_void(connection, host_id, site_id, -void)
    if entries > void:
        count_pages(connection, host_id, site_id, void - entries)


def count_pages(connection: apsw.Connection, host_id: int, site_id: int, pages: int) -> None:
    """Count packed pages of a site on a host that were added, or are no more."""
    page_counts.count_discovered(connection, [(site_id, pages)], [(host_id, pages)])


def make_row(
    connection: apsw.Connection,
    queue: Queue,
    page: PackedPage,
    importance: Callable[[str], float] | None,
    origins: dict[str, int],
) -> bool:
    """Make an entry that was removed a row; return False if its page has one."""
    key = free_key(connection, queue.host_id, page.url)
    if key is not None:
        insert(connection, queue, key, page, importance, origins)
    return key is not None


def insert(
    connection: apsw.Connection,
    queue: Queue,
    key: int,
    page: PackedPage,
    importance: Callable[[str], float] | None,
    origins: dict[str, int],
) -> int:
    """Insert the row of a page that has none; return its page_id.

    Args:
        key: url_hash of the row.
        origins: origin_id by origin, of those that are known; another one is added.
    """
    origin = split_url(page.url).origin
    if origin not in origins:
        origins[origin] = host_rows.ensure_origin(connection, queue.host_id, origin)
    weight = 1.0 if importance is None else importance(page.url)
    values = (queue.site_id, queue.host_id, origins[origin], key, queue.depth)
    more = (weight, page.found_at, page.referrer_id, page.url)
    connection.execute(_INSERT, (*values, *more))
    return connection.last_insert_rowid()


def first_depth(connection: apsw.Connection, host_id: int, site_id: int) -> int | None:
    """Return the least depth of the packed pages of a site on a host; None: there is none."""
    depth: int | None = connection.execute(
        "SELECT min(depth) FROM packed_block WHERE host_id = ? AND site_id = ?", (host_id, site_id)
    ).get
    shared = [
        each.queue.depth
        for each in packed_shared.queues_of_host(connection, host_id)
        if each.queue.site_id == site_id
    ]
    return min(shared if depth is None else [depth, *shared], default=None)


def count_before(connection: apsw.Connection, host_id: int, site_id: int, depth: int) -> int:
    """Return how many packed pages of a site on a host have a smaller depth, about."""
    pages: int = connection.execute(
        "SELECT ifnull(sum(pages), 0) FROM packed_block"
        " WHERE host_id = ? AND site_id = ? AND depth < ?",
        (host_id, site_id, depth),
    ).get
    return pages + sum(
        each.end - each.start
        for each in packed_shared.queues_of_host(connection, host_id)
        if each.queue.site_id == site_id and each.queue.depth < depth
    )


_NEXT_QUEUE: Final = """
SELECT host_id, site_id FROM packed_block WHERE (host_id, site_id) > (?1, ?2)
ORDER BY host_id, site_id LIMIT 1
"""


def queues(
    connection: apsw.Connection, host_ids: Sequence[int] | None = None
) -> list[tuple[int, int]]:
    """Return (host_id, site_id) of all queues with packed pages.

    It takes one look into the index for each, and the lists of queues of all shared blocks that may
    have any.

    Args:
        host_ids: the hosts, ascending; None: all.
    """
    found = pairs_in_order(connection, _NEXT_QUEUE, host_ids)
    return list(dict.fromkeys([*found, *packed_shared.sites_of_hosts(connection, host_ids)]))


def pairs_in_order(
    connection: apsw.Connection,
    sql: str,
    host_ids: Sequence[int] | None,
    values: tuple[int, ...] = (),
) -> Iterator[tuple[int, int]]:
    """Yield the (host_id, site_id) of an index, with one look into it for each.

    Args:
        sql: selects the next one after two numbers.
        host_ids: the hosts, ascending: those between them are leapt over; None: all.
        values: further bindings.
    """
    host_id, site_id = -1, -1
    while (row := connection.execute(sql, (host_id, site_id, *values)).fetchone()) is not None:
        host_id, site_id = row
        if host_ids is not None:
            at = bisect_left(host_ids, host_id)
            if at == len(host_ids):
                return
            if host_ids[at] != host_id:
                host_id, site_id = host_ids[at], -1
                continue
        yield host_id, site_id


_ROWS: Final = """
SELECT page.url FROM carray(?1) AS wanted CROSS JOIN page
  ON page.host_id = ?2 AND page.url_hash = wanted.value
"""


def rows_of(connection: apsw.Connection, host_id: int, urls: Sequence[str]) -> set[str]:
    """Return which URLs of a host are rows; perhaps others that share a key."""
    keys = array.array("q", [key for url in urls for key in url_keys(url)])
    return (
        {url for (url,) in connection.execute(_ROWS, (apsw.carray(keys), host_id))}
        if urls
        else set()
    )


def valid_entries(connection: apsw.Connection, queue: Queue, urls: Sequence[str]) -> list[bool]:
    """Return which entries of a block are packed pages."""
    rows = rows_of(connection, queue.host_id, urls)
    valid = [url not in rows for url in urls]
    if void_entries(connection, queue.host_id, queue.site_id):
        places = seen.places(connection, SeenFile.of(connection), urls)
        # One that is nowhere was told to be new, and has no verdict yet.
        here = (places == place_of(queue.site_id, queue.depth)) | (places == NOWHERE)
        return [each and is_here for each, is_here in zip(valid, here.tolist(), strict=True)]
    return valid
