"""Runs of repositories, in chunks: a batch reads and writes only chunks that its keys fall into."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import apsw
import numpy as np

from crawld.core.seen.keys import Keys
from crawld.core.seen.run import Positions, Run
from crawld.errors import CorruptDatabaseError

_OFFSET: Final = 1 << 63  # SQLite's integers are signed


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks of a repository that a batch falls into.

    Attributes:
        ids: their rows.
        first_keys: the least key of each, ascending.
        ends: where each ends in `run`.
        run: their entries, one chunk after another.
    """

    ids: list[int]
    first_keys: Keys
    ends: Positions
    run: Run


def known(connection: apsw.Connection, repository: int | None = None) -> int:
    """Return the number of URLs in the runs of a repository, or of all."""
    where, values = ("", ()) if repository is None else (" WHERE repository = ?", (repository,))
    urls: int = connection.execute(
        f"SELECT coalesce(sum(urls), 0) FROM seen_chunk{where}", values
    ).get
    return urls


def load(connection: apsw.Connection, repository: int, keys: Keys) -> Chunks:
    """Return the chunks that some keys fall into; for a repository without URLs an empty run."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT seen_chunk_id, first_key FROM seen_chunk WHERE repository = ? ORDER BY first_key",
        (repository,),
    ).fetchall()
    first_keys = np.array([key + _OFFSET for _, key in rows], np.uint64)
    place = np.searchsorted(first_keys[1:], keys, side="right")
    touched = np.flatnonzero(np.bincount(place)[: len(rows)]).tolist()
    runs = []
    for at in touched:
        urls, entries = connection.execute(
            "SELECT urls, entries FROM seen_chunk WHERE seen_chunk_id = ?", (rows[at][0],)
        ).get
        runs.append(Run.unpack(entries))
        if len(runs[-1]) != urls:
            raise CorruptDatabaseError(f"chunk {rows[at][0]} of seen URLs is damaged")
    return Chunks(
        [rows[at][0] for at in touched],
        first_keys[touched],
        np.cumsum([len(run) for run in runs], dtype=np.int64),
        Run.join(runs),
    )


def save(
    connection: apsw.Connection,
    repository: int,
    chunks: Chunks,
    changed: Positions,
    added: Run,
) -> None:
    """Store the chunks whose entries changed or that take new entries.

    Args:
        changed: positions of `chunks.run` whose reference was changed in place.
        added: new entries, ascending.
    """
    if not chunks.ids:
        if len(added):
            _insert(connection, repository, 0, added)
        return
    starts = np.concatenate([[0], chunks.ends[:-1]])
    place = np.searchsorted(chunks.first_keys, added.keys, side="right") - 1
    counts = np.bincount(place, minlength=len(chunks.ids))
    added_ends = np.cumsum(counts)
    dirty = counts > 0
    dirty[np.searchsorted(chunks.ends, changed, side="right")] = True
    for at in np.flatnonzero(dirty):
        more = added.slice(int(added_ends[at] - counts[at]), int(added_ends[at]))
        run = chunks.run.slice(int(starts[at]), int(chunks.ends[at])).insert(more)
        _replace(connection, repository, chunks.ids[at], run)


def _replace(connection: apsw.Connection, repository: int, chunk_id: int, run: Run) -> None:
    """Store the entries of a chunk; one that grew too large becomes several."""
    cuts = run.cuts()
    first = run.slice(0, cuts[0]) if cuts else run
    connection.execute(
        "UPDATE seen_chunk SET urls = ?, entries = ? WHERE seen_chunk_id = ?",
        (len(first), first.pack(), chunk_id),
    )
    for start, end in pairwise([*cuts, len(run)]):
        _insert(connection, repository, int(run.keys[start]), run.slice(start, end))


def _insert(connection: apsw.Connection, repository: int, first_key: int, run: Run) -> None:
    cuts = run.cuts()
    for start, end in pairwise([0, *cuts, len(run)]):
        part = run.slice(start, end)
        key = int(run.keys[start]) if start else first_key
        connection.execute(
            "INSERT INTO seen_chunk (repository, first_key, urls, entries) VALUES (?, ?, ?, ?)",
            (repository, key - _OFFSET, len(part), part.pack()),
        )
