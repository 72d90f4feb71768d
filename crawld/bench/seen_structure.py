"""crawld's seen URLs under the cycles of the benchmark: whole, and the structure without texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw
import numpy as np

from crawld.bench.seen_web import Cycle, SomeUrls
from crawld.core.seen.event import Events, SeenMark, announced, event_of
from crawld.core.seen.judge import PendingUrls, judge
from crawld.core.seen.keys import REPOSITORIES, Checks, Keys, UrlKeys, by_cluster, by_repository
from crawld.core.seen.run import Positions, Run, refs_of
from crawld.core.seen.texts import TextBlock
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.seen import chunk, pending, seen, text
from crawld.store.seen.seen import SeenFile
from crawld.store.seen.seen_urls import SeenUrls

_SEED: Final = 0x5EED
_MEMORY_BYTES: Final = 8 * 2**30
_FETCHED: Final = event_of(SeenMark.PAGE, sets=True)
_EXTRACTED: Final = event_of(SeenMark.WAITING)


@dataclass(frozen=True, slots=True)
class HashedCycle:
    """A cycle whose texts were hashed already."""

    fetched: UrlKeys
    extracted: UrlKeys


class _NoChecks:
    """The structure alone: 64 bits decide, as those of the baselines do."""

    def checks(self, numbers: Positions) -> Checks:
        return np.zeros(len(numbers), np.uint32)


def _events(fetched: int, extracted: int) -> Events:
    return np.repeat(np.array([_FETCHED, _EXTRACTED], np.uint8), (fetched, extracted))


class SeenContender:
    """A crawld file; `cycle` is the whole work, `structure_cycle` leaves the texts out."""

    def __init__(self, folder: Path) -> None:
        path = folder / "crawld.db"
        migrate.migrate(path)
        self.connection = open_connection(path)
        self.file = SeenFile.of(self.connection, _SEED)
        self.urls = SeenUrls(self.file, 0)
        self._loaded: list[list[Keys]] = [[] for _ in range(REPOSITORIES)]

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def load(self, urls: SomeUrls) -> None:
        """Store the texts of new URLs; `finish_load` stores their keys."""
        texts = urls.block()
        keys = self.file.keys(texts)
        order, parts = by_cluster(keys)
        texts, keys = texts.select(order), keys.take(order)
        with self.connection:
            for repository, start, end in parts:
                first = sum(map(len, self._loaded[repository]))
                part = texts.part(start, end)
                text.append(self.connection, repository, first, keys.check[start:end], part)
                self._loaded[repository].append(keys.key[start:end])
        self._checkpoint()

    def finish_load(self) -> None:
        """Store the keys of all loaded URLs."""
        for repository in range(REPOSITORIES):
            keys = np.concatenate([np.zeros(0, np.uint64), *self._loaded[repository]])
            self._loaded[repository] = []
            order = np.argsort(keys)
            marks = np.full(len(keys), SeenMark.WAITING, np.uint8)
            with self.connection:
                empty = chunk.load(self.connection, repository, keys[:0])
                added = Run(keys[order], refs_of(order, marks))
                chunk.save(self.connection, repository, empty, order[:0], order[:0], added)
            self._checkpoint()

    def cycle(self, fetched: list[str], extracted: list[str]) -> int:
        """Take a cycle, end to end; return how many URLs are new, as far as is known."""
        events = _events(len(fetched), len(extracted))
        with self.connection:
            new = self.urls.offer_events(self.connection, fetched + extracted, events)
        self.urls.committed()
        self._checkpoint()
        return len(new)

    def drop_waiting_texts(self) -> None:
        """Let only the keys of URLs wait."""
        with self.connection:
            for repository in range(REPOSITORIES):
                waiting = pending.take(self.connection, repository)
                if len(waiting.keys):
                    self._put_keys(repository, waiting.keys, waiting.events)
        self._checkpoint()

    def hashed(self, cycle: Cycle) -> HashedCycle:
        """Return the keys of a cycle."""
        keys = self.file.keys
        return HashedCycle(keys(cycle.fetched.block()), keys(cycle.extracted.block()))

    def structure_cycle(self, cycle: HashedCycle) -> None:
        """Take a cycle of keys. No text is stored or compared any more."""
        keys = UrlKeys(
            np.concatenate([cycle.fetched.repository, cycle.extracted.repository]),
            np.concatenate([cycle.fetched.key, cycle.extracted.key]),
            np.concatenate([cycle.fetched.check, cycle.extracted.check]),
        )
        events = _events(len(cycle.fetched.key), len(cycle.extracted.key))
        new = np.zeros(0, np.int64)
        if self.urls.keys is not None:
            new = np.flatnonzero(self.urls.keys.missing(keys))
            events[new] = announced(events[new])
        with self.connection:
            self._put(keys, events)
            for repository in seen.due(self.connection):
                self._settle(repository)
        if self.urls.keys is not None:
            self.urls.keys.add_missing(keys.take(new))
        self._checkpoint()

    def remember(self) -> None:
        """Change to answers at once."""
        self.urls = SeenUrls.open(self.connection, self.file, _MEMORY_BYTES)

    def forget(self) -> None:
        """Change to answers within a batch."""
        self.urls = SeenUrls(self.file, 0)

    def structure_bytes(self) -> int:
        """Return the bytes of the file that are no texts; what waits has keys and news, too."""
        return self._used_bytes() - self.text_bytes() - self.waiting_text_bytes()

    def text_bytes(self) -> int:
        """Return the bytes of the texts of settled URLs."""
        found: int = self.connection.execute(
            "SELECT coalesce(sum(length(texts)), 0) FROM seen_text"
        ).get
        return found

    def waiting_text_bytes(self) -> int:
        """Return the bytes of the texts of URLs without a verdict."""
        found: int = self.connection.execute(
            "SELECT coalesce(sum(length(texts)), 0) FROM seen_pending"
        ).get
        return found

    def known(self) -> int:
        """Return the number of settled URLs."""
        return chunk.known(self.connection)

    def waiting(self) -> int:
        """Return the number of URLs without a verdict."""
        return sum(each.urls for each in pending.backlogs(self.connection))

    def _used_bytes(self) -> int:
        pages = self.connection.execute("PRAGMA page_count").get
        free = self.connection.execute("PRAGMA freelist_count").get
        return int((pages - free) * self.connection.execute("PRAGMA page_size").get)

    def _put(self, keys: UrlKeys, events: Events) -> None:
        order, parts = by_repository(keys)
        key, event = keys.key[order], events[order]
        for repository, start, end in parts:
            self._put_keys(repository, key[start:end], event[start:end])

    def _put_keys(self, repository: int, keys: Keys, events: Events) -> None:
        checks = np.zeros(len(keys), np.uint32)
        urls = PendingUrls(keys, checks, events, TextBlock.of_empty(len(keys)))
        pending.put_divided(self.connection, repository, urls)

    def _settle(self, repository: int) -> None:
        waiting = pending.take(self.connection, repository)
        chunks = chunk.load(self.connection, repository, waiting.keys)
        verdicts = judge(chunks.run, waiting, _NoChecks())
        first = chunk.known(self.connection, repository)
        seen.store_run(self.connection, repository, chunks, verdicts, first)

    def _checkpoint(self) -> None:
        self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
