"""What every export starts from: the file, opened for reading beside a running daemon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from crawld.errors import StoreError
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection, store_error

Progress = Callable[[int, int], None]
"""Called now and then with pages looked at and about how many there are."""


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


@dataclass(slots=True)
class ExportResult:
    """What an export came to.

    Attributes:
        written: files, records or rows written, by kind.
        written_bytes: size of what was written.
        unreadable: URLs of pages that were left out because their copy is damaged.
    """

    written: dict[str, int] = field(default_factory=dict)
    written_bytes: int = 0
    unreadable: list[str] = field(default_factory=list)

    def count(self, kind: str, size_bytes: int = 0) -> None:
        """Count one thing that was written."""
        self.written[kind] = self.written.get(kind, 0) + 1
        self.written_bytes += size_bytes


@contextmanager
def open_source(db: Path) -> Iterator[apsw.Connection]:
    """Open a database for short reads.

    Raises:
        StoreError: there is none, or it cannot be read.
    """
    if not db.exists():
        raise StoreError(f"there is no database {db}", hint="name an existing file with --db")
    migrate.require_current(db)
    with closing(open_connection(db, read_only=True)) as connection:
        try:
            yield connection
        except apsw.Error as error:
            raise store_error(error, db) from error
