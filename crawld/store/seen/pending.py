"""Links that wait for their verdict.

Links of a visit are kept as they come. When enough came together they are divided by repository, so
that a turn of a repository reads only its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw
import numpy as np

from crawld.core.seen.judge import PendingUrls
from crawld.core.seen.keys import Checks, Keys, UrlKeys, by_cluster
from crawld.errors import CorruptDatabaseError
from crawld.store import changed
from crawld.store.seen.links import Links

MIN_DIVIDED: Final = 16_384
"""Fewer links at once would leave 64 rows of less than a page each."""

DIVIDED_AT_ONCE: Final = 65_536
"""Links that are divided together: some 10 MB."""

MAX_FOUND: Final = 16_384
"""Links of so many visits may wait undivided: minutes of a fast crawl, 80 MB."""

_KEY: Final = np.dtype("<u8")
_CHECK: Final = np.dtype("<u4")


@dataclass(frozen=True, slots=True)
class Backlog:
    """Pending links of a repository.

    Attributes:
        oldest: number of its oldest row; rows of all repositories are numbered together.
    """

    repository: int
    urls: int
    oldest: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Links of a repository, and their keys."""

    keys: Keys
    checks: Checks
    links: Links

    def judged(self) -> PendingUrls:
        """Return what is judged."""
        return PendingUrls(self.keys, self.checks, self.links.places, self.links.facts["told"])


def put_found(connection: apsw.Connection, links: Links) -> None:
    """Add links as they come."""
    connection.execute(
        "INSERT INTO seen_found (urls, links) VALUES (?, ?)", (len(links), links.pack())
    )
    changed.note(connection, "seen_found")


def is_full(connection: apsw.Connection) -> bool:
    """Return whether too many rows are not divided yet; one look at each end of the table."""
    first, last = connection.execute(
        "SELECT (SELECT min(seen_found_id) FROM seen_found), max(seen_found_id) FROM seen_found"
    ).get
    return first is not None and last - first >= MAX_FOUND


def any_waits(connection: apsw.Connection) -> bool:
    """Return whether any link waits for its verdict."""
    return bool(
        connection.execute(
            "SELECT EXISTS (SELECT 1 FROM seen_found) OR EXISTS (SELECT 1 FROM seen_pending)"
        ).get
    )


def take_found(connection: apsw.Connection) -> Links | None:
    """Remove and return the first links that are not divided; None: there are none."""
    taken, links, last = 0, [], 0
    for number, urls, frame in connection.execute(
        "SELECT seen_found_id, urls, links FROM seen_found ORDER BY seen_found_id"
    ):
        links.append(Links.unpack(frame, urls))
        taken, last = taken + urls, number
        if taken >= DIVIDED_AT_ONCE:
            break
    if not links:
        return None
    connection.execute("DELETE FROM seen_found WHERE seen_found_id <= ?", (last,))
    return Links.join(links)


def divide(connection: apsw.Connection, keys: UrlKeys, links: Links) -> None:
    """Add links with their keys to what waits in their repositories.

    Those that were told to be new leave their texts behind: these are packed already, and the keys
    decide.
    """
    order, parts = by_cluster(keys)
    texts = links.texts.without(links.facts["told"])
    ordered, links = keys.take(order), Links(links.facts, texts).select(order)
    for repository, start, end in parts:
        part = slice(start, end)
        put(
            connection,
            repository,
            Waiting(ordered.key[part], ordered.check[part], links.part(start, end)),
        )


def put(connection: apsw.Connection, repository: int, waiting: Waiting) -> None:
    """Add links of one repository."""
    entries = waiting.keys.astype(_KEY, copy=False).tobytes()
    entries += waiting.checks.astype(_CHECK, copy=False).tobytes()
    connection.execute(
        "INSERT INTO seen_pending (repository, urls, entries, links) VALUES (?, ?, ?, ?)",
        (repository, len(waiting.links), entries, waiting.links.pack()),
    )


def take(connection: apsw.Connection, repository: int) -> Waiting:
    """Remove and return the links of a repository, in order of arrival."""
    waiting = read(connection, repository)
    connection.execute("DELETE FROM seen_pending WHERE repository = ?", (repository,))
    return waiting


def read(connection: apsw.Connection, repository: int) -> Waiting:
    """Return the links of a repository, in order of arrival."""
    keys, checks, links = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint32)], []
    for urls, entries, frame in connection.execute(
        "SELECT urls, entries, links FROM seen_pending WHERE repository = ?"
        " ORDER BY seen_pending_id",
        (repository,),
    ):
        key, check = _unpacked(entries, urls)
        keys.append(key)
        checks.append(check)
        links.append(Links.unpack(frame, urls))
    return Waiting(np.concatenate(keys), np.concatenate(checks), Links.join(links))


def read_keys(connection: apsw.Connection, repository: int) -> Keys:
    """Return the keys of the links of a repository."""
    rows = connection.execute(
        "SELECT urls, entries FROM seen_pending WHERE repository = ?", (repository,)
    )
    keys = [np.zeros(0, np.uint64), *(_unpacked(entries, urls)[0] for urls, entries in rows)]
    return np.concatenate(keys)


def count(connection: apsw.Connection) -> int:
    """Return how many links wait."""
    urls: int = connection.execute(
        "SELECT (SELECT ifnull(sum(urls), 0) FROM seen_found)"
        " + (SELECT ifnull(sum(urls), 0) FROM seen_pending)"
    ).get
    return urls


def backlogs(connection: apsw.Connection) -> list[Backlog]:
    """Return what waits in each repository that has any."""
    return [
        Backlog(*row)
        for row in connection.execute(
            "SELECT repository, sum(urls), min(seen_pending_id) FROM seen_pending"
            " GROUP BY repository"
        )
    ]


def _unpacked(entries: bytes, urls: int) -> tuple[Keys, Checks]:
    """Return keys and checks of a row.

    Raises:
        CorruptDatabaseError: there are fewer than `urls`.
    """
    if len(entries) != urls * (_KEY.itemsize + _CHECK.itemsize):
        raise CorruptDatabaseError("a row of pending links is damaged")
    checks_at = urls * _KEY.itemsize
    return np.frombuffer(entries, _KEY, urls), np.frombuffer(entries, _CHECK, urls, checks_at)
