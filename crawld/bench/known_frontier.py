"""A file whose frontier knows many URLs, as a long crawl leaves it: most of them are packed.

It is filled by the store's own functions. Hosts have sizes by a power law; so many pages are rows
as make a file large, the others are packed, as links of a large crawl are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import apsw
import numpy as np

from crawld.bench.run import Progress
from crawld.bench.seen_web import SeenWeb, SomeUrls
from crawld.core.seen.keys import REPOSITORIES, UrlKeys
from crawld.core.seen.place import place_of
from crawld.core.seen.run import Positions, Run
from crawld.core.seen.texts import TextBlock
from crawld.core.url import split_url
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, host, packed, packed_block, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.packed import DEFAULT_PACKING
from crawld.store.frontier.packed_block import Columns, Queue
from crawld.store.seen import chunk
from crawld.store.seen.seen import SeenFile

HOSTS: Final = 1_000
"""Of whom the largest has more than a million URLs when a hundred million are known."""

KNOWN_SITE: Final = "known"
DEPTH: Final = 3

_SINCE: Final = 1.7e9
_PART: Final = 50_000
_HOST_CHARACTERS: Final = len("https://www.h000000.example")


@dataclass(frozen=True, slots=True)
class KnownFrontier:
    """What a file knows.

    Attributes:
        path: the file.
        origins: of its hosts, the largest first.
        sizes: how many URLs of each are known.
    """

    path: Path
    origins: tuple[str, ...]
    sizes: tuple[int, ...]

    def urls(self, number: int, first: int, end: int) -> list[str]:
        """Return URLs of a host; those from its size on are not known."""
        return self.texts(number, first, end).decoded()

    def texts(self, number: int, first: int, end: int) -> TextBlock:
        """Return the same as a block."""
        return self.texts_of(number, np.arange(first, end))

    def texts_of(self, number: int, numbers: Positions) -> TextBlock:
        """Return URLs of a host by their numbers."""
        of_host = SomeUrls(np.full(len(numbers), number), numbers).block()
        origin = self.origins[number].encode()
        paths = of_host.take(np.arange(len(numbers)))
        return TextBlock.of_octets([origin + path[_HOST_CHARACTERS:] for path in paths])


def fill(
    path: Path, known: int, origins: Sequence[str], progress: Progress = lambda line: None
) -> KnownFrontier:
    """Make a file that knows so many URLs of these origins."""
    sizes = SeenWeb(known, 1, len(origins)).sizes.tolist()
    made = KnownFrontier(path, tuple(origins), tuple(sizes))
    migrate.migrate(path)
    connection = open_connection(path)
    connection.wal_autocheckpoint(10_000)
    site_id = site.upsert(connection, KNOWN_SITE, "{}", source="config", at=_SINCE)
    # As many rows as make a file large; the other pages are packed.
    share = min(1.0, DEFAULT_PACKING.file_pages / max(known, 1))
    rows = [math.ceil(size * share) for size in sizes]
    for number, count in enumerate(rows):
        with connection:
            _add_rows(connection, made, site_id, number, count)
    _pack_all(connection, made, site_id, rows, progress)
    # Its pages are crawled once a config names it again.
    site.retire(connection, KNOWN_SITE)
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    return made


def _add_rows(
    connection: apsw.Connection, known: KnownFrontier, site_id: int, number: int, count: int
) -> None:
    found = (
        Discovery.of(url, site_id=site_id, at=_SINCE, depth=DEPTH)
        for url in known.urls(number, 0, count)
    )
    while part := list(islice(found, _PART)):
        frontier.discover(connection, part)


def _pack_all(
    connection: apsw.Connection,
    known: KnownFrontier,
    site_id: int,
    rows: Sequence[int],
    progress: Progress,
) -> None:
    """Pack all pages that are no rows, repository by repository."""
    file = SeenFile.of(connection)
    keys = file.keys(TextBlock.of([f"{origin}/" for origin in known.origins]))
    done, total = 0, sum(known.sizes)
    for repository in range(REPOSITORIES):
        found = []
        for number in np.flatnonzero(keys.repository == repository).tolist():
            with connection:
                parts = range(rows[number], known.sizes[number], _PART)
                found += [_pack(connection, file, known, site_id, number, at) for at in parts]
        with connection:
            _put_keys(connection, repository, site_id, found)
        connection.wal_checkpoint()
        done += sum(len(each.key) for each in found)
        progress(f"frontier: {done:,} of {total:,} URLs are packed")


def _pack(
    connection: apsw.Connection,
    file: SeenFile,
    known: KnownFrontier,
    site_id: int,
    number: int,
    begin: int,
) -> UrlKeys:
    """Pack some pages of a host; return their keys."""
    end = min(begin + _PART, known.sizes[number])
    host_id = host.ensure(connection, split_url(known.origins[number] + "/").host, _SINCE)
    positions = np.arange(begin, end)
    texts = known.texts(number, begin, end)
    found_at = (_SINCE + positions // 65).astype(np.float64)
    entries = Columns(texts, found_at, positions // 65)
    packed_block.append_full(connection, Queue(host_id, site_id, DEPTH), entries)
    packed.count_pages(connection, host_id, site_id, end - begin)
    return file.keys(texts)


def _put_keys(
    connection: apsw.Connection, repository: int, site_id: int, found: Sequence[UrlKeys]
) -> None:
    """Store the keys of a repository's URLs."""
    if not found:
        return
    key = np.concatenate([each.key for each in found])
    check = np.concatenate([each.check for each in found])
    order = np.argsort(key)
    places = np.full(len(key), place_of(site_id, DEPTH), np.uint16)
    none = np.zeros(0, np.int64)
    chunks = chunk.load(connection, repository, key[:0])
    chunk.save(connection, repository, chunks, none, none, Run(key[order], check[order], places))
