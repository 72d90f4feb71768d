"""Exact answers whether URLs are new, in batches, in memory that does not grow with their number.

URLs wait (`offer`) until their repository has its turn (`settle`): its run is read once, merged and
written once. So many may wait as a quarter of what is known; whoever offers more waits for turns
(`take`). That bound keeps the cost of a batch nearly flat: a turn reads what waited for four times
its size, however much is known. `KeySet` in memory answers at once (`crawld.store.seen.immediate`);
both ways use one file.

Source: VEUNI (Favoreto, UFMG), whose repositories take turns in fixed order; here the one with the
most work, counting for how long it has waited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw
import numpy as np

from crawld.core.seen.event import Events, SeenMark, event_of
from crawld.core.seen.judge import Verdicts, judge
from crawld.core.seen.keys import URL_BITS, UrlKeys, keys_of
from crawld.core.seen.run import MAX_NUMBER, Run, numbers_of, refs_of
from crawld.core.seen.texts import TextBlock
from crawld.errors import StoreError
from crawld.store.engine import meta
from crawld.store.seen import chunk, pending
from crawld.store.seen.pending import Backlog
from crawld.store.seen.text import StoredTexts, append

MIN_WAITING: Final = 65_536
MAX_WAITING: Final = 32_000_000
WAITING_SHARE: Final = 0.27
"""As many as leave the structure below 20 bytes a URL: 16 of it, and 13 of a URL that waits."""

MAX_URL_BYTES: Final = 1 << 20
"""Far above the longest canonical URL: a bug of the caller, not a URL."""

_SEED: Final = "seen_seed"


@dataclass(frozen=True, slots=True)
class SeenFile:
    """How a file makes the keys of its URLs.

    Attributes:
        seed: chosen at random when the first URL was stored.
        url_bits: see `keys_of`; part of the format, so every caller must use the same.
    """

    seed: int
    url_bits: int = URL_BITS

    @classmethod
    def of(cls, connection: apsw.Connection, seed: int) -> SeenFile:
        """Return the format of a file; `seed` becomes that of a file without one."""
        stored = meta.get(connection, _SEED)
        if stored is None:
            meta.put(connection, _SEED, str(seed))
            return cls(seed)
        return cls(int(stored))

    def keys(self, urls: TextBlock) -> UrlKeys:
        """Return the keys of some URLs."""
        return keys_of(urls, self.seed, url_bits=self.url_bits)


@dataclass(slots=True)
class Settled:
    """What turns of repositories concluded.

    Attributes:
        urls: new URLs that nobody was told of yet.
        judged: URLs that no longer wait.
        new: how many were new.
    """

    urls: list[str]
    judged: int = 0
    new: int = 0


def take(
    connection: apsw.Connection,
    file: SeenFile,
    urls: list[str],
    mark: SeenMark,
    *,
    sets: bool = False,
) -> Settled:
    """Offer URLs and settle as many repositories as the bound on waiting URLs demands."""
    offer(connection, file, urls, mark, sets=sets)
    return settle_excess(connection)


def offer(
    connection: apsw.Connection,
    file: SeenFile,
    urls: list[str],
    mark: SeenMark,
    *,
    sets: bool = False,
) -> None:
    """Let URLs wait for their verdict.

    Args:
        mark: of those that are new.
        sets: whether known URLs take the mark, too.

    Raises:
        StoreError: a text is longer than `MAX_URL_BYTES`.
    """
    offer_events(connection, file, urls, events_of(urls, mark, sets=sets))


def offer_events(
    connection: apsw.Connection, file: SeenFile, urls: list[str], events: Events
) -> None:
    """Let URLs wait for their verdict, each with its own news."""
    if urls:
        texts = checked(urls)
        pending.put(connection, file.keys(texts), events, texts)


def events_of(urls: list[str], mark: SeenMark, *, sets: bool) -> Events:
    """Return the same news of each URL."""
    return np.full(len(urls), event_of(mark, sets=sets), np.uint8)


def checked(urls: list[str]) -> TextBlock:
    """Return some URLs as a block.

    Raises:
        StoreError: a text is longer than `MAX_URL_BYTES`, so it is no URL.
    """
    texts = TextBlock.of(urls)
    longest = int(texts.lengths().max(initial=0))
    if longest > MAX_URL_BYTES:
        raise StoreError(f"a URL has {longest:,} bytes", hint="canonical URLs have at most 8,000")
    return texts


def settle_excess(connection: apsw.Connection) -> Settled:
    """Give turns to repositories until no more URLs wait than may."""
    settled = Settled([])
    for repository in due(connection):
        _settle(connection, repository, settled)
    return settled


def due(connection: apsw.Connection) -> list[int]:
    """Return the repositories that must have a turn, until no more URLs wait than may."""
    waiting = pending.backlogs(connection)
    excess = sum(backlog.urls for backlog in waiting) - _may_wait(connection)
    if excess <= 0:
        return []
    newest = max(backlog.oldest for backlog in waiting) + 1

    def urgency(backlog: Backlog) -> int:
        # URLs that wait, times how long the oldest has: none waits for ever.
        return backlog.urls * (newest - backlog.oldest)

    found = []
    for backlog in sorted(waiting, key=urgency, reverse=True):
        found.append(backlog.repository)
        excess -= backlog.urls
        if excess <= 0:
            break
    return found


def settle_all(connection: apsw.Connection) -> Settled:
    """Give every URL that waits its verdict."""
    pending.divide(connection)
    settled = Settled([])
    for backlog in pending.backlogs(connection):
        _settle(connection, backlog.repository, settled)
    return settled


def _may_wait(connection: apsw.Connection) -> int:
    share = int(chunk.known(connection) * WAITING_SHARE)
    return min(max(share, MIN_WAITING), MAX_WAITING)


def _settle(connection: apsw.Connection, repository: int, settled: Settled) -> None:
    waiting = pending.take(connection, repository)
    chunks = chunk.load(connection, repository, waiting.keys)
    verdicts = judge(chunks.run, waiting, StoredTexts(connection, repository))
    new = verdicts.new_texts[verdicts.numbered]
    texts = waiting.texts.select(new)
    first = chunk.known(connection, repository)
    if first + len(texts) > MAX_NUMBER:
        raise StoreError(f"repository {repository} of seen URLs is full")
    if len(texts):
        append(connection, repository, first, waiting.checks[new], texts)
    store_run(connection, repository, chunks, verdicts, first)
    settled.judged += len(waiting.keys)
    settled.new += len(texts)
    untold = np.flatnonzero(~verdicts.announced[verdicts.numbered])
    settled.urls += (texts.select(untold) if len(untold) < len(texts) else texts).decoded()


def store_run(
    connection: apsw.Connection,
    repository: int,
    chunks: chunk.Chunks,
    verdicts: Verdicts,
    first_number: int,
) -> None:
    """Store what a run takes over; new URLs are numbered from `first_number` on."""
    refs = chunks.run.refs
    changed = verdicts.changed
    refs[changed] = refs_of(numbers_of(refs[changed]), verdicts.marks)
    numbers = np.empty(len(verdicts.new_keys), np.int64)
    numbers[verdicts.numbered] = np.arange(first_number, first_number + len(numbers))
    added = Run(verdicts.new_keys, refs_of(numbers, verdicts.new_marks))
    chunk.save(connection, repository, chunks, changed, verdicts.new_at, added)
