"""A file whose frontier knows many URLs, as a long crawl leaves it: most of them are packed.

It is filled by the store's own functions. Hosts have sizes by a power law; the first pages of a
host are rows, the others packed pages, as links of a large crawl are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import apsw
import numpy as np

from crawld.bench.seen_web import SeenWeb, SomeUrls
from crawld.core.url import split_url
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, host, packed, site
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.packed import DEFAULT_PACKING
from crawld.store.frontier.packed_block import Columns, Queue

HOSTS: Final = 1_000
"""Their first pages are the million rows from which on links are packed."""

KNOWN_SITE: Final = "known"
DEPTH: Final = 3

_SINCE: Final = 1.7e9
_PART: Final = 50_000
_FIRST_SHARE: Final = 0.7
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
        of_host = SomeUrls(np.full(end - first, number), np.arange(first, end))
        origin = self.origins[number]
        return [f"{origin}{url[_HOST_CHARACTERS:]}" for url in of_host.texts()]


def fill(path: Path, known: int, origins: Sequence[str]) -> KnownFrontier:
    """Make a file that knows so many URLs of these origins."""
    sizes = SeenWeb(known, 1, len(origins)).sizes.tolist()
    made = KnownFrontier(path, tuple(origins), tuple(sizes))
    migrate.migrate(path)
    connection = open_connection(path)
    connection.wal_autocheckpoint(10_000)
    site_id = site.upsert(connection, KNOWN_SITE, "{}", source="config", at=_SINCE)
    is_small = known <= DEFAULT_PACKING.file_pages
    rows = [size if is_small else min(size, DEFAULT_PACKING.host_pages) for size in sizes]
    for number, count in enumerate(rows):
        with connection:
            _add_rows(connection, made, site_id, number, count)
    middle = [row + int((size - row) * _FIRST_SHARE) for row, size in zip(rows, sizes, strict=True)]
    for begins, ends in ((rows, middle), (middle, sizes)):
        for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            for start in range(begin, end, _PART):
                with connection:
                    _pack(connection, made, site_id, number, start, min(start + _PART, end))
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


def _pack(
    connection: apsw.Connection,
    known: KnownFrontier,
    site_id: int,
    number: int,
    begin: int,
    end: int,
) -> None:
    host_id = host.ensure(connection, split_url(known.origins[number] + "/").host, _SINCE)
    positions = np.arange(begin, end)
    urls = known.urls(number, begin, end)
    found_at = (_SINCE + positions // 65).astype(np.float64)
    pages = Columns(urls, found_at, positions // 65)
    packed.add_new(connection, Queue(host_id, site_id, DEPTH), pages)
