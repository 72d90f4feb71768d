"""Hosts and origins: rows for politeness, back-off and robots.txt.

A host name has one row for all schemes and ports; each origin has its own row, since robots.txt
belongs to an origin (RFC 9309, section 2.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import NamedTuple

import apsw

from crawld.core.robots import RobotsVerdict
from crawld.core.value_type import value_type
from crawld.store.frontier import packed_shared, page_counts, server


def ensure(connection: apsw.Connection, host: str, at: float) -> int:
    """Return the host_id of a host name; add the host if it is new."""
    known = connection.execute("SELECT host_id FROM host WHERE host = ?", (host,)).get
    if known is not None:
        return int(known)
    connection.execute("INSERT INTO host (host, added_at) VALUES (?, ?)", (host, at))
    return connection.last_insert_rowid()


def is_known(connection: apsw.Connection, host: str) -> bool:
    """Return whether a host has a row."""
    return bool(
        connection.execute("SELECT EXISTS (SELECT 1 FROM host WHERE host = ?)", (host,)).get
    )


def ensure_origin(connection: apsw.Connection, host_id: int, origin: str) -> int:
    """Return the origin_id of an origin; add the origin if it is new."""
    known = connection.execute("SELECT origin_id FROM origin WHERE origin = ?", (origin,)).get
    if known is not None:
        return int(known)
    server_id = server.ensure(connection, host_id, origin)
    connection.execute(
        "INSERT INTO origin (host_id, origin, server_id) VALUES (?, ?, ?)",
        (host_id, origin, server_id),
    )
    return connection.last_insert_rowid()


@value_type(kw_only=True)
class HostUpdate:
    """State of a host after a visit.

    Attributes:
        last_fetch_at: time of the request; None if none was sent.
        address: address connected to; None keeps the known one.
        backoff_level, backoff_at: number of back-off steps, and time of the last one.
        closed_until: end of a Retry-After.
        clock_skew_s: its clock minus ours; None keeps the known one.
        certificate: names on its certificate; an empty tuple keeps the known ones.
    """

    last_fetch_at: float | None = None
    address: str | None = None
    backoff_level: int = 0
    backoff_at: float | None = None
    closed_until: float | None = None
    clock_skew_s: float | None = None
    certificate: tuple[str, ...] = ()


_VISITED = """
UPDATE host SET visit_count = visit_count + 1, change_count = change_count + ?,
    failure_count = failure_count + ?, wire_bytes = wire_bytes + ?
"""
_VISITED_AND_COUNTED = f"{_VISITED}, {page_counts.SET}"
_FETCHED = """last_fetch_at = coalesce(?, last_fetch_at), address = coalesce(?, address),
    backoff_level = ?, backoff_at = ?, closed_until = ?,
    clock_skew_s = coalesce(?, clock_skew_s), certificate = coalesce(?, certificate)"""


def record_visit(
    connection: apsw.Connection,
    host_id: int,
    update: HostUpdate | None,
    *,
    changed: bool,
    failed: bool,
    wire_bytes: int,
    steps: Sequence[int] = (),
) -> None:
    """Count one visit on its host and store the politeness state after it.

    Args:
        steps: changes of the counters of its pages (`page_counts.SET`), if there are any.
    """
    sql = _VISITED_AND_COUNTED if steps else _VISITED
    counts = (changed, failed, wire_bytes, *steps)
    if update is None:
        connection.execute(f"{sql} WHERE host_id = ?", (*counts, host_id))
    else:
        values = (*counts, *_values(update), host_id)
        connection.execute(f"{sql}, {_FETCHED} WHERE host_id = ?", values)


def record_request(connection: apsw.Connection, host_id: int, update: HostUpdate) -> None:
    """Store the politeness state of a host after a request that was not a visit."""
    connection.execute(f"UPDATE host SET {_FETCHED} WHERE host_id = ?", (*_values(update), host_id))


def _values(update: HostUpdate) -> tuple[float | str | None, ...]:
    return (
        update.last_fetch_at,
        update.address,
        update.backoff_level,
        update.backoff_at,
        update.closed_until,
        update.clock_skew_s,
        " ".join(update.certificate) or None,
    )


class HostRow(NamedTuple):
    """A host, for lists and its own status."""

    host_id: int
    host: str
    address: str | None
    paused: bool
    added_at: float
    last_fetch_at: float | None
    backoff_level: int
    backoff_at: float | None
    closed_until: float | None
    visit_count: int
    change_count: int
    failure_count: int
    wire_bytes: int
    page_count: int
    pages_discovered: int
    pages_visited: int
    pages_excluded: int
    pages_gone: int
    pages_suspended: int
    clock_skew_s: float | None
    vanishing_since: float | None


@dataclass(frozen=True, slots=True)
class OriginRobots:
    """The last fetch of an origin's robots.txt.

    Attributes:
        verdict: whether the origin is open, has rules, or is closed.
        text: the rules as sent, None without any.
        status: HTTP status, None if there was no response.
        crawl_delay_s: the Crawl-delay for crawld; stored, so that after a restart it applies before
            the rules are read again.
    """

    verdict: RobotsVerdict
    text: bytes | None
    status: int | None
    fetched_at: float
    crawl_delay_s: float | None = None


_ROW = f"SELECT {', '.join(HostRow._fields)} FROM host"


def _made(connection: apsw.Connection, rows: Iterable[tuple[object, ...]]) -> list[HostRow]:
    """Return hosts with all their pages: counters leave out those in shared blocks."""
    made = [HostRow(*row) for row in rows]  # type: ignore[arg-type]
    shared = packed_shared.count_of_hosts(connection, [host.host_id for host in made])
    return [
        host._replace(
            paused=bool(host.paused),
            page_count=host.page_count + shared.get(host.host_id, 0),
            pages_discovered=host.pages_discovered + shared.get(host.host_id, 0),
        )
        for host in made
    ]


def by_name(connection: apsw.Connection, host: str) -> HostRow | None:
    """Return a host by its name, None if it is not known."""
    found = _made(connection, connection.execute(f"{_ROW} WHERE host = ?", (host,)))
    return found[0] if found else None


def get(connection: apsw.Connection, host_id: int) -> HostRow | None:
    """Return a host by its host_id, None if it is not known."""
    found = _made(connection, connection.execute(f"{_ROW} WHERE host_id = ?", (host_id,)))
    return found[0] if found else None


def list_hosts(connection: apsw.Connection, *, after: str = "", limit: int = 100) -> list[HostRow]:
    """Return hosts in the order of their names, from the one after `after`."""
    rows = connection.execute(f"{_ROW} WHERE host > ? ORDER BY host LIMIT ?", (after, limit))
    return _made(connection, rows)


def set_paused(connection: apsw.Connection, host: str, paused: bool) -> bool:
    """Pause or resume a host; False if it is not known."""
    connection.execute("UPDATE host SET paused = ? WHERE host = ?", (paused, host))
    return connection.changes() > 0


def paused_hosts(connection: apsw.Connection, limit: int) -> list[str]:
    """Return hosts that the operator paused, by name, at most `limit`."""
    rows = connection.execute("SELECT host FROM host WHERE paused ORDER BY host LIMIT ?", (limit,))
    return [host for (host,) in rows]


def list_origins(connection: apsw.Connection, host_id: int) -> list[tuple[int, str]]:
    """Return (origin_id, origin) of a host."""
    rows = connection.execute(
        "SELECT origin_id, origin FROM origin WHERE host_id = ? ORDER BY origin", (host_id,)
    )
    return [(origin_id, origin) for origin_id, origin in rows]


def origin_robots(connection: apsw.Connection, origin: str) -> OriginRobots | None:
    """Return the last fetch of an origin's robots.txt, None if there was none."""
    row = connection.execute(
        "SELECT robots_verdict, robots_text, robots_status, robots_fetched_at, crawl_delay_s"
        " FROM origin WHERE origin = ? AND robots_verdict IS NOT NULL",
        (origin,),
    ).fetchone()
    return OriginRobots(RobotsVerdict(row[0]), *row[1:]) if row else None


def put_validators(connection: apsw.Connection, origin_id: int, evidence: bytes) -> None:
    """Store the evidence about the validators of an origin."""
    connection.execute(
        "UPDATE origin SET validators = ? WHERE origin_id = ?", (evidence, origin_id)
    )


def record_robots(connection: apsw.Connection, origin: str, robots: OriginRobots) -> bool:
    """Store a fetch of an origin's robots.txt; return False if the origin is not known."""
    connection.execute(
        "UPDATE origin SET robots_verdict = ?, robots_text = ?, robots_status = ?,"
        " robots_fetched_at = ?, crawl_delay_s = ? WHERE origin = ?",
        (*astuple(robots), origin),
    )
    return connection.changes() > 0
