"""Key-value settings stored in the file, such as cursors of jobs."""

from __future__ import annotations

import apsw


def get(connection: apsw.Connection, key: str) -> str | None:
    """Return the value of a key, None if it was never stored."""
    value: str | None = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    return value


def put(connection: apsw.Connection, key: str, value: str) -> None:
    """Store the value of a key."""
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET value = excluded.value",
        (key, value),
    )
