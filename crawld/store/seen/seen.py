"""Exact answers whether URLs are known, in batches, in memory that does not grow with their number.

Links wait (`offer`) until they are divided by repository (`divide`) and their repository has its
turn: its run is read once, merged and written once. So many may wait as a quarter of what is known.
That bound keeps the cost of a batch nearly flat: a turn reads what waited for four times its size,
however much is known. `KeySet` in memory tells at once what is certainly new; both ways use one
file.

A turn is in two steps, in one transaction: `begin_turn` says which URLs are new, its caller decides
which of them become pages, and `end_turn` stores these.

Source: VEUNI (Favoreto, UFMG), whose repositories take turns in fixed order; here the one with the
most work, counting for how long it has waited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw
import numpy as np

from crawld.core.seen.judge import Flags, Verdicts, judge
from crawld.core.seen.key_set import KeySet
from crawld.core.seen.keys import REPOSITORIES, URL_BITS, UrlKeys, by_repository, keys_of
from crawld.core.seen.place import NOWHERE, Places
from crawld.core.seen.run import Positions, Run
from crawld.core.seen.texts import TextBlock, encoded
from crawld.errors import CorruptDatabaseError
from crawld.store.seen import chunk, pending
from crawld.store.seen.links import Links
from crawld.store.seen.pending import Backlog, Waiting

MIN_WAITING: Final = 65_536
MAX_WAITING: Final = 32_000_000
WAITING_SHARE: Final = 0.25
"""Leaves the structure below 20 bytes a URL: 14 of it, and some 22 of a link that waits."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """How a file makes the keys of its URLs.

    Attributes:
        seed: chosen at random when the file was made.
        url_bits: see `keys_of`; part of the format, so every caller must use the same.
    """

    seed: int
    url_bits: int = URL_BITS

    @classmethod
    def of(cls, connection: apsw.Connection) -> SeenFile:
        """Return the format of a file.

        Raises:
            CorruptDatabaseError: it has no seed.
        """
        seed = connection.execute("SELECT seed FROM seen_seed").get
        if seed is None:
            raise CorruptDatabaseError("the seed of seen URLs is missing")
        return cls(seed)

    def keys(self, urls: TextBlock) -> UrlKeys:
        """Return the keys of some URLs."""
        return keys_of(urls, self.seed, url_bits=self.url_bits)


# --- links wait ----------------------------------------------------------------------------------


def divide_some(connection: apsw.Connection) -> bool:
    """Divide the first links that wait as they came; return whether there were any."""
    links = pending.take_found(connection)
    if links is None:
        return False
    file = SeenFile.of(connection)
    pending.divide(connection, file.keys(links.texts), links)
    return True


def put(
    connection: apsw.Connection, file: SeenFile, links: Links, keys: UrlKeys | None = None
) -> None:
    """Let links wait: few as they come, many divided at once.

    Args:
        keys: of the links; None: they are computed if they are needed.
    """
    if len(links) < pending.MIN_DIVIDED:
        pending.put_found(connection, links)
        return
    while divide_some(connection):  # what came before keeps its place
        pass
    pending.divide(connection, file.keys(links.texts) if keys is None else keys, links)


def load_keys(connection: apsw.Connection, file: SeenFile) -> KeySet:
    """Return the keys of all URLs of a file, also of links that wait."""
    keys = KeySet()
    for repository in range(REPOSITORIES):
        rows = connection.execute(
            "SELECT entries FROM seen_chunk WHERE repository = ? ORDER BY first_key", (repository,)
        )
        parts = [Run.unpack(entries).keys for (entries,) in rows]
        if parts:
            keys.load(repository, np.concatenate(parts))
        waiting = pending.read_keys(connection, repository)
        if len(waiting):
            keys.add_to(repository, waiting)
    for _, urls, frame in connection.execute(_FOUND):
        found = file.keys(Links.unpack(frame, urls).texts)
        keys.add_missing(found.take(np.flatnonzero(keys.missing(found))))
    return keys


# --- turns of repositories -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RepositoryTurn:
    """The turn of a repository.

    Attributes:
        waiting: the links that are judged.
        chunks: the part of the run that they fall into.
    """

    repository: int
    waiting: Waiting
    chunks: chunk.Chunks
    verdicts: Verdicts


def begin_turn(connection: apsw.Connection, repository: int, retired: Flags) -> RepositoryTurn:
    """Judge the links of a repository.

    Args:
        retired: by site_id, whether no config names the site any more.
    """
    waiting = pending.take(connection, repository)
    chunks = chunk.load(connection, repository, waiting.keys)
    return RepositoryTurn(repository, waiting, chunks, judge(chunks.run, waiting.judged(), retired))


def end_turn(
    connection: apsw.Connection, turn: RepositoryTurn, *, new: Flags, changed: Flags
) -> None:
    """Store what a turn concluded.

    Args:
        new: which of the new URLs are kept; the others are new again when they are found again.
        changed: which of the changed places are.
    """
    verdicts, waiting = turn.verdicts, turn.waiting
    at = verdicts.changed[changed]
    turn.chunks.run.places[at] = verdicts.after[changed]
    checks = waiting.checks[verdicts.new[new]]
    added = Run(verdicts.new_keys[new], checks, verdicts.new_places[new])
    chunk.save(connection, turn.repository, turn.chunks, at, verdicts.new_at[new], added)


def due(connection: apsw.Connection) -> list[int]:
    """Return the repositories that must have a turn, until no more links wait than may."""
    waiting = pending.backlogs(connection)
    excess = sum(backlog.urls for backlog in waiting) - _may_wait(connection)
    found = []
    for backlog in by_urgency(waiting):
        if excess <= 0:
            break
        found.append(backlog.repository)
        excess -= backlog.urls
    return found


def by_urgency(waiting: Sequence[Backlog]) -> list[Backlog]:
    """Return what waits, the most urgent first: links, times how long the oldest has waited."""
    newest = max((backlog.oldest for backlog in waiting), default=0) + 1
    return sorted(waiting, key=lambda each: each.urls * (newest - each.oldest), reverse=True)


def _may_wait(connection: apsw.Connection) -> int:
    share = int(chunk.known(connection) * WAITING_SHARE)
    return min(max(share, MIN_WAITING), MAX_WAITING)


# --- URLs one by one -----------------------------------------------------------------------------


_FOUND: Final = "SELECT seen_found_id, urls, links FROM seen_found"


def places(connection: apsw.Connection, file: SeenFile, urls: Sequence[str]) -> Places:
    """Return the place of each URL that had its verdict; `NOWHERE` of the others."""
    found = np.full(len(urls), NOWHERE, np.uint16)
    for repository, keys, of in _by_repository(file, urls):
        run = chunk.load(connection, repository, keys.key).run
        at = _positions(run, keys)
        has = at >= 0
        found[of[has]] = run.places[at[has]]
    return found


def told_place(connection: apsw.Connection, file: SeenFile, url: str) -> int:
    """Return the place of a URL that was told to be new and has no verdict yet; else `NOWHERE`."""
    text = encoded(url)
    waiting, of_url = _waiting_of(connection, file, url)
    told = of_url[waiting.links.facts["told"][of_url]]
    if len(told):
        return int(waiting.links.places[told[0]])
    rows: list[Any] = connection.execute(_FOUND).fetchall()
    for links in (Links.unpack(frame, urls) for _, urls, frame in rows):
        told = np.flatnonzero(links.facts["told"])
        for at, each in zip(told.tolist(), links.texts.take(told), strict=True):
            if each == text:
                return int(links.places[at])
    return NOWHERE


def _waiting_of(connection: apsw.Connection, file: SeenFile, url: str) -> tuple[Waiting, Positions]:
    """Return the links that wait in the repository of a URL, and which of them are to it."""
    keys = file.keys(TextBlock.of([url]))
    waiting = pending.read(connection, int(keys.repository[0]))
    is_same = (waiting.keys == keys.key[0]) & (waiting.checks == keys.check[0])
    return waiting, np.flatnonzero(is_same)


def forget(connection: apsw.Connection, file: SeenFile, urls: Sequence[str]) -> None:
    """Let some URLs be new when they are found again."""
    for repository, keys, _ in _by_repository(file, urls):
        chunks = chunk.load(connection, repository, keys.key)
        at = _positions(chunks.run, keys)
        missing = np.flatnonzero(at < 0)
        at = np.unique(at[at >= 0])
        chunks.run.places[at] = NOWHERE
        # A link to it may have been told to be new, and wait for its verdict.
        added = keys.take(missing[np.argsort(keys.key[missing])])
        where = np.searchsorted(chunks.run.keys, added.key)
        places = np.full(len(missing), NOWHERE, np.uint16)
        run = Run(added.key, added.check, places)
        chunk.save(connection, repository, chunks, at, where, run)


def put_back(
    connection: apsw.Connection, file: SeenFile, urls: Sequence[str], place: int
) -> list[str]:
    """Give forgotten URLs a place; return those that had no verdict yet."""
    unjudged: list[str] = []
    for repository, keys, of in _by_repository(file, urls):
        chunks = chunk.load(connection, repository, keys.key)
        at = _positions(chunks.run, keys)
        unjudged += [urls[each] for each in of[at < 0].tolist()]
        at = np.unique(at[at >= 0])
        at = at[chunks.run.places[at] == NOWHERE]
        chunks.run.places[at] = place
        chunk.save(connection, repository, chunks, at, at[:0], Run.empty(0))
    return unjudged


def erase_waiting(connection: apsw.Connection, file: SeenFile, url: str) -> None:
    """Remove the links to a URL that wait, with its text."""
    text = encoded(url)
    rows: list[Any] = connection.execute(_FOUND).fetchall()
    for number, urls, frame in rows:
        links = Links.unpack(frame, urls)
        kept = _without(links, text)
        if len(kept) < urls:
            connection.execute(
                "UPDATE seen_found SET urls = ?, links = ? WHERE seen_found_id = ?",
                (len(kept), links.select(kept).pack(), number),
            )
    waiting, of_url = _waiting_of(connection, file, url)
    if len(of_url):
        repository = int(file.keys(TextBlock.of([url])).repository[0])
        pending.take(connection, repository)
        kept = np.delete(np.arange(len(waiting.keys)), of_url)
        rest = Waiting(waiting.keys[kept], waiting.checks[kept], waiting.links.select(kept))
        pending.put(connection, repository, rest)


def _without(links: Links, text: bytes) -> Positions:
    texts = links.texts.take(np.arange(len(links)))
    return np.array([at for at, each in enumerate(texts) if each != text], np.int64)


def _by_repository(file: SeenFile, urls: Sequence[str]) -> list[tuple[int, UrlKeys, Positions]]:
    """Return the keys of some URLs by repository, and their positions among the URLs."""
    keys = file.keys(TextBlock.of(urls))
    order, parts = by_repository(keys)
    ordered = keys.take(order)
    return [
        (repository, ordered.take(np.arange(start, end)), order[start:end])
        for repository, start, end in parts
    ]


def _positions(run: Run, keys: UrlKeys) -> Positions:
    """Return where in a run each URL is; -1: nowhere."""
    first = np.searchsorted(run.keys, keys.key, side="left").tolist()
    end = np.searchsorted(run.keys, keys.key, side="right").tolist()
    found = np.full(len(keys.key), -1)
    for number, check in enumerate(keys.check.tolist()):
        same = np.flatnonzero(run.checks[first[number] : end[number]] == check)
        if len(same):
            found[number] = first[number] + same[0]
    return found
