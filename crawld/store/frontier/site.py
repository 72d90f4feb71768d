"""Sites as the operator configured them, with a key for their pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import apsw


class SiteRow(NamedTuple):
    """A site, for lists; `definition` is None once it is no longer configured."""

    site_id: int
    name: str
    definition: str | None
    source: str
    paused: bool
    added_at: float
    page_count: int
    pages_discovered: int
    pages_visited: int
    pages_excluded: int
    pages_gone: int
    pages_suspended: int
    requisite_count: int


_ROW = f"SELECT {', '.join(SiteRow._fields)} FROM site"


def upsert(
    connection: apsw.Connection, name: str, definition: str, *, source: str, at: float
) -> int:
    """Add a site or update its definition; return its site_id.

    Args:
        name: unique name.
        definition: JSON of its configuration.
        source: `config`, `socket` or `command_line`.
    """
    site_id: int = connection.execute(
        "INSERT INTO site (name, definition, source, added_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET definition = excluded.definition,"
        " source = excluded.source RETURNING site_id",
        (name, definition, source, at),
    ).get
    return site_id


def adopt(
    connection: apsw.Connection, definitions: Mapping[str, str], *, source: str, at: float
) -> None:
    """Add or update the sites of a source, and retire its others.

    Args:
        definitions: JSON of the configuration of each site, by name.
    """
    for row in list_sites(connection):
        if row.name not in definitions and row.source == source:
            retire(connection, row.name)
    for name, definition in definitions.items():
        upsert(connection, name, definition, source=source, at=at)


def retire(connection: apsw.Connection, name: str) -> bool:
    """Retire a site; its pages are kept and not visited. Return False if it is not known."""
    connection.execute(
        "UPDATE site SET definition = NULL WHERE name = ? AND definition IS NOT NULL", (name,)
    )
    return connection.changes() > 0


def set_paused(connection: apsw.Connection, name: str, paused: bool) -> bool:
    """Pause or resume a site; return False if it is not known."""
    connection.execute("UPDATE site SET paused = ? WHERE name = ?", (paused, name))
    return connection.changes() > 0


def by_name(connection: apsw.Connection, name: str) -> SiteRow | None:
    """Return a site, None if it is not known."""
    row = connection.execute(f"{_ROW} WHERE name = ?", (name,)).fetchone()
    return _row(row) if row else None


def get(connection: apsw.Connection, site_id: int) -> SiteRow | None:
    """Return a site by its number, None if it is not known."""
    row = connection.execute(f"{_ROW} WHERE site_id = ?", (site_id,)).fetchone()
    return _row(row) if row else None


def list_sites(connection: apsw.Connection, *, retired: bool = False) -> list[SiteRow]:
    """Return the sites in the order they were added, retired ones only on demand."""
    where = "" if retired else " WHERE definition IS NOT NULL"
    return [_row(row) for row in connection.execute(f"{_ROW}{where} ORDER BY site_id")]


def _row(row: tuple[Any, ...]) -> SiteRow:
    made = SiteRow(*row)
    return made._replace(paused=bool(made.paused))


# One look into the index for each host, however many seeds it has.
_SEED_HOSTS: Final = """
WITH RECURSIVE seeded(host_id) AS (
    SELECT min(host_id) FROM page WHERE seed = 1 AND site_id = ?1
    UNION ALL
    SELECT (SELECT min(host_id) FROM page
            WHERE seed = 1 AND site_id = ?1 AND page.host_id > seeded.host_id)
    FROM seeded WHERE host_id IS NOT NULL
)
SELECT host FROM seeded CROSS JOIN host USING (host_id) ORDER BY host
"""


def has_seed(connection: apsw.Connection, site_id: int, host_id: int) -> bool:
    """Return whether a host has a seed of a site."""
    sql = "SELECT 1 FROM page WHERE seed = 1 AND site_id = ? AND host_id = ? LIMIT 1"
    return connection.execute(sql, (site_id, host_id)).fetchone() is not None


def seed_hosts(connection: apsw.Connection, site_id: int) -> list[str]:
    """Return the hosts that have a seed of a site, in the order of their names."""
    rows = connection.execute(_SEED_HOSTS, (site_id,))
    return [str(host) for (host,) in rows]
