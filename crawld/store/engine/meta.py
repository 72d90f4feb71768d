"""Small facts about the file."""

from __future__ import annotations

import apsw


def get(connection: apsw.Connection, key: str) -> str | None:
    """Return a fact, None if it was never noted."""
    value: str | None = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).get
    return value


def put(connection: apsw.Connection, key: str, value: str) -> None:
    """Note a fact in place of the former one."""
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET value = excluded.value",
        (key, value),
    )
