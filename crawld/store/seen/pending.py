"""URLs that wait for their verdict.

Few URLs at once are kept as they come. When enough came together they are divided by repository, so
that a turn of a repository reads only its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw
import numpy as np

from crawld.core.seen.event import Events
from crawld.core.seen.judge import PendingUrls
from crawld.core.seen.keys import REPOSITORIES, Checks, Keys, UrlKeys, by_cluster
from crawld.core.seen.texts import TextBlock
from crawld.errors import CorruptDatabaseError
from crawld.store.seen.block import PENDING_LEVEL, compressed, decompressed

UNDIVIDED: Final = REPOSITORIES

MIN_DIVIDED: Final = 16_384
"""Fewer URLs at once would leave 64 rows of less than a page each."""

MAX_UNDIVIDED: Final = 65_536

_KEY: Final = np.dtype("<u8")
_CHECK: Final = np.dtype("<u4")


@dataclass(frozen=True, slots=True)
class Backlog:
    """Pending URLs of a repository.

    Attributes:
        oldest: number of its oldest row; rows of all repositories are numbered together.
    """

    repository: int
    urls: int
    oldest: int


def put(connection: apsw.Connection, keys: UrlKeys, events: Events, texts: TextBlock) -> None:
    """Add URLs that wait; `events` has one event for each."""
    if len(texts) >= MIN_DIVIDED:
        divide(connection)  # what came before keeps its place
        _put_each(connection, keys, events, texts)
        return
    # The key of an undivided URL is kept with its repository before it.
    entries = keys.repository.tobytes() + _entries(keys.key, keys.check, events)
    _insert(connection, UNDIVIDED, entries, texts)
    waiting = connection.execute(
        "SELECT sum(urls) FROM seen_pending WHERE repository = ?", (UNDIVIDED,)
    ).get
    if waiting >= MAX_UNDIVIDED:
        divide(connection)


def put_divided(connection: apsw.Connection, repository: int, urls: PendingUrls) -> None:
    """Add URLs of one repository that wait."""
    _insert(connection, repository, _entries(urls.keys, urls.checks, urls.events), urls.texts)


def _put_each(connection: apsw.Connection, keys: UrlKeys, events: Events, texts: TextBlock) -> None:
    order, parts = by_cluster(keys)
    ordered, event, text = keys.take(order), events[order], texts.select(order)
    for repository, start, end in parts:
        part = slice(start, end)
        urls = PendingUrls(
            ordered.key[part], ordered.check[part], event[part], text.part(start, end)
        )
        put_divided(connection, repository, urls)


def divide(connection: apsw.Connection) -> None:
    """Divide the URLs that were kept as they came."""
    found, events, texts = _undivided(connection)
    if not len(events):
        return
    connection.execute("DELETE FROM seen_pending WHERE repository = ?", (UNDIVIDED,))
    _put_each(connection, found, events, texts)


def take(connection: apsw.Connection, repository: int) -> PendingUrls:
    """Remove and return the URLs of a repository that wait, in order of arrival."""
    pending = read(connection, repository)
    connection.execute("DELETE FROM seen_pending WHERE repository = ?", (repository,))
    return pending


def read(connection: apsw.Connection, repository: int) -> PendingUrls:
    """Return the URLs of a repository that wait, in order of arrival."""
    keys, checks, events, blocks = [], [], [], []
    for urls, entries, frame in connection.execute(
        "SELECT urls, entries, texts FROM seen_pending WHERE repository = ?"
        " ORDER BY seen_pending_id",
        (repository,),
    ):
        key, check, event = _unpacked(entries, urls)
        keys.append(key)
        checks.append(check)
        events.append(event)
        blocks.append(decompressed(frame, urls))
    return PendingUrls(
        np.concatenate([np.zeros(0, np.uint64), *keys]),
        np.concatenate([np.zeros(0, np.uint32), *checks]),
        np.concatenate([np.zeros(0, np.uint8), *events]),
        TextBlock.join(blocks),
    )


def read_keys(connection: apsw.Connection, repository: int) -> Keys:
    """Return the keys of the URLs of a repository that wait."""
    rows = connection.execute(
        "SELECT urls, entries FROM seen_pending WHERE repository = ?", (repository,)
    )
    keys = [_unpacked(entries, urls)[0] for urls, entries in rows]
    return np.concatenate(keys) if keys else np.zeros(0, np.uint64)


def read_undivided(connection: apsw.Connection, repository: int) -> PendingUrls:
    """Return the URLs of a repository among those that were not divided yet."""
    keys, events, texts = _undivided(connection)
    at = np.flatnonzero(keys.repository == repository)
    return PendingUrls(keys.key[at], keys.check[at], events[at], texts.select(at))


def undivided_keys(connection: apsw.Connection) -> UrlKeys:
    """Return the keys of the URLs that were not divided yet."""
    return _undivided(connection)[0]


def _undivided(connection: apsw.Connection) -> tuple[UrlKeys, Events, TextBlock]:
    repositories, blocks = [np.zeros(0, np.uint8)], []
    keys, checks, events = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint32)], []
    for urls, entries, frame in connection.execute(
        "SELECT urls, entries, texts FROM seen_pending WHERE repository = ?"
        " ORDER BY seen_pending_id",
        (UNDIVIDED,),
    ):
        repositories.append(np.frombuffer(entries, np.uint8, urls))
        key, check, event = _unpacked(entries[urls:], urls)
        keys.append(key)
        checks.append(check)
        events.append(event)
        blocks.append(decompressed(frame, urls))
    found = UrlKeys(np.concatenate(repositories), np.concatenate(keys), np.concatenate(checks))
    return found, np.concatenate([np.zeros(0, np.uint8), *events]), TextBlock.join(blocks)


def count(connection: apsw.Connection) -> int:
    """Return how many URLs wait."""
    urls: int = connection.execute("SELECT coalesce(sum(urls), 0) FROM seen_pending").get
    return urls


def backlogs(connection: apsw.Connection) -> list[Backlog]:
    """Return what waits in each repository that has any."""
    return [
        Backlog(*row)
        for row in connection.execute(
            "SELECT repository, sum(urls), min(seen_pending_id) FROM seen_pending"
            " WHERE repository < ? GROUP BY repository",
            (UNDIVIDED,),
        )
    ]


def _insert(connection: apsw.Connection, repository: int, entries: bytes, texts: TextBlock) -> None:
    connection.execute(
        "INSERT INTO seen_pending (repository, urls, entries, texts) VALUES (?, ?, ?, ?)",
        (repository, len(texts), entries, compressed(texts, PENDING_LEVEL)),
    )


def _entries(keys: Keys, checks: Checks, events: Events) -> bytes:
    key, check = keys.astype(_KEY, copy=False), checks.astype(_CHECK, copy=False)
    return b"".join([key.tobytes(), check.tobytes(), events.tobytes()])


def _unpacked(entries: bytes, urls: int) -> tuple[Keys, Checks, Events]:
    """Return keys, checks and events of a row.

    Raises:
        CorruptDatabaseError: there are fewer than `urls`.
    """
    if len(entries) != urls * (_KEY.itemsize + _CHECK.itemsize + 1):
        raise CorruptDatabaseError("a row of pending URLs is damaged")
    checks_at = urls * _KEY.itemsize
    events_at = checks_at + urls * _CHECK.itemsize
    return (
        np.frombuffer(entries, _KEY, urls),
        np.frombuffer(entries, _CHECK, urls, checks_at),
        np.frombuffer(entries, np.uint8, urls, events_at),
    )
