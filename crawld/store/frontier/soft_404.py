"""Responses of origins to a path that never existed, to recognize soft 404s."""

from __future__ import annotations

import apsw

from crawld.core.soft_404 import Soft404Probe


def get(connection: apsw.Connection, origin_id: int) -> Soft404Probe | None:
    """Return the last probe of an origin, None if there was none."""
    row = connection.execute(
        "SELECT probed_at, sketch, redirect_url FROM absence WHERE origin_id = ?", (origin_id,)
    ).fetchone()
    return Soft404Probe(*row) if row else None


def put(connection: apsw.Connection, origin: str, probe: Soft404Probe, status: int | None) -> None:
    """Store a probe of an origin in place of the last one."""
    connection.execute(
        "INSERT OR REPLACE INTO absence (origin_id, probed_at, status, sketch, redirect_url)"
        " SELECT origin_id, ?, ?, ?, ? FROM origin WHERE origin = ?",
        (probe.at, status, probe.sketch, probe.redirect_url, origin),
    )
