"""Answers at once, for a file whose keys fit into memory; the file is the same in both ways.

URLs still wait for the turn of their repository, where their checks are compared. So a file changes
from one way to the other without a rebuild: `load` reads the keys, and whoever drops them goes on
with `crawld.store.seen.seen` alone (`crawld.store.seen.seen_urls` decides).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import apsw
import numpy as np

from crawld.core.seen.event import Events, announced
from crawld.core.seen.key_set import KeySet
from crawld.core.seen.keys import REPOSITORIES, UrlKeys
from crawld.core.seen.run import Run
from crawld.store.seen import pending
from crawld.store.seen.seen import SeenFile, checked


@dataclass(frozen=True, slots=True)
class ImmediateAnswer:
    """What is known at once about some URLs.

    Attributes:
        new: the new ones, each once.
        keys: their keys; add them to a set after the commit.
    """

    new: list[str]
    keys: UrlKeys


def load(connection: apsw.Connection) -> KeySet:
    """Return the keys of all URLs of a file, also of those that wait."""
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
    undivided = pending.undivided_keys(connection)
    keys.add_missing(undivided.take(np.flatnonzero(keys.missing(undivided))))
    return keys


def offer(
    connection: apsw.Connection,
    file: SeenFile,
    known: Iterable[KeySet],
    urls: list[str],
    events: Events,
) -> ImmediateAnswer:
    """Let URLs wait for their verdict, and return at once which are certainly new.

    Args:
        known: sets of keys; they are not changed, because a transaction may fail.
        events: the news of each URL.

    Raises:
        StoreError: a text is too long.
    """
    texts = checked(urls)
    keys = file.keys(texts)
    new = np.logical_and.reduce([each.missing(keys) for each in known])
    if urls:
        pending.put(connection, keys, np.where(new, announced(events), events), texts)
    at = np.flatnonzero(new)
    return ImmediateAnswer([urls[i] for i in at.tolist()], keys.take(at))
