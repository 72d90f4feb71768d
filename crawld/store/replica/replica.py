"""Replicas: hosts with the canonical host of each, and the results of their samples.

Related: `pair` (pairs and their evidence), `twin` (comparisons of pages), `pages` (pages at rest).

Rule: `replica.canonical_id` is never a replica itself (the job decides whole groups), so a URL
leads to its canonical page in one step.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import apsw

from crawld.core.replica.owners import name_one_machine, without_port
from crawld.store.engine import meta
from crawld.store.frontier import server
from crawld.store.replica import alternates, counts

Status = Literal["pruned", "partly", "held", "withdrawn"]

RESTING: Final = ("pruned", "partly")
"""Statuses of hosts whose agreeing pages rest."""

RESTING_LIST: Final = "({})".format(", ".join(f"'{status}'" for status in RESTING))
"""The same in SQL."""

WaitsFor = Literal["operator", "turn", "config"]


class ReplicaRow(NamedTuple):
    """A host that is a replica of another.

    Attributes:
        status: `pruned`; `partly` if only its agreeing pages rest and it is no replica; `held`
            until it may be pruned; or `withdrawn`.
        reason: why the canonical host was chosen, why it is held, or why it was withdrawn.
        since: since when it has this status and canonical host.
        sampled_at: when the pending sample was started; 0: none is pending.
        awaited: pages of that sample.
        look_at: when the next sample is due.
        sampled: pages compared so far.
        agreed: pages of these with the content of the canonical host.
        lag_s: longest delay behind the canonical host; None: not measured.
        waits_for: what a held replica waits for: the `operator`; its `turn`, since one search
            prunes only so many hosts; or the `config`, which forbids pruning.
        pages: pages with a copy or suspended.
        twins: its pages whose twin has a copy, compared or not.
        agreeing: of these, pages that agreed in their last comparison ...
        differing: ... and that differed, or seem to, or whose text stands on many paths.
        root: whether the root page agrees; None: not compared.
        unvisited: its pages that were never visited.
        alone: whether both hosts have one server only.
        alternates: numbers of the hosts under which pages may rest that are not as those of the
            canonical host (`alternates.py`), as words.
        one_address: whether both hosts were last met at one address.
    """

    server_id: int
    host: str
    canonical_id: int
    canonical_host: str
    status: Status
    reason: str
    since: float
    sampled_at: float
    awaited: int
    look_at: float
    sampled: int
    agreed: int
    lag_s: float | None
    suspended: int
    waits_for: WaitsFor | None = None
    pages: int = 0
    twins: int = 0
    agreeing: int = 0
    differing: int = 0
    root: int | None = None
    unvisited: int = 0
    alone: int = 1
    alternates: str | None = None
    one_address: int = 0

    @property
    def is_one_machine(self) -> bool:
        """Whether both hosts lead to one machine and its files."""
        return bool(self.one_address) and name_one_machine(self.host, self.canonical_host)

    @property
    def alternate_ids(self) -> tuple[int, ...]:
        """The numbers of `alternates`."""
        return tuple(map(int, self.alternates.split())) if self.alternates else ()

    @property
    def slot_name(self) -> str:
        """The name of its host: a host has one politeness and one queue, whatever its ports."""
        return without_port(self.host)


_ROWS: Final = f"""
SELECT replica.server_id, ifnull(own.name, host.host), canonical_id,
       ifnull(kept.name, canonical.host), status, reason, since, sampled_at, awaited, look_at,
       sampled, agreed, lag_s, {counts.suspended("replica.server_id", "host")}, waits_for,
       {counts.visited("replica.server_id", "host")}, twins, agreeing, differing, root,
       {counts.unvisited("replica.server_id", "host")},
       {server.is_alone("host.host_id")} AND {server.is_alone("canonical.host_id")},
       {alternates.LISTED}, ifnull(host.address = canonical.address, 0)
FROM replica
LEFT JOIN port_server AS own USING (server_id)
JOIN host ON host.host_id = ifnull(own.host_id, replica.server_id)
LEFT JOIN port_server AS kept ON kept.server_id = canonical_id
JOIN host AS canonical ON canonical.host_id = ifnull(kept.host_id, canonical_id)
"""


def list_replicas(connection: apsw.Connection) -> list[ReplicaRow]:
    """Return every replica, grouped by canonical host."""
    rows = connection.execute(f"{_ROWS} ORDER BY 4, 2")
    return [ReplicaRow(*row) for row in rows]


def count_waiting(connection: apsw.Connection) -> dict[WaitsFor, int]:
    """Return how many held replicas wait for what."""
    rows: list[Any] = connection.execute(
        "SELECT waits_for, count(*) FROM replica WHERE waits_for IS NOT NULL GROUP BY 1"
    ).fetchall()
    return dict(rows)


def of_host(connection: apsw.Connection, server_id: int) -> ReplicaRow | None:
    """Return the row of a host, None if it is no replica."""
    row = connection.execute(f"{_ROWS} WHERE replica.server_id = ?", (server_id,)).fetchone()
    return ReplicaRow(*row) if row else None


def copies_of(connection: apsw.Connection, canonical_id: int, limit: int) -> list[str]:
    """Return names of the replicas of a host."""
    rows: list[Any] = connection.execute(_COPIES, (canonical_id, limit)).fetchall()
    return [name for (name,) in rows]


_COPIES: Final = """
SELECT ifnull(name, host) FROM replica LEFT JOIN port_server USING (server_id)
JOIN host ON host.host_id = ifnull(port_server.host_id, replica.server_id)
WHERE canonical_id = ? ORDER BY 1 LIMIT ?
"""


_STAYS: Final = f"""
canonical_id = ?2 AND (status = ?3 OR status IN {RESTING_LIST} AND ?3 IN {RESTING_LIST})
"""

_PUT: Final = f"""
INSERT INTO replica (server_id, canonical_id, status, reason, since, look_at, waits_for)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET
    since = iif(status = ?3 AND canonical_id = ?2, since, ?5),
    sampled = iif({_STAYS}, sampled, 0), agreed = iif({_STAYS}, agreed, 0),
    lag_s = iif({_STAYS}, lag_s, NULL), sampled_at = iif({_STAYS}, sampled_at, 0),
    awaited = iif({_STAYS}, awaited, 0), look_at = iif({_STAYS}, look_at, ?6),
    twins = iif({_STAYS}, twins, 0), agreeing = iif({_STAYS}, agreeing, 0),
    differing = iif({_STAYS}, differing, 0), root = iif({_STAYS}, root, NULL),
    canonical_id = ?2, status = ?3, reason = ?4, waits_for = ?7
"""


def put_replica(
    connection: apsw.Connection,
    server_id: int,
    canonical_id: int,
    status: Status,
    reason: str,
    *,
    now: float,
    look_at: float,
    waits_for: WaitsFor | None = None,
) -> None:
    """Store the status of a host; a new status or canonical host starts now.

    Samples and comparisons stay between `pruned` and `partly`.
    """
    connection.execute(_PUT, (server_id, canonical_id, status, reason, now, look_at, waits_for))


def drop_replica(connection: apsw.Connection, server_id: int) -> None:
    """Delete a replica; resume its pages first."""
    connection.execute("DELETE FROM replica WHERE server_id = ?", (server_id,))


def put_sample(
    connection: apsw.Connection, server_id: int, *, sampled: int, agreed: int, lag_s: float | None
) -> None:
    """Add results of sampled pages of a replica; they are not awaited any more."""
    connection.execute(
        "UPDATE replica SET sampled = sampled + ?1, agreed = agreed + ?2,"
        " sampled_at = iif(awaited > ?1, sampled_at, 0), awaited = max(awaited - ?1, 0),"
        " lag_s = coalesce(max(lag_s, ?3), lag_s, ?3) WHERE server_id = ?4",
        (sampled, agreed, lag_s, server_id),
    )


def start_sample(
    connection: apsw.Connection, server_id: int, count: int, *, now: float, look_at: float
) -> None:
    """Store that pages of a replica were resumed to be compared, and when the next ones are."""
    connection.execute(
        "UPDATE replica SET sampled_at = ?2, awaited = awaited + ?3, look_at = ?4"
        " WHERE server_id = ?1",
        (server_id, now, count, look_at),
    )


def put_agreement(
    connection: apsw.Connection,
    server_id: int,
    *,
    twins: int,
    agreeing: int,
    differing: int,
    root: bool | None,
) -> None:
    """Store how many pages of a host agree with their twins; see `ReplicaRow`."""
    connection.execute(
        "UPDATE replica SET twins = ?, agreeing = ?, differing = ?, root = ? WHERE server_id = ?",
        (twins, agreeing, differing, root, server_id),
    )


def reset_samples(connection: apsw.Connection, server_id: int) -> None:
    """Clear the sample results of a pruned replica, and make the next sample due."""
    connection.execute(
        "UPDATE replica SET sampled = 0, agreed = 0, lag_s = NULL, sampled_at = 0, awaited = 0,"
        " look_at = 0 WHERE server_id = ? AND status = 'pruned'",
        (server_id,),
    )


_ALL_AT_ONCE: Final = "replicas_all_at_once"


def allow_all(connection: apsw.Connection, *, allowed: bool) -> None:
    """Store whether the next search may prune any number of hosts."""
    meta.put(connection, _ALL_AT_ONCE, "yes" if allowed else "no")


def all_allowed(connection: apsw.Connection) -> bool:
    """Return whether the next search may prune any number of hosts."""
    return meta.get(connection, _ALL_AT_ONCE) == "yes"


def prefer(connection: apsw.Connection, server_id: int) -> None:
    """Prefer a host over all other hosts of its group of replicas."""
    for table, key in (("host", "host_id"), ("port_server", "server_id")):
        connection.execute(
            f"UPDATE {table} SET preferred = 0 WHERE {key} IN (SELECT server_id FROM replica"
            " WHERE canonical_id = ?1 UNION SELECT canonical_id FROM replica WHERE server_id = ?1"
            " UNION SELECT other.server_id FROM replica JOIN replica AS other USING (canonical_id)"
            " WHERE replica.server_id = ?1)",
            (server_id,),
        )
        connection.execute(f"UPDATE {table} SET preferred = 1 WHERE {key} = ?", (server_id,))
