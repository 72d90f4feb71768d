"""Which request profile brings the wanted form of pages, by site and host."""

from __future__ import annotations

import apsw


def get(connection: apsw.Connection, site_id: int, host_id: int) -> str | None:
    """Return what was learnt on a host, as JSON; None: nothing yet."""
    found: str | None = connection.execute(
        "SELECT learnt FROM request_profile WHERE site_id = ? AND host_id = ?", (site_id, host_id)
    ).get
    return found


def put(connection: apsw.Connection, site_id: int, host_id: int, learnt: str) -> None:
    """Store what was learnt on a host."""
    connection.execute(
        "INSERT INTO request_profile (site_id, host_id, learnt) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET learnt = excluded.learnt",
        (site_id, host_id, learnt),
    )
