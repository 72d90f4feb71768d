"""Bytes received per month by sites on metered lines."""

from __future__ import annotations

from typing import NamedTuple

import apsw


class ReceivedBytes(NamedTuple):
    """Bytes received by one request of a site.

    Attributes:
        month: months since the year 0, UTC.
        received_bytes: header, body and framing, as sent; without TLS.
    """

    site_id: int
    month: int
    received_bytes: int


def add(connection: apsw.Connection, received: ReceivedBytes) -> None:
    """Count bytes of a site in a month."""
    connection.execute(
        "INSERT INTO traffic (site_id, month, received_bytes) VALUES (?, ?, ?) ON CONFLICT"
        " DO UPDATE SET received_bytes = received_bytes + excluded.received_bytes",
        received,
    )


def of_month(connection: apsw.Connection, month: int) -> dict[int, int]:
    """Return the bytes of a month by site_id."""
    rows = connection.execute(
        "SELECT site_id, received_bytes FROM traffic WHERE month = ?", (month,)
    )
    return dict(rows)
