"""Samples of pages and their past changes, for forecasts; read only."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import apsw

from crawld.store.changes import change

MAX_CHANGE_TIMES: Final = 400
"""The most change times read of a page."""

_HELD = "host_id = ? AND site_id = ? AND state IN ('visited', 'gone')"


class PageSample(NamedTuple):
    """A page: its importance, its change model (if any) and its exact change times."""

    importance: float
    record: bytes | None
    change_times: list[float]


def count(connection: apsw.Connection, host_id: int, site_id: int) -> int:
    """Return how many pages of a site on a host are revisited."""
    found: int = connection.execute(
        f"SELECT count(*) FROM page WHERE {_HELD}", (host_id, site_id)
    ).get
    return found


def sample(
    connection: apsw.Connection, host_id: int, site_id: int, *, limit: int
) -> list[PageSample]:
    """Return a sample of the pages of a site on a host.

    In the order of URL hashes the first `limit` pages are a fair sample.
    """
    rows: list[Any] = connection.execute(
        "SELECT page_id, importance, record FROM page LEFT JOIN model USING (page_id)"
        f" WHERE {_HELD} ORDER BY url_hash LIMIT ?",
        (host_id, site_id, limit),
    ).fetchall()
    # Not times of copies: a visit sees several changes as one, and the model accounts for that.
    return [
        PageSample(importance, record, change.newest_times(connection, page_id, MAX_CHANGE_TIMES))
        for page_id, importance, record in rows
    ]
