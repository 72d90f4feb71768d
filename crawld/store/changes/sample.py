"""What the file knows of how pages changed in the past: for forecasts, read only."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import apsw

MAX_CHANGE_TIMES: Final = 400
"""Newest instants of a page that are read."""

_HELD = "host_id = ? AND site_id = ? AND state IN ('visited', 'gone')"


class PageSample(NamedTuple):
    """One page: its importance, its change model if it has one, its exact change instants."""

    importance: float
    record: bytes | None
    instants: list[float]


def count(connection: apsw.Connection, host_id: int, site_id: int) -> int:
    """Return how many pages of a site on a host are come back to."""
    found: int = connection.execute(
        f"SELECT count(*) FROM page WHERE {_HELD}", (host_id, site_id)
    ).get
    return found


def sample(
    connection: apsw.Connection, host_id: int, site_id: int, *, limit: int
) -> list[PageSample]:
    """Return pages of a site on a host; in the order of URL hashes the first are a fair sample.

    Args:
        connection: any.
        host_id: the host.
        site_id: the site.
        limit: the most pages.
    """
    rows: list[Any] = connection.execute(
        "SELECT page_id, importance, record FROM page LEFT JOIN model USING (page_id)"
        f" WHERE {_HELD} ORDER BY url_hash LIMIT ?",
        (host_id, site_id, limit),
    ).fetchall()
    return [
        PageSample(importance, record, _change_times(connection, page_id))
        for page_id, importance, record in rows
    ]


def _change_times(connection: apsw.Connection, page_id: int) -> list[float]:
    # Instants of copies are of visits, which see several changes as one: models know better.
    rows: list[Any] = connection.execute(
        "SELECT DISTINCT changed_at FROM change WHERE page_id = ? AND kind IS NOT 'null'"
        " ORDER BY changed_at DESC LIMIT ?",
        (page_id, MAX_CHANGE_TIMES),
    ).fetchall()
    return [at for (at,) in reversed(rows)]
