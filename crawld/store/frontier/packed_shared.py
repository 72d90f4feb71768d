"""Shared blocks: packed pages of the many hosts that have few, in runs that are merged.

A turn of a repository finds pages on thousands of hosts, most of which get one or two. They become
one run: ordered by host, site, depth and discovery, in blocks of about `SHARED_PAGES`, each with
the list of its queues. When `FAN_IN` runs of a repository have similar sizes they become one, so a
page is written once more each time its run grows fourfold. A host with many pages in a run, and one
whose pages are about to be rows, gets blocks of its own (`draw`).

A turn touches no row of a host: the counters of a host leave out its pages in shared blocks, until
these get blocks of their own. `count_of_hosts` tells how many they are.

Source: O'Neil, Cheng, Gawlick and O'Neil 1996, "The log-structured merge-tree", in tiers.
"""

from __future__ import annotations

import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import apsw
import numpy as np
import numpy.typing as npt

from crawld.core.seen.keys import names_port
from crawld.core.seen.texts import TextBlock
from crawld.store.frontier import packed_block, page_counts
from crawld.store.frontier.packed_block import PackedPage, Queue
from crawld.store.frontier.shared_entries import (
    LEVEL,
    SHORT_LIVED_LEVEL,
    SharedEntries,
    SharedQueues,
    begins_of,
)
from crawld.store.seen.seen import SeenFile

SHARED_PAGES: Final = 1_024
"""Pages of a shared block, and up to as many as a host may have in a run."""

OWN_PAGES: Final = 512
"""With so many pages in a run a host gets blocks of its own."""

FAN_IN: Final = 4

MAX_RUN: Final = 1 << 18
"""Larger runs are merged no more: a merge takes a second and 100 MB at most."""

SHORT_LIVED: Final = MAX_RUN // FAN_IN**2
"""Runs below this size are merged soon: their text is compressed in little time, not well."""

FIRST_ID: Final = 1 << 39
"""Shared blocks are numbered from here on, those of one queue below."""


class SharedQueue(NamedTuple):
    """The entries of a queue in a shared block: from position `start` to before `end`."""

    block_id: int
    queue: Queue
    start: int
    end: int


class _Run(NamedTuple):
    run: int
    pages: int


# --- runs are added and merged -------------------------------------------------------------------


def add(connection: apsw.Connection, repository: int, entries: SharedEntries) -> None:
    """Add ordered entries of hosts of a repository, each after all others of its queue."""
    if not len(entries):
        return
    ported = names_port(entries.columns.texts)
    if ported.any():
        # The host alone does not tell the repository of these.
        append_own(connection, entries.select(np.flatnonzero(ported)))
        entries = entries.select(np.flatnonzero(~ported))
    runs = _runs(connection, repository)
    merged = _similar(len(entries), runs)
    if merged:
        older = [_take_run(connection, each.run) for each in reversed(merged)]
        entries = SharedEntries.join([*older, entries]).ordered()
    small = _move_large(connection, entries)
    if len(small):
        _put_run(connection, repository, small)


def _runs(connection: apsw.Connection, repository: int) -> list[_Run]:
    """Return the runs of a repository, the newest first."""
    sql = "SELECT run, pages FROM shared_run WHERE repository = ? ORDER BY run DESC"
    return [_Run(*row) for row in connection.execute(sql, (repository,))]


def _similar(pages: int, runs: Sequence[_Run]) -> Sequence[_Run]:
    """Return which of the newest runs become one with a new one of so many pages."""
    taken = 0
    while True:
        similar = taken
        while similar < len(runs) and runs[similar].pages < min(FAN_IN * pages, MAX_RUN):
            similar += 1
        if similar - taken < FAN_IN - 1:
            return runs[:taken]
        pages += sum(each.pages for each in runs[taken:similar])
        taken = similar


_BLOCKS_OF_RUN: Final = """
SELECT shared_block_id, queues, entries FROM shared_block WHERE run = ? ORDER BY first_host
"""


def _take_run(connection: apsw.Connection, run: int) -> SharedEntries:
    """Remove a run; return its entries."""
    rows: list[Any] = connection.execute(_BLOCKS_OF_RUN, (run,)).fetchall()
    found = []
    for block_id, queues, frame in rows:
        entries = SharedEntries.unpack(SharedQueues.unpack(queues), frame)
        drawn = _drawn(connection, block_id)
        if len(drawn):
            entries = entries.select(np.flatnonzero(~np.isin(entries.hosts, drawn)))
        found.append(entries)
    connection.execute(
        "DELETE FROM shared_drawn WHERE shared_block_id IN"
        " (SELECT shared_block_id FROM shared_block WHERE run = ?)",
        (run,),
    )
    connection.execute("DELETE FROM shared_block WHERE run = ?", (run,))
    connection.execute("DELETE FROM shared_run WHERE run = ?", (run,))
    return SharedEntries.join(found)


def _put_run(connection: apsw.Connection, repository: int, entries: SharedEntries) -> None:
    connection.execute(
        "INSERT INTO shared_run (repository, pages) VALUES (?, ?)", (repository, len(entries))
    )
    run = connection.last_insert_rowid()
    block_id: int = connection.execute(
        "SELECT max(ifnull(max(shared_block_id) + 1, 0), ?) FROM shared_block", (FIRST_ID,)
    ).get
    begins = begins_of(entries.hosts)
    wanted = np.arange(SHARED_PAGES, len(entries), SHARED_PAGES)
    cuts = begins[np.minimum(np.searchsorted(begins, wanted), len(begins) - 1)]
    bounds = np.unique([0, *cuts.tolist(), len(entries)]).tolist()
    rows = []
    level = SHORT_LIVED_LEVEL if len(entries) < SHORT_LIVED else LEVEL
    for start, end in pairwise(bounds):
        part = entries.part(start, end)
        rows.append((block_id, run, int(part.hosts[0]), part.queues().pack(), part.frame(level)))
        block_id += 1
    connection.executemany(
        "INSERT INTO shared_block (shared_block_id, run, first_host, queues, entries)"
        " VALUES (?, ?, ?, ?, ?)",
        rows,
    )


# --- hosts get blocks of their own ---------------------------------------------------------------


def any_exists(connection: apsw.Connection) -> bool:
    """Return whether any page is in a shared block."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM shared_run)").get)


def _move_large(connection: apsw.Connection, entries: SharedEntries) -> SharedEntries:
    """Give hosts with many entries blocks of their own; return the entries of the others."""
    if len(entries) < OWN_PAGES:
        return entries
    begins = begins_of(entries.hosts)
    counts = np.diff(begins, append=len(entries))
    large = counts >= OWN_PAGES
    if not large.any():
        return entries
    hosts = entries.hosts[begins[large]].tolist()
    for host_id in hosts:
        draw(connection, host_id)  # what was found before comes first
    is_large = np.repeat(large, counts)
    append_own(connection, entries.select(np.flatnonzero(is_large)))
    return entries.select(np.flatnonzero(~is_large))


def draw(connection: apsw.Connection, host_id: int) -> None:
    """Move the pages of a host from shared blocks to blocks of its own, after those that it has."""
    found = []
    for block_id, queues in _blocks_of(connection, host_id):
        start, end = _range(queues, host_id)
        found.append(_entries(connection, block_id, queues).part(start, end))
        _mark_drawn(connection, block_id, queues, host_id)
    if found:
        append_own(connection, SharedEntries.join(found).ordered())


def clear(connection: apsw.Connection, host_id: int) -> None:
    """Move the pages of a host to blocks of its own, and leave no text of it in shared ones."""
    draw(connection, host_id)
    if not any_exists(connection):
        return
    repository = _repository(connection, host_id)
    for block_id in _blocks_that_may_have(connection, repository, [host_id]):
        start, end = _range(_all_queues(connection, block_id), host_id)
        if end > start:
            left = [(part.queue, part.pages) for part in read(connection, block_id)]
            replace(connection, block_id, left)


def append_own(connection: apsw.Connection, entries: SharedEntries) -> None:
    """Add ordered entries to the blocks of their queues, and count them on their hosts."""
    begins = begins_of(entries.hosts)
    counts = np.diff(begins, append=len(entries)).tolist()
    hosts = entries.hosts[begins].tolist()
    page_counts.count_discovered(connection, (), zip(hosts, counts, strict=True))
    packed_block.append(connection, list(entries.queues().groups()), entries.columns)


def _mark_drawn(
    connection: apsw.Connection, block_id: int, queues: SharedQueues, host_id: int
) -> None:
    connection.execute("INSERT INTO shared_drawn VALUES (?, ?)", (block_id, host_id))
    left = np.setdiff1d(queues.hosts, _drawn(connection, block_id))
    if not len(left):
        _delete(connection, block_id)


def _delete(connection: apsw.Connection, block_id: int) -> None:
    """Remove a block, and its run with its last one."""
    sql = "SELECT run FROM shared_block WHERE shared_block_id = ?"
    run = connection.execute(sql, (block_id,)).get
    connection.execute("DELETE FROM shared_drawn WHERE shared_block_id = ?", (block_id,))
    connection.execute("DELETE FROM shared_block WHERE shared_block_id = ?", (block_id,))
    connection.execute(
        "DELETE FROM shared_run WHERE run = ?1"
        " AND NOT EXISTS (SELECT 1 FROM shared_block WHERE run = ?1)",
        (run,),
    )


# --- pages are read ------------------------------------------------------------------------------


def queues_of_host(connection: apsw.Connection, host_id: int) -> list[SharedQueue]:
    """Return where pages of a host are, in the order of discovery."""
    found = []
    for block_id, queues in _blocks_of(connection, host_id):
        found += [
            SharedQueue(block_id, *group)
            for group in queues.groups()
            if group[0].host_id == host_id
        ]
    return found


def count_of_hosts(connection: apsw.Connection, host_ids: Sequence[int]) -> dict[int, int]:
    """Return how many pages of some hosts are in shared blocks, of those that have any."""
    if not host_ids or not any_exists(connection):
        return {}
    wanted_ids = apsw.carray(array.array("q", host_ids))
    names: list[Any] = connection.execute(_NAMES, (wanted_ids,)).fetchall()
    keys = SeenFile.of(connection).keys(TextBlock.of([f"//{name}/" for _, name in names]))
    found: dict[int, int] = {}
    wanted: dict[int, list[int]] = defaultdict(list)
    for (host_id, _), repository in zip(names, keys.repository.tolist(), strict=True):
        wanted[repository].append(host_id)
    for repository, hosts in wanted.items():
        ids = np.array(hosts, np.int64)
        for block_id in _blocks_that_may_have(connection, repository, hosts):
            counts = _all_queues(connection, block_id).count_of(ids)
            at = np.flatnonzero(counts)
            if not len(at):
                continue
            drawn = set(_drawn(connection, block_id).tolist())
            for host_id, count in zip(ids[at].tolist(), counts[at].tolist(), strict=True):
                if host_id not in drawn:
                    found[host_id] = found.get(host_id, 0) + count
    return found


_NAMES: Final = """
SELECT host_id, host FROM carray(?) AS wanted CROSS JOIN host ON host_id = wanted.value
"""

_BLOCKS_OF_REPOSITORY: Final = """
SELECT shared_block_id FROM shared_run CROSS JOIN shared_block USING (run) WHERE repository = ?
"""

_FEW: Final = 16
"""For so many hosts of a repository not all of its blocks are read."""


def _blocks_that_may_have(
    connection: apsw.Connection, repository: int, hosts: Sequence[int]
) -> set[int]:
    if len(hosts) > _FEW:
        rows: list[Any] = connection.execute(_BLOCKS_OF_REPOSITORY, (repository,)).fetchall()
    else:
        rows = [
            row
            for host_id in hosts
            for row in connection.execute(_BLOCKS_OF_HOST, (repository, host_id))
        ]
    return {block_id for (block_id,) in rows if block_id is not None}


_BLOCKS_OF_HOST: Final = """
SELECT (SELECT shared_block_id FROM shared_block
        WHERE shared_block.run = shared_run.run AND first_host <= ?2
        ORDER BY first_host DESC LIMIT 1)
FROM shared_run WHERE repository = ?1 ORDER BY shared_run.run
"""


def _blocks_of(connection: apsw.Connection, host_id: int) -> Iterator[tuple[int, SharedQueues]]:
    """Yield the blocks that have pages of a host, the oldest first."""
    if not any_exists(connection):
        return
    repository = _repository(connection, host_id)
    rows: list[Any] = connection.execute(_BLOCKS_OF_HOST, (repository, host_id)).fetchall()
    for (block_id,) in rows:
        if block_id is None:
            continue
        queues = _all_queues(connection, block_id)
        start, end = _range(queues, host_id)
        if end > start and host_id not in _drawn(connection, block_id):
            yield block_id, queues


def _repository(connection: apsw.Connection, host_id: int) -> int:
    host = connection.execute("SELECT host FROM host WHERE host_id = ?", (host_id,)).get
    keys = SeenFile.of(connection).keys(TextBlock.of([f"//{host}/"]))
    return int(keys.repository[0])


def _range(queues: SharedQueues, host_id: int) -> tuple[int, int]:
    """Return where the entries of a host start and end in a block."""
    first, last = np.searchsorted(queues.hosts, [host_id, host_id + 1])
    start = int(queues.counts[:first].sum())
    return start, start + int(queues.counts[first:last].sum())


def _all_queues(connection: apsw.Connection, block_id: int) -> SharedQueues:
    sql = "SELECT queues FROM shared_block WHERE shared_block_id = ?"
    return SharedQueues.unpack(connection.execute(sql, (block_id,)).get)


def _entries(connection: apsw.Connection, block_id: int, queues: SharedQueues) -> SharedEntries:
    sql = "SELECT entries FROM shared_block WHERE shared_block_id = ?"
    return SharedEntries.unpack(queues, connection.execute(sql, (block_id,)).get)


def _drawn(connection: apsw.Connection, block_id: int) -> npt.NDArray[np.int64]:
    sql = "SELECT host_id FROM shared_drawn WHERE shared_block_id = ?"
    return np.array([host for (host,) in connection.execute(sql, (block_id,))], np.int64)


class SharedPages(NamedTuple):
    """Pages of a queue in a shared block; the first is at position `start`."""

    block_id: int
    queue: Queue
    start: int
    pages: list[PackedPage]


def read(connection: apsw.Connection, block_id: int) -> list[SharedPages]:
    """Return the pages of a shared block by queue, without those that were drawn."""
    parts = _parts(connection, block_id, _all_queues(connection, block_id))
    drawn = set(_drawn(connection, block_id).tolist())
    return [part for part in parts if part.queue.host_id not in drawn]


def _parts(connection: apsw.Connection, block_id: int, queues: SharedQueues) -> list[SharedPages]:
    """Return all pages of a shared block by queue, those that were drawn, too."""
    pages = _entries(connection, block_id, queues).columns.pages()
    return [
        SharedPages(block_id, queue, start, pages[start:end])
        for queue, start, end in queues.groups()
    ]


def pages_of_host(connection: apsw.Connection, host_id: int) -> list[SharedPages]:
    """Return the pages of a host in shared blocks, by queue, in the order of discovery."""
    return [
        part
        for block_id, queues in _blocks_of(connection, host_id)
        for part in _parts(connection, block_id, queues)
        if part.queue.host_id == host_id
    ]


def queues_of_block(connection: apsw.Connection, block_id: int) -> list[tuple[Queue, int, int]]:
    """Return the queues of a shared block that were not drawn, and where each starts and ends."""
    sql = "SELECT queues FROM shared_block WHERE shared_block_id = ?"
    frame = connection.execute(sql, (block_id,)).get
    if frame is None:
        return []
    drawn = set(_drawn(connection, block_id).tolist())
    return [group for group in SharedQueues.unpack(frame).groups() if group[0].host_id not in drawn]


def replace(
    connection: apsw.Connection, block_id: int, left: Sequence[tuple[Queue, list[PackedPage]]]
) -> None:
    """Store what is left of a shared block, by queue in their order; remove one left empty."""
    left = [each for each in left if each[1]]
    if not left:
        _delete(connection, block_id)
        return
    queues = [queue for queue, pages in left for _ in pages]
    columns = packed_block.Columns.of([page for _, pages in left for page in pages])
    hosts, sites, depths = (np.array(column, np.int64) for column in zip(*queues, strict=True))
    entries = SharedEntries(hosts, sites, depths, columns)
    connection.execute("DELETE FROM shared_drawn WHERE shared_block_id = ?", (block_id,))
    connection.execute(
        "UPDATE shared_block SET queues = ?, entries = ? WHERE shared_block_id = ?",
        (entries.queues().pack(), entries.frame(), block_id),
    )


def next_block(connection: apsw.Connection, after: int) -> int | None:
    """Return the next shared block after a number; None: there are no more."""
    block_id: int | None = connection.execute(
        "SELECT min(shared_block_id) FROM shared_block WHERE shared_block_id > ?", (after,)
    ).get
    return block_id


def block_ids(connection: apsw.Connection, first: int) -> Iterator[int]:
    """Yield the shared blocks from a number on."""
    sql = (
        "SELECT shared_block_id FROM shared_block WHERE shared_block_id >= ?"
        " ORDER BY shared_block_id"
    )
    rows: list[Any] = connection.execute(sql, (first,)).fetchall()
    for (block_id,) in rows:
        yield block_id


_BLOCKS_BETWEEN: Final = """
SELECT shared_block_id FROM shared_run CROSS JOIN shared_block USING (run)
WHERE first_host <= ?2 AND first_host >= ifnull((
  SELECT max(first_host) FROM shared_block AS before
  WHERE before.run = shared_run.run AND before.first_host <= ?1), ?1)
"""


def sites_of_hosts(
    connection: apsw.Connection, host_ids: Sequence[int] | None = None
) -> list[tuple[int, int]]:
    """Return (host_id, site_id) of queues of shared blocks, each once.

    Args:
        host_ids: the hosts, ascending; None: all.
    """
    if host_ids is None:
        blocks = list(block_ids(connection, FIRST_ID))
    else:
        bounds = (host_ids[0], host_ids[-1]) if host_ids else (0, -1)
        blocks = [block_id for (block_id,) in connection.execute(_BLOCKS_BETWEEN, bounds)]
    wanted = None if host_ids is None else np.array(host_ids, np.int64)
    pairs = [np.zeros((0, 2), np.int64)]
    for block_id in blocks:
        queues = _all_queues(connection, block_id)
        left = ~np.isin(queues.hosts, _drawn(connection, block_id))
        if wanted is not None:
            left &= np.isin(queues.hosts, wanted)
        pairs.append(np.stack([queues.hosts[left], queues.sites[left]], axis=1))
    columns = np.concatenate(pairs)
    columns = columns[np.lexsort((columns[:, 1], columns[:, 0]))]
    chosen = columns[begins_of(columns[:, 0], columns[:, 1])]
    return list(zip(chosen[:, 0].tolist(), chosen[:, 1].tolist(), strict=True))


def all_queues(connection: apsw.Connection) -> Iterator[tuple[Queue, int]]:
    """Yield the queues of all shared blocks, and how many pages each has there."""
    for block_id in block_ids(connection, FIRST_ID):
        for queue, start, end in queues_of_block(connection, block_id):
            yield queue, end - start
