"""Random visits: the copies to draw from, and the results by site, host and day."""

from __future__ import annotations

from typing import Final, NamedTuple

import apsw

from crawld.core.audit import AuditResult, day_of, hour_of


class CopyCount(NamedTuple):
    """How many copies a site has on a host."""

    site_id: int
    host_id: int
    pages: int


class AuditRow(NamedTuple):
    """The audit results of one day on one host of a site."""

    site_id: int
    host_id: int
    host: str
    day: int
    audited: AuditResult


KEPT_HOURS: Final = 26
"""Hours for which results are counted by the hour."""

_HELD = "state = 'visited' AND version_id IS NOT NULL AND requisite = 0"


def count_copies(connection: apsw.Connection) -> list[CopyCount]:
    """Return the number of copies by site and host; reads only an index."""
    rows = connection.execute(
        f"SELECT site_id, host_id, count(*) FROM page WHERE {_HELD} GROUP BY site_id, host_id"
    )
    return [CopyCount(*row) for row in rows]


def page_at(connection: apsw.Connection, site_id: int, host_id: int, position: int) -> int | None:
    """Return the page_id at a position among the copies of a host, None beyond the last.

    The order is that of page_id; reaching a position takes some 20 ns per page before it.
    """
    row = connection.execute(
        f"SELECT page_id FROM page INDEXED BY page_held WHERE site_id = ? AND host_id = ?"
        f" AND {_HELD} LIMIT 1 OFFSET ?",
        (site_id, host_id, position),
    ).fetchone()
    return int(row[0]) if row else None


def hint_evidence_since(
    connection: apsw.Connection, page_id: int, since: float
) -> list[str | None]:
    """Return the evidence about each source with a hint that a page changed since a time."""
    rows = connection.execute(
        "SELECT evidence FROM hint JOIN hint_source USING (hint_source_id)"
        " WHERE page_id = ? AND last_at > ?",
        (page_id, since),
    )
    return [evidence for (evidence,) in rows]


def record(
    connection: apsw.Connection, site_id: int, host_id: int, at: float, found: AuditResult
) -> None:
    """Add the results of random visits at a time, Unix seconds."""
    counts = (found.fresh, found.stale, found.unknown, found.expected)
    connection.execute(
        "INSERT INTO audit (site_id, host_id, day, fresh, stale, unknown, expected)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " fresh = fresh + excluded.fresh, stale = stale + excluded.stale,"
        " unknown = unknown + excluded.unknown, expected = expected + excluded.expected",
        (site_id, host_id, day_of(at), *counts),
    )
    connection.execute(
        "INSERT INTO audit_hour (site_id, hour, fresh, stale, unknown, expected)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " fresh = fresh + excluded.fresh, stale = stale + excluded.stale,"
        " unknown = unknown + excluded.unknown, expected = expected + excluded.expected",
        (site_id, hour_of(at), *counts),
    )
    connection.execute(
        "DELETE FROM audit_hour WHERE site_id = ? AND hour < ?", (site_id, hour_of(at) - KEPT_HOURS)
    )


def list_since(connection: apsw.Connection, day: int) -> list[AuditRow]:
    """Return the results from a day on, in the order of sites, hosts and days."""
    rows = connection.execute(
        "SELECT site_id, host_id, host, day, fresh, stale, unknown, expected"
        " FROM audit JOIN host USING (host_id) WHERE day >= ? ORDER BY site_id, host, day",
        (day,),
    )
    return [
        AuditRow(site_id, host_id, host, day, AuditResult(*counts))
        for site_id, host_id, host, day, *counts in rows
    ]


_SUMS = "sum(fresh), sum(stale), sum(unknown), sum(expected)"


def sums_by_site(connection: apsw.Connection, day: int) -> dict[int, AuditResult]:
    """Return the results of each site from a day on."""
    rows = connection.execute(
        f"SELECT site_id, {_SUMS} FROM audit WHERE day >= ? GROUP BY site_id", (day,)
    )
    return {int(site_id): AuditResult(*counts) for site_id, *counts in rows}


def sums_by_hour(connection: apsw.Connection, hour: int) -> dict[int, AuditResult]:
    """Return the results of each site from an hour on, at most `KEPT_HOURS` ago."""
    rows = connection.execute(
        f"SELECT site_id, {_SUMS} FROM audit_hour WHERE hour >= ? GROUP BY site_id", (hour,)
    )
    return {int(site_id): AuditResult(*counts) for site_id, *counts in rows}


def sums_by_host(
    connection: apsw.Connection, site_id: int, day: int, limit: int
) -> dict[str, AuditResult]:
    """Return the results of the first hosts of a site, by name, from a day on."""
    rows = connection.execute(
        f"SELECT host, {_SUMS} FROM audit JOIN host USING (host_id)"
        " WHERE site_id = ? AND day >= ? GROUP BY host_id ORDER BY host LIMIT ?",
        (site_id, day, limit),
    )
    return {str(host): AuditResult(*counts) for host, *counts in rows}


def delete_before(connection: apsw.Connection, before_day: int) -> None:
    """Delete the results before a day."""
    connection.execute("DELETE FROM audit WHERE day < ?", (before_day,))
