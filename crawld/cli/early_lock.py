"""Lock the database of a config before the daemon is imported.

After a start each known host waits its whole delay, counted from the lock: whoever had it before
sends nothing any more. With the lock at the beginning, the start itself is part of this wait.

Only a database that exists is locked, and every difficulty is left to the start, which reports it.
"""

from __future__ import annotations

import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crawld.errors import CrawldError
from crawld.store.engine.lock import DatabaseLock

MAX_CONFIG_BYTES: Final = 64 * 1024
"""A larger config is not read twice."""

DEFAULT_DB: Final = "crawld.db"


@dataclass(frozen=True, slots=True)
class EarlyLock:
    """A lock of a database, held since `taken_at` (seconds of `time.perf_counter`)."""

    lock: DatabaseLock
    taken_at: float

    def held_s(self) -> float:
        """Return for how long it has been held."""
        return time.perf_counter() - self.taken_at


def lock_early(config: Path) -> EarlyLock | None:
    """Take the lock of the database that a config names; None if that is not possible at once."""
    try:
        database = _database_of(config)
        if database is None or not database.exists():
            return None
        lock = DatabaseLock.acquire(database)
    except (OSError, RecursionError, RuntimeError, ValueError, CrawldError):
        return None
    return EarlyLock(lock, time.perf_counter())


def _database_of(config: Path) -> Path | None:
    with config.open("rb") as file:
        data = file.read(MAX_CONFIG_BYTES + 1)
    if len(data) > MAX_CONFIG_BYTES:
        return None
    daemon = tomllib.loads(data.decode()).get("daemon", {})
    named = daemon.get("db", DEFAULT_DB) if isinstance(daemon, dict) else None
    return config.parent / Path(named).expanduser() if isinstance(named, str) else None
