"""Hint sources: what reports changes, where each continues, and how reliable it proved.

A source belongs to one site and reports changes of one host's pages. `hint.accept` stores its
hints, in the transaction that moves its cursor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import apsw


class SourceRow(NamedTuple):
    """A stored source; the columns are those of `hint_source`."""

    hint_source_id: int
    site_id: int
    host_id: int
    host: str
    kind: str
    url: str
    found_at: float
    cursor: str | None
    told_until: float | None
    last_poll_at: float | None
    next_poll_at: float | None
    poll_count: int
    request_count: int
    hint_count: int
    real_count: int
    false_count: int
    missed_count: int
    lag_s: float
    lag_count: int
    evidence: str | None
    trouble: str | None
    trouble_detail: str | None
    trouble_count: int
    closed_until: float | None


_COLUMNS = ", ".join(
    "host.host" if name == "host" else f"hint_source.{name}" for name in SourceRow._fields
)
_SOURCE = f"SELECT {_COLUMNS} FROM hint_source JOIN host USING (host_id)"


def list_sources(connection: apsw.Connection) -> list[SourceRow]:
    """Return all sources in the order they were found."""
    return [SourceRow(*row) for row in connection.execute(f"{_SOURCE} ORDER BY hint_source_id")]


def get(connection: apsw.Connection, hint_source_id: int) -> SourceRow:
    """Return a source by its number."""
    return SourceRow(
        *connection.execute(f"{_SOURCE} WHERE hint_source_id = ?", (hint_source_id,)).get
    )


def ensure(
    connection: apsw.Connection,
    site_id: int,
    host_id: int,
    kind: str,
    url: str,
    at: float,
    evidence: str | None = None,
) -> SourceRow:
    """Return a source; add it if it is new.

    Args:
        site_id: the site that uses it.
        host_id: the host whose pages it reports on.
        kind: one word.
        url: what is requested.
        evidence: initial evidence of a new source, if its kind is known better than others.
    """
    key = (site_id, host_id, kind, url)
    connection.execute(
        "INSERT INTO hint_source (site_id, host_id, kind, url, found_at, evidence)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (*key, at, evidence),
    )
    where = "hint_source.site_id = ? AND hint_source.host_id = ? AND kind = ? AND url = ?"
    return SourceRow(*connection.execute(f"{_SOURCE} WHERE {where}", key).get)


def set_cursors(connection: apsw.Connection, cursors: Iterable[tuple[int, str | None]]) -> None:
    """Move cursors without a poll: (hint_source_id, cursor); such a source is due at once."""
    connection.executemany(
        "UPDATE hint_source SET cursor = ?, next_poll_at = NULL WHERE hint_source_id = ?",
        [(cursor, number) for number, cursor in cursors],
    )


class PollFailure(NamedTuple):
    """Why a poll failed.

    Attributes:
        at: time of the response.
        trouble: one word.
        detail: short text for a person.
        requests: requests it cost.
        closed_until: no poll before this time.
    """

    at: float
    trouble: str
    detail: str
    requests: int
    closed_until: float


def record_failure(connection: apsw.Connection, hint_source_id: int, trouble: PollFailure) -> None:
    """Count a failed poll, and close the source until a time."""
    connection.execute(
        "UPDATE hint_source SET poll_count = poll_count + 1, request_count = request_count + ?,"
        " last_poll_at = ?, next_poll_at = ?, trouble = ?, trouble_detail = ?,"
        " trouble_count = trouble_count + 1, closed_until = ? WHERE hint_source_id = ?",
        (
            trouble.requests,
            trouble.at,
            trouble.closed_until,
            trouble.trouble,
            trouble.detail[:200],
            trouble.closed_until,
            hint_source_id,
        ),
    )
