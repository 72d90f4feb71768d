"""A plain SQLite table of hashes with a B-tree: the baseline of random inserts."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import apsw
import numpy as np

from crawld.bench.seen_files import Ids
from crawld.store.engine.connection import open_connection

_LOADED: Final = 1_000_000


class Btree:
    """A file with one table, under the settings of crawld's own file."""

    def __init__(self, path: Path) -> None:
        self._connection = open_connection(path)
        self._connection.execute("CREATE TABLE url (hash INTEGER PRIMARY KEY)")

    def load(self, ids: Ids) -> None:
        """Fill an empty table with distinct URLs, in order: the fastest way."""
        ordered = np.sort(ids.view(np.int64))
        for start in range(0, len(ordered), _LOADED):
            part = ordered[start : start + _LOADED].tolist()
            with self._connection:
                self._connection.executemany(
                    "INSERT INTO url VALUES (?)", ((number,) for number in part)
                )
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def check(self, ids: Ids) -> int:
        """Insert a batch in order of arrival; return how many were new."""
        before = self._connection.total_changes()
        with self._connection:
            self._connection.executemany(
                "INSERT OR IGNORE INTO url VALUES (?)",
                ((number,) for number in ids.view(np.int64).tolist()),
            )
        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return self._connection.total_changes() - before

    def octets(self) -> int:
        """Return the size of the file, bytes."""
        pages: int = self._connection.execute("PRAGMA page_count").get
        page_bytes: int = self._connection.execute("PRAGMA page_size").get
        return pages * page_bytes

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
