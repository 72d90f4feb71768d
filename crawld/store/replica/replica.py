"""Replicas in the file: which host is a copy of which, and what its samples showed.

Beside this: `replica_pair` (pairs and their evidence), `replica_pages` (pages that rest) and
`replica_sample` (pages that were looked at again).

Rule: `replica.canonical_id` never is a replica itself (the job decides whole groups), so a name
leads to its page in one step.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import apsw

from crawld.store.engine import meta

Status = Literal["pruned", "held", "withdrawn"]


class ReplicaRow(NamedTuple):
    """A host that is a copy of another.

    Attributes:
        host_id: the copy.
        host: its name.
        canonical_id: the host that is kept.
        canonical_host: its name.
        status: `pruned`, `held` for the operator, or `withdrawn`.
        reason: why this host is kept, why it is held, or why it was withdrawn.
        since: Unix seconds.
        sampled_at: when the sample of its pages was let go that is awaited; 0: none is.
        awaited: pages of that sample.
        look_at: when the next is due.
        sampled: samples compared so far.
        agreed: those that showed what the canonical host shows.
        lag_s: how far behind the canonical host they were at most; None: not measured.
        suspended: pages that rest.
    """

    host_id: int
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


_LIST: Final = """
SELECT replica.host_id, host.host, canonical_id, canonical.host, status, reason, since, sampled_at,
       awaited, look_at, sampled, agreed, lag_s, host.pages_suspended
FROM replica JOIN host USING (host_id) JOIN host AS canonical ON canonical.host_id = canonical_id
ORDER BY canonical.host, host.host
"""


def list_replicas(connection: apsw.Connection) -> list[ReplicaRow]:
    """Return every replica, those of one host together."""
    return [ReplicaRow(*row) for row in connection.execute(_LIST)]


def put_replica(
    connection: apsw.Connection,
    host_id: int,
    canonical_id: int,
    status: Status,
    reason: str,
    *,
    now: float,
    look_at: float,
) -> None:
    """Store what a host is; a status or a canonical host that is another begins now."""
    connection.execute(
        "INSERT INTO replica (host_id, canonical_id, status, reason, since, look_at)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET"
        " since = iif(status = ?3 AND canonical_id = ?2, since, ?5),"
        " sampled = iif(status = ?3 AND canonical_id = ?2, sampled, 0),"
        " agreed = iif(status = ?3 AND canonical_id = ?2, agreed, 0),"
        " lag_s = iif(status = ?3 AND canonical_id = ?2, lag_s, NULL),"
        " sampled_at = iif(status = ?3 AND canonical_id = ?2, sampled_at, 0),"
        " awaited = iif(status = ?3 AND canonical_id = ?2, awaited, 0),"
        " look_at = iif(status = ?3 AND canonical_id = ?2, look_at, ?6),"
        " canonical_id = ?2, status = ?3, reason = ?4",
        (host_id, canonical_id, status, reason, now, look_at),
    )


def drop_replica(connection: apsw.Connection, host_id: int) -> None:
    """Forget that a host was held for a copy; its pages must have been brought back."""
    connection.execute("DELETE FROM replica WHERE host_id = ?", (host_id,))


def put_sample(
    connection: apsw.Connection, host_id: int, *, sampled: int, agreed: int, lag_s: float | None
) -> None:
    """Add what a sample of a replica showed; none is awaited any more."""
    connection.execute(
        "UPDATE replica SET sampled = sampled + ?, agreed = agreed + ?, sampled_at = 0,"
        " awaited = 0,"
        " lag_s = coalesce(max(lag_s, ?3), lag_s, ?3) WHERE host_id = ?",
        (sampled, agreed, lag_s, host_id),
    )


def reset_samples(connection: apsw.Connection, host_id: int) -> None:
    """Forget what samples of a pruned replica showed, and let the next be taken at once."""
    connection.execute(
        "UPDATE replica SET sampled = 0, agreed = 0, lag_s = NULL, sampled_at = 0, awaited = 0,"
        " look_at = 0"
        " WHERE host_id = ? AND status = 'pruned'",
        (host_id,),
    )


_ALL_AT_ONCE: Final = "replicas_all_at_once"


def allow_all(connection: apsw.Connection, *, allowed: bool) -> None:
    """Note whether the next search may prune however many hosts it finds."""
    meta.put(connection, _ALL_AT_ONCE, "yes" if allowed else "no")


def all_allowed(connection: apsw.Connection) -> bool:
    """Return whether the operator said so."""
    return meta.get(connection, _ALL_AT_ONCE) == "yes"


def prefer(connection: apsw.Connection, host_id: int) -> None:
    """Prefer a host among its replicas, and no other of its group any more."""
    connection.execute(
        "UPDATE host SET preferred = 0 WHERE host_id IN (SELECT host_id FROM replica"
        " WHERE canonical_id = ?1 UNION SELECT canonical_id FROM replica WHERE host_id = ?1"
        " UNION SELECT other.host_id FROM replica JOIN replica AS other USING (canonical_id)"
        " WHERE replica.host_id = ?1)",
        (host_id,),
    )
    connection.execute("UPDATE host SET preferred = 1 WHERE host_id = ?", (host_id,))
