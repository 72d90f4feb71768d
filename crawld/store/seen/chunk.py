"""Runs of repositories, in chunks: a batch reads and writes only chunks that its keys fall into."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import apsw
import numpy as np

from crawld.core.seen.keys import Keys
from crawld.core.seen.run import ENTRY_BYTES, Positions, Run
from crawld.errors import CorruptDatabaseError

_OFFSET: Final = 1 << 63  # SQLite's integers are signed

_MANY_KEYS: Final = 64
"""Of so many keys a chunk, as good as no chunk is left out."""


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
        "SELECT seen_chunk_id, first_key, urls FROM seen_chunk WHERE repository = ?"
        " ORDER BY first_key",
        (repository,),
    ).fetchall()
    first_keys = np.array([key + _OFFSET for _, key, _ in rows], np.uint64)
    touched = _touched(first_keys, keys)
    ids = [rows[at][0] for at in touched]
    ends = np.cumsum([rows[at][2] for at in touched], dtype=np.int64)
    return Chunks(ids, first_keys[touched], ends, _read(connection, ids, [0, *ends.tolist()]))


def _read(connection: apsw.Connection, ids: list[int], bounds: list[int]) -> Run:
    """Return the entries of some chunks as one run, each read to its place."""
    run = Run.empty(bounds[-1])
    if not ids:
        return run
    with connection.blob_open("main", "seen_chunk", "entries", ids[0], False) as blob:
        for chunk_id, (start, end) in zip(ids, pairwise(bounds), strict=True):
            blob.reopen(chunk_id)
            if blob.length() != (end - start) * ENTRY_BYTES:
                raise CorruptDatabaseError(f"chunk {chunk_id} of seen URLs is damaged")
            part = run.slice(start, end)
            for column in (part.keys, part.checks, part.places):
                blob.read_into(column.data)
    return run


def _touched(first_keys: Keys, keys: Keys) -> list[int]:
    """Return which chunks some keys fall into; for many keys all chunks, without a look."""
    if len(keys) > _MANY_KEYS * len(first_keys):
        return list(range(len(first_keys)))
    place = np.searchsorted(first_keys[1:], keys, side="right")
    return np.flatnonzero(np.bincount(place)[: len(first_keys)]).tolist()


def save(
    connection: apsw.Connection,
    repository: int,
    chunks: Chunks,
    changed: Positions,
    at: Positions,
    added: Run,
) -> None:
    """Store the chunks whose entries changed or that take new entries.

    Args:
        changed: positions of `chunks.run` whose place was changed in the run.
        at: where in `chunks.run` each new entry is inserted.
        added: new entries, ascending.
    """
    if not chunks.ids:
        if len(added):
            _insert(connection, repository, 0, added)
        return
    added_starts = np.searchsorted(added.keys, chunks.first_keys[1:])
    counts = np.diff(added_starts, prepend=0, append=len(added))
    dirty = counts > 0
    dirty[np.searchsorted(chunks.ends, changed, side="right")] = True
    run = chunks.run.insert(at, added) if len(added) else chunks.run
    ends = chunks.ends + np.cumsum(counts)
    starts = np.concatenate([[0], ends[:-1]])
    for chunk in np.flatnonzero(dirty).tolist():
        part = run.slice(int(starts[chunk]), int(ends[chunk]))
        _replace(connection, repository, chunks.ids[chunk], part)


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
