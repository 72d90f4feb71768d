"""The last run of each of the daemon's jobs, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw


class JobRow(NamedTuple):
    """The last run of a job; a start after the last finish is an interrupted run."""

    name: str
    last_started_at: float | None
    last_finished_at: float | None
    result: str | None
    detail: str | None


_ROW = "SELECT name, last_started_at, last_finished_at, result, detail FROM job"


def record_start(connection: apsw.Connection, name: str, at: float) -> None:
    """Record the start of a run."""
    connection.execute(
        "INSERT INTO job (name, last_started_at) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET last_started_at = excluded.last_started_at",
        (name, at),
    )


def record_runs(connection: apsw.Connection, rows: Sequence[JobRow]) -> None:
    """Record runs that have ended, and their results."""
    connection.executemany(
        "INSERT INTO job (name, last_started_at, last_finished_at, result, detail)"
        " VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET last_started_at = excluded.last_started_at,"
        " last_finished_at = excluded.last_finished_at, result = excluded.result,"
        " detail = excluded.detail",
        rows,
    )


def last_run(connection: apsw.Connection, name: str) -> JobRow | None:
    """Return the last run of a job, None if it never ran."""
    row = connection.execute(f"{_ROW} WHERE name = ?", (name,)).fetchone()
    return JobRow(*row) if row else None


def list_jobs(connection: apsw.Connection) -> list[JobRow]:
    """Return the last run of every job."""
    return [JobRow(*row) for row in connection.execute(f"{_ROW} ORDER BY name")]
