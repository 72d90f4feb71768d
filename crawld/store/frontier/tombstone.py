"""Tombstones: URLs of purged pages, which no link, seed or import may bring back.

A tombstone stores a digest, not the URL, because the URL itself may be what had to be removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import apsw

ANY_EXISTS: Final = "EXISTS (SELECT 1 FROM tombstone)"
"""Condition: there is any tombstone."""


class Tombstone(NamedTuple):
    """When a URL was purged (Unix seconds), and why, in the operator's words."""

    purged_at: float
    reason: str | None


def _digest(url: str) -> bytes:
    return hashlib.blake2b(url.encode(), digest_size=16).digest()


def put(connection: apsw.Connection, url: str, now: float, reason: str | None) -> None:
    """Block a canonical URL from now on, with a reason in the operator's words."""
    connection.execute(
        "INSERT OR REPLACE INTO tombstone (url_digest, purged_at, reason) VALUES (?, ?, ?)",
        (_digest(url), now, reason),
    )


def delete(connection: apsw.Connection, url: str) -> bool:
    """Admit a URL again; return False if it had no tombstone."""
    connection.execute("DELETE FROM tombstone WHERE url_digest = ?", (_digest(url),))
    return connection.changes() > 0


def any_exists(connection: apsw.Connection) -> bool:
    """Return whether there is any tombstone."""
    return bool(connection.execute(f"SELECT {ANY_EXISTS}").get)


def exists(connection: apsw.Connection, url: str) -> bool:
    """Return whether a URL has a tombstone."""
    found = connection.execute("SELECT 1 FROM tombstone WHERE url_digest = ?", (_digest(url),))
    return found.get is not None


def get(connection: apsw.Connection, url: str) -> Tombstone | None:
    """Return the tombstone of a URL, None if it has none."""
    sql = "SELECT purged_at, reason FROM tombstone WHERE url_digest = ?"
    row = connection.execute(sql, (_digest(url),)).fetchone()
    return Tombstone(*row) if row else None


def select(connection: apsw.Connection, urls: Iterable[str]) -> list[str]:
    """Return the given URLs that have a tombstone."""
    return [url for url in urls if exists(connection, url)]
