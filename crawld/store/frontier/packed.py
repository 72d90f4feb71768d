"""Never-visited pages of a large frontier, packed: 25 bytes beside a compressed URL, no row.

A link becomes a packed page instead of a row of `page` if the file and its host have many pages
(`Packing`), and a row again before it is handed out (`unpack_in_parts`), or as soon as something
needs its row (`claim`): a seed, a requisite, an operator, a replica that could defer it
(`store/replica/packed_twins.py`). Both ways are one transaction
of the only writer, so that a page is packed or a row, never both.

`packed_key` has the key that the row will have, a 64-bit hash of the URL, and 32 bits of another
hash (`check_of`). Texts are not read to know a packed page again: two URLs of a host are taken for
one only if all 96 bits are equal, which random URLs are with probability 2^-96. A host of 10^7 URLs
has 6e-16 expected pairs, 350 million URLs on such hosts have 2e-14. Two URLs that share only the 64
bits (3e-6 expected pairs on such a host, or as many as an attacker likes on his own) are told apart
and are two pages: the later one has `second_hash` as its key, packed and as a row (`free_key`).

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
from crawld.core.url import second_hash, split_url, url_hash, url_keys
from crawld.store.engine.in_parts import PART_ROWS, InParts
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import packed_block, page_counts, tombstone
from crawld.store.frontier.packed_block import Columns, PackedPage, Queue

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


def check_of(url: str) -> int:
    """Return 32 bits that tell apart two URLs of a host that have the same hash, as an integer."""
    return (second_hash(url) & 0xFFFF_FFFF) - (1 << 31)


class PackedKey(NamedTuple):
    """What is known of a packed page without its block; `check`: see `check_of`, None: unknown."""

    site_id: int
    depth: int
    check: int | None

    def is_of(self, url: str) -> bool:
        """Return whether it is the key of a URL that has its hash."""
        return self.check is None or self.check == check_of(url)


_KEYS: Final = """
SELECT packed_key.url_hash, site_id, depth, url_check
FROM carray(?1) AS wanted CROSS JOIN packed_key
  ON packed_key.host_id = ?2 AND packed_key.url_hash = wanted.value
"""

_ADD: Final = """
INSERT INTO packed_key (host_id, url_hash, site_id, depth, url_check) VALUES (?, ?, ?, ?, ?)
"""

_MOVE: Final = "UPDATE packed_key SET site_id = ?, depth = ? WHERE host_id = ? AND url_hash = ?"

_CLAIM: Final = "DELETE FROM packed_key WHERE host_id = ? AND url_hash = ?"

_TAKE: Final = f"{_CLAIM} AND site_id = ? AND depth = ? AND ifnull(url_check, ?5) = ?5"

# Its referrer may have been purged since.
_INSERT: Final = """
INSERT INTO page (site_id, host_id, origin_id, url_hash, state, depth, importance, discovered_at,
                  referrer_id, url)
VALUES (?, ?, ?, ?, 'discovered', ?, ?, ?, (SELECT page_id FROM page WHERE page_id = ?), ?)
"""


def claim(connection: apsw.Connection, host_id: int, key: int) -> None:
    """Remove the key of a page whose row is about to be inserted, or that is forgotten."""
    connection.execute(_CLAIM, (host_id, key))


_ROW: Final = "SELECT url FROM page WHERE host_id = ? AND url_hash = ?"


def free_key(connection: apsw.Connection, host_id: int, url: str) -> int | None:
    """Return the key for the row of a URL that has none; None: it has a row, or no key is free.

    A packed page of the URL is removed.
    """
    for key in url_keys(url):
        row = connection.execute(_ROW, (host_id, key)).get
        if row == url:
            return None
        known = keys_of(connection, host_id, [key]).get(key) if row is None else None
        if known is not None and known.is_of(url):
            claim(connection, host_id, key)
            move = (known.site_id, host_id, PageState.DISCOVERED, None)
            page_counts.count_moves(connection, [move])
            return key
        if row is None and known is None:
            return key
    return None


def find(connection: apsw.Connection, host_id: int, url: str) -> tuple[int, PackedKey] | None:
    """Return key and what is known of the packed page of a URL; None: it is not packed."""
    for key in url_keys(url):
        known = keys_of(connection, host_id, [key]).get(key)
        if known is not None and known.is_of(url):
            return key, known
    return None


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
    return {key: PackedKey(*known) for key, *known in rows}


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
        check = check_of(page.url)
        self._connection.execute(_ADD, (host_id, key, site_id, depth, check))
        self._found[Queue(host_id, site_id, depth)].append(page)
        return PackedKey(site_id, depth, check)

    def move(self, host_id: int, key: int, site_id: int, depth: int, page: PackedPage) -> PackedKey:
        """Give a packed page another site or depth."""
        self._connection.execute(_MOVE, (site_id, depth, host_id, key))
        self._found[Queue(host_id, site_id, depth)].append(page)
        return PackedKey(site_id, depth, check_of(page.url))

    def store_in_parts(self) -> InParts[None]:
        """Store the entries of the pages that were added and moved."""
        done = 0
        for queue, pages in self._found.items():
            packed_block.append(self._connection, queue, pages)
            done += len(pages)
            if done >= PART_ROWS:
                done = 0
                yield None


def add_new(connection: apsw.Connection, queue: Queue, pages: Columns) -> None:
    """Add and count many pages of a queue that are neither packed nor rows, after all others."""
    host_id, site_id, depth = queue
    keys = sorted([(url_hash(url), check_of(url)) for url in pages.urls])
    rows = [(host_id, key, site_id, depth, check) for key, check in keys]
    connection.executemany(_ADD, rows)
    packed_block.append_full(connection, queue, pages)
    steps = [len(rows) * step for step in page_counts.steps_of(None, PageState.DISCOVERED)]
    page_counts.count_steps(connection, site_id, host_id, steps)


class Portion(NamedTuple):
    """Which packed pages become rows.

    Attributes:
        importance: returns the importance of a page's freshness, > 0; None: 1 for all.
        in_force: returns the URL by the rules in force of one that was found at a depth: those it
            was packed by may be former ones. None: they are the same.
        most: about how many, whole blocks.
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
            current, key = page, take_key(connection, queue, page.url)
            if key is not None and portion.in_force is not None:
                current = page._replace(url=portion.in_force(page.url, depth))
            if current.url != page.url:
                key = _key_of_new_url(connection, queue, current.url)
            if key is not None:
                insert(connection, queue, key, current, portion.importance, origins)
                made += 1
            if done % PART_ROWS == 0:
                yield None
    return made


def take_key(connection: apsw.Connection, queue: Queue, url: str) -> int | None:
    """Remove the key of an entry and return it; None: the entry is void."""
    host_id, site_id, depth = queue
    check = check_of(url)
    for key in url_keys(url):
        connection.execute(_TAKE, (host_id, key, site_id, depth, check))
        if connection.changes():
            return key
    return None


def _key_of_new_url(connection: apsw.Connection, queue: Queue, url: str) -> int | None:
    """Return the key for a new URL of a packed page; None: it is a page, and the two become one."""
    key = None if tombstone.exists(connection, url) else free_key(connection, queue.host_id, url)
    if key is None:
        move = (queue.site_id, queue.host_id, PageState.DISCOVERED, None)
        page_counts.count_moves(connection, [move])
    return key


def insert(
    connection: apsw.Connection,
    queue: Queue,
    key: int,
    page: PackedPage,
    importance: Callable[[str], float] | None,
    origins: dict[str, int],
) -> int:
    """Insert the row of a page whose key was removed; return its page_id.

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
