"""crawld's frontier under the cycles of the benchmark: whole, and the structure without texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw
import numpy as np

from crawld.bench.seen_web import HOSTS, Cycle, SomeUrls
from crawld.core.seen.key_set import KeySet
from crawld.core.seen.keys import REPOSITORIES, UrlKeys, by_repository
from crawld.core.seen.place import MAX_SITE, place_of
from crawld.core.seen.run import Run
from crawld.core.seen.texts import TextBlock
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import verdicts
from crawld.store.frontier.caps import Caps
from crawld.store.frontier.packed import Packing
from crawld.store.seen import chunk, pending, seen
from crawld.store.seen.key_memory import KeyMemory
from crawld.store.seen.links import FACTS, Links
from crawld.store.seen.pending import Waiting
from crawld.store.seen.seen import SeenFile

_MEMORY_BYTES: Final = 8 * 2**30
_SITE: Final = 1
_DEPTH: Final = 3
_BLOCKS: Final = ("packed_block", "shared_block")
_RETIRED: Final = np.zeros(MAX_SITE + 1, bool)


@dataclass(frozen=True, slots=True)
class HashedCycle:
    """A cycle whose texts were hashed already."""

    fetched: UrlKeys
    extracted: UrlKeys


def _facts(count: int) -> np.ndarray:
    facts = np.zeros(count, FACTS)
    facts["site"], facts["depth"] = _SITE, _DEPTH
    return facts


class SeenContender:
    """A crawld file; `cycle` is the whole work, `structure_cycle` leaves the texts out.

    Attributes:
        keys: of all URLs, for answers at once; None: answers come within a batch.
    """

    def __init__(self, folder: Path, hosts: int = HOSTS) -> None:
        path = folder / "crawld.db"
        migrate.migrate(path)
        self.connection = open_connection(path)
        self.file = SeenFile.of(self.connection)
        self.keys: KeySet | None = None
        self._loaded: list[list[UrlKeys]] = [[] for _ in range(REPOSITORIES)]
        with self.connection:
            self.connection.execute(
                "INSERT INTO site (site_id, name, definition, source, added_at)"
                " VALUES (1, 'seen', '{}', 'config', 0)"
            )
            rows = ((number + 1, f"h{number}.example") for number in range(hosts))
            self.connection.executemany(
                "INSERT INTO host (host_id, host, added_at) VALUES (?, ?, 0)", rows
            )
        self._empty_bytes = self._used_bytes()

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def load(self, urls: SomeUrls) -> None:
        """Take URLs as known; `finish_load` stores their keys."""
        keys = self.file.keys(urls.block())
        order, parts = by_repository(keys)
        keys = keys.take(order)
        for repository, start, end in parts:
            self._loaded[repository].append(keys.take(np.arange(start, end)))

    def finish_load(self) -> None:
        """Store the keys of all loaded URLs."""
        for repository, parts in enumerate(self._loaded):
            key = np.concatenate([np.zeros(0, np.uint64), *(each.key for each in parts)])
            check = np.concatenate([np.zeros(0, np.uint32), *(each.check for each in parts)])
            self._loaded[repository] = []
            order = np.argsort(key)
            places = np.full(len(key), place_of(_SITE, _DEPTH), np.uint16)
            with self.connection:
                empty = chunk.load(self.connection, repository, key[:0])
                added = Run(key[order], check[order], places)
                chunk.save(self.connection, repository, empty, order[:0], order[:0], added)
            self._checkpoint()

    def take(self, hosts: np.ndarray, urls: list[str]) -> int:
        """Take the URLs of a cycle, end to end; return of how many queues new pages were told.

        Args:
            hosts: the number of the host of each.
        """
        links = Links(_facts(len(urls)), TextBlock.of(urls))
        links.facts["host"] = hosts + 1
        memory = KeyMemory(_MEMORY_BYTES)
        memory.keys = self.keys
        caps = Caps(packing=Packing(0, memory))
        with self.connection:
            offered = verdicts.offer(self.connection, links, caps)
            queues = sum(len(each.hosts) for each in offered)
            while seen.divide_some(self.connection):
                pass
            for repository in seen.due(self.connection):
                settled = verdicts.settle(self.connection, repository, caps)
                queues += sum(len(each.hosts) for each in settled.queues)
        self._checkpoint()
        return queues

    def settle_all(self) -> None:
        """Give every link that waits its verdict."""
        with self.connection:
            verdicts.settle_all(self.connection, Caps())
        self._checkpoint()

    def may_wait(self, urls: int) -> bool:
        """Return whether so many more links may wait without a turn of a repository."""
        return self.waiting() + urls <= seen.WAITING_SHARE * self.known()

    def drop_waiting_texts(self) -> None:
        """Let only the keys of URLs wait."""
        with self.connection:
            for repository in range(REPOSITORIES):
                waiting = pending.take(self.connection, repository)
                if len(waiting.keys):
                    told = waiting.links.facts["told"]
                    self._put_keys(repository, waiting.keys, waiting.checks, told)
        self._checkpoint()

    def hashed(self, cycle: Cycle) -> HashedCycle:
        """Return the keys of a cycle."""
        keys = self.file.keys
        return HashedCycle(keys(cycle.fetched.block()), keys(cycle.extracted.block()))

    def structure_cycle(self, cycle: HashedCycle) -> None:
        """Take a cycle of keys; no text is stored."""
        keys = UrlKeys(
            np.concatenate([cycle.fetched.repository, cycle.extracted.repository]),
            np.concatenate([cycle.fetched.key, cycle.extracted.key]),
            np.concatenate([cycle.fetched.check, cycle.extracted.check]),
        )
        told = np.zeros(len(keys.key), bool)
        if self.keys is not None:
            told[:] = self.keys.missing(keys)
        with self.connection:
            order, parts = by_repository(keys)
            ordered, ordered_told = keys.take(order), told[order]
            for repository, start, end in parts:
                part = slice(start, end)
                checks = ordered.check[part]
                self._put_keys(repository, ordered.key[part], checks, ordered_told[part])
            for repository in seen.due(self.connection):
                self._settle(repository)
        if self.keys is not None:
            self.keys.add_missing(keys.take(np.flatnonzero(told)))
        self._checkpoint()

    def remember(self) -> None:
        """Change to answers at once."""
        self.keys = seen.load_keys(self.connection, self.file)

    def forget(self) -> None:
        """Change to answers within a batch."""
        self.keys = None

    def structure_bytes(self) -> int:
        """Return the bytes of the file that are no texts; what waits has keys, too."""
        texts = self.text_bytes() + self.waiting_text_bytes()
        return self._used_bytes() - self._empty_bytes - texts

    def text_bytes(self) -> int:
        """Return the bytes of the entries of packed pages, without the lists of their queues."""
        sql = "SELECT ifnull(sum(length(entries)), 0) FROM "
        blocks = (self.connection.execute(sql + table).get for table in _BLOCKS)
        return sum(blocks)

    def waiting_text_bytes(self) -> int:
        """Return the bytes of the links without a verdict that are not their keys."""
        sql = "SELECT coalesce(sum(length(links)), 0) FROM seen_pending"
        found: int = self.connection.execute(sql).get
        return found

    def known(self) -> int:
        """Return the number of settled URLs."""
        return chunk.known(self.connection)

    def waiting(self) -> int:
        """Return the number of links without a verdict."""
        return pending.count(self.connection)

    def _used_bytes(self) -> int:
        pages = self.connection.execute("PRAGMA page_count").get
        free = self.connection.execute("PRAGMA freelist_count").get
        return int((pages - free) * self.connection.execute("PRAGMA page_size").get)

    def _put_keys(
        self, repository: int, keys: np.ndarray, checks: np.ndarray, told: np.ndarray
    ) -> None:
        links = Links(_facts(len(keys)), TextBlock.of_empty(len(keys)))
        links.facts["told"] = told
        pending.put(self.connection, repository, Waiting(keys, checks, links))

    def _settle(self, repository: int) -> None:
        turn = seen.begin_turn(self.connection, repository, _RETIRED)
        new, changed = (np.ones(len(at), bool) for at in (turn.verdicts.new, turn.verdicts.changed))
        seen.end_turn(self.connection, turn, new=new, changed=changed)

    def _checkpoint(self) -> None:
        self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def texts_of(cycle: Cycle) -> tuple[np.ndarray, list[str]]:
    """Return the hosts and URLs of a cycle."""
    hosts = np.concatenate([cycle.fetched.host, cycle.extracted.host])
    return hosts, cycle.fetched.texts() + cycle.extracted.texts()
