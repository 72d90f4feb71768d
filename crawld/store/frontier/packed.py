"""Never-visited pages of a large frontier, packed: 30 bytes beside a compressed URL, no row.

A link becomes a packed page instead of a row of `page` if the file and its host have many pages
(`Packing`), and a row again before it is handed out (`unpack_in_parts`), or as soon as something
needs its row (`claim`): a seed, a requisite, an operator. Both ways are one transaction
of the only writer, so that a page is packed or a row, never both.

`packed_key` is exact: it has the key that the row will have, so two URLs that could not be two rows
cannot be two packed pages. Two URLs of one host have the same 64 bits with probability 2^-64; a
host of 10^7 URLs has 3e-6 expected pairs. Texts are not compared here: the second one is taken for
the first.

The order of visits is that of rows: depth, then discovery. A page found again nearer to the seeds
is entered once more; its first entry is void then.
"""

from __future__ import annotations

import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.core.url import split_url, url_hash
from crawld.store.engine.in_parts import PART_ROWS, InParts
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import packed_block, page_counts, tombstone
from crawld.store.frontier.packed_block import PackedPage, Queue

ANY_EXISTS: Final = "EXISTS (SELECT 1 FROM packed_key)"
"""Condition: there is any packed page."""

UNPACKED_AT_ONCE: Final = 2_048
"""Pages that become rows in one transaction: some 40 ms in parts, each minutes of a polite host."""


@dataclass(frozen=True, slots=True)
class Packing:
    """From which size on links are packed.

    Attributes:
        file_pages: page rows that the file must have had, so that mirrors of up to a million pages
            stay as they are.
        host_pages: never-visited pages that the host must have; the first of them stay rows.
    """

    file_pages: int = 1_000_000
    host_pages: int = 1_024


DEFAULT_PACKING: Final = Packing()


class PackedKey(NamedTuple):
    """What is known of a packed page without its block."""

    site_id: int
    depth: int


_KEYS: Final = """
SELECT packed_key.url_hash, site_id, depth FROM carray(?1) AS wanted CROSS JOIN packed_key
  ON packed_key.host_id = ?2 AND packed_key.url_hash = wanted.value
"""

_ADD: Final = "INSERT INTO packed_key (host_id, url_hash, site_id, depth) VALUES (?, ?, ?, ?)"

_MOVE: Final = "UPDATE packed_key SET site_id = ?, depth = ? WHERE host_id = ? AND url_hash = ?"

_CLAIM: Final = "DELETE FROM packed_key WHERE host_id = ? AND url_hash = ?"

_TAKE: Final = f"{_CLAIM} AND site_id = ? AND depth = ?"

# Its referrer may have been purged since.
_INSERT: Final = """
INSERT INTO page (site_id, host_id, origin_id, url_hash, state, depth, importance, discovered_at,
                  referrer_id, url)
VALUES (?, ?, ?, ?, 'discovered', ?, ?, ?, (SELECT page_id FROM page WHERE page_id = ?), ?)
"""


def claim(connection: apsw.Connection, host_id: int, key: int) -> None:
    """Remove the key of a page whose row is about to be inserted, or that is forgotten."""
    connection.execute(_CLAIM, (host_id, key))


def replace_by_row(connection: apsw.Connection, host_id: int, key: int) -> None:
    """Remove a page, if it is packed, of whose URL another page has become the row."""
    known = keys_of(connection, host_id, [key]).get(key)
    if known is not None:
        claim(connection, host_id, key)
        move = (known.site_id, host_id, PageState.DISCOVERED, None)
        page_counts.count_moves(connection, [move])


def any_exists(connection: apsw.Connection) -> bool:
    """Return whether there is any packed page."""
    return bool(connection.execute(f"SELECT {ANY_EXISTS}").get)


def keys_of(
    connection: apsw.Connection, host_id: int, hashes: Sequence[int]
) -> dict[int, PackedKey]:
    """Return those of some keys on a host that are packed pages."""
    if not hashes:
        return {}
    rows = connection.execute(_KEYS, (apsw.carray(array.array("q", hashes)), host_id))
    return {key: PackedKey(site_id, depth) for key, site_id, depth in rows}


class PackedPages:
    """The packed pages of one call of `discover`: looked up, added, and claimed.

    Entries are stored by `store_in_parts`, keys at once.
    """

    def __init__(
        self, connection: apsw.Connection, packing: Packing | None, *, any_exist: bool
    ) -> None:
        self._connection = connection
        self._packing = packing
        self._any_exist = any_exist
        self._is_large: bool | None = None
        self._waiting: dict[int, int] = {}
        self._found: dict[Queue, list[PackedPage]] = defaultdict(list)

    def find(self, host_id: int, hashes: list[int]) -> dict[int, PackedKey]:
        """Return those of some keys on a host that are packed pages."""
        return keys_of(self._connection, host_id, hashes) if self._any_exist else {}

    def takes(self, host_id: int) -> bool:
        """Return whether a link to a new page of a host is packed."""
        packing = self._packing
        if packing is None:
            return False
        if host_id not in self._waiting:
            sql = "SELECT pages_discovered FROM host WHERE host_id = ?"
            self._waiting[host_id] = self._connection.execute(sql, (host_id,)).get
        if self._waiting[host_id] < packing.host_pages:
            return False
        if self._is_large is None:
            newest = self._connection.execute("SELECT ifnull(max(page_id), 0) FROM page").get
            self._is_large = newest >= packing.file_pages
        return self._is_large

    def add(self, host_id: int, key: int, site_id: int, depth: int, page: PackedPage) -> PackedKey:
        """Add a page that is neither packed nor a row."""
        self._any_exist = True
        self._connection.execute(_ADD, (host_id, key, site_id, depth))
        self._found[Queue(host_id, site_id, depth)].append(page)
        return PackedKey(site_id, depth)

    def move(self, host_id: int, key: int, site_id: int, depth: int, page: PackedPage) -> PackedKey:
        """Give a packed page another site or depth."""
        self._connection.execute(_MOVE, (site_id, depth, host_id, key))
        self._found[Queue(host_id, site_id, depth)].append(page)
        return PackedKey(site_id, depth)

    def store_in_parts(self) -> InParts[None]:
        """Store the entries of the pages that were added and moved."""
        done = 0
        for queue, pages in self._found.items():
            packed_block.append(self._connection, queue, pages)
            done += len(pages)
            if done >= PART_ROWS:
                done = 0
                yield None


class Portion(NamedTuple):
    """Which packed pages become rows.

    Attributes:
        importance: returns the importance of a page's freshness, > 0; None: 1 for all.
        in_force: returns a URL by the rules for canonical URLs in force: those it was packed by may
            be former ones. None: they are the same.
        most: about how many, whole blocks.
    """

    host_id: int
    site_id: int
    importance: Callable[[str], float] | None = None
    in_force: Callable[[str], str] | None = None
    most: int = UNPACKED_AT_ONCE


_FIRST: Final = """
SELECT packed_block_id, depth, pages FROM packed_block WHERE host_id = ? AND site_id = ?
ORDER BY depth, packed_block_id
"""


def unpack_in_parts(connection: apsw.Connection, portion: Portion) -> InParts[int]:
    """Make the first packed pages of a site on a host rows; return how many."""
    host_id, site_id = portion.host_id, portion.site_id
    chosen, pages = [], 0
    for block_id, depth, size in connection.execute(_FIRST, (host_id, site_id)):
        chosen.append((block_id, depth))
        pages += size
        if pages >= portion.most:
            break
    origins: dict[str, int] = {}
    made = 0
    for block_id, depth in chosen:
        queue = Queue(host_id, site_id, depth)
        for done, page in enumerate(packed_block.take(connection, block_id), 1):
            key = url_hash(page.url)
            connection.execute(_TAKE, (host_id, key, site_id, depth))
            if connection.changes():
                current = page if portion.in_force is None else _renamed(page, portion.in_force)
                if current is page or _is_free(connection, queue, current.url):
                    insert(connection, queue, current, portion.importance, origins)
                    made += 1
            if done % PART_ROWS == 0:
                yield None
    return made


def _renamed(page: PackedPage, in_force: Callable[[str], str]) -> PackedPage:
    url = in_force(page.url)
    return page if url == page.url else page._replace(url=url)


def _is_free(connection: apsw.Connection, queue: Queue, url: str) -> bool:
    """Return whether a new URL of a packed page is no page yet; else the two become one."""
    key = url_hash(url)
    sql = "SELECT 1 FROM page WHERE host_id = ? AND url_hash = ?"
    is_row = connection.execute(sql, (queue.host_id, key)).get is not None
    if is_row or tombstone.exists(connection, url):
        move = (queue.site_id, queue.host_id, PageState.DISCOVERED, None)
        page_counts.count_moves(connection, [move])
        return False
    replace_by_row(connection, queue.host_id, key)
    return True


def insert(
    connection: apsw.Connection,
    queue: Queue,
    page: PackedPage,
    importance: Callable[[str], float] | None,
    origins: dict[str, int],
) -> int:
    """Insert the row of a page whose key was removed; return its page_id.

    Args:
        origins: origin_id by origin, of those that are known; another one is added.
    """
    origin = split_url(page.url).origin
    if origin not in origins:
        origins[origin] = host_rows.ensure_origin(connection, queue.host_id, origin)
    weight = 1.0 if importance is None else importance(page.url)
    values = (queue.site_id, queue.host_id, origins[origin], url_hash(page.url), queue.depth)
    more = (weight, page.found_at, page.referrer_id, page.url)
    connection.execute(_INSERT, (*values, *more))
    return connection.last_insert_rowid()


def first_depth(connection: apsw.Connection, host_id: int, site_id: int) -> int | None:
    """Return the least depth of the packed pages of a site on a host; None: there is none."""
    depth: int | None = connection.execute(
        "SELECT min(depth) FROM packed_block WHERE host_id = ? AND site_id = ?", (host_id, site_id)
    ).get
    return depth


def count_before(connection: apsw.Connection, host_id: int, site_id: int, depth: int) -> int:
    """Return how many packed pages of a site on a host have a smaller depth, about."""
    pages: int = connection.execute(
        "SELECT ifnull(sum(pages), 0) FROM packed_block"
        " WHERE host_id = ? AND site_id = ? AND depth < ?",
        (host_id, site_id, depth),
    ).get
    return pages


_NEXT_QUEUE: Final = """
SELECT host_id, site_id FROM packed_block WHERE (host_id, site_id) > (?, ?)
ORDER BY host_id, site_id LIMIT 1
"""


def queues(connection: apsw.Connection) -> list[tuple[int, int]]:
    """Return (host_id, site_id) of all queues with packed pages; one look into the index each."""
    found: list[tuple[int, int]] = []
    last = (-1, -1)
    while (row := connection.execute(_NEXT_QUEUE, last).fetchone()) is not None:
        last = (row[0], row[1])
        found.append(last)
    return found
