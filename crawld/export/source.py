"""Common parts of all exports: the request, the result, and the database opened for short reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from crawld.errors import StoreError
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection, store_error

Progress = Callable[[int, int], None]
"""Called at intervals with the number of pages done and the approximate total."""


def no_progress(done: int, total: int) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What to export, and where to.

    Attributes:
        db: the database; a daemon may be writing to it.
        out: the file or directory to write.
        now: Unix seconds.
        since: leave out older records; None: export all.
        table: jsonl, csv: the only table to write, as one file; None: all.
        title: zim, wacz: the title of the file; None: a default.
        progress: receives the progress.
    """

    db: Path
    out: Path
    now: float
    since: float | None = None
    table: str | None = None
    title: str | None = None
    progress: Progress = no_progress


@dataclass(slots=True)
class ExportResult:
    """Counts of an export.

    Attributes:
        written: files, records or rows written, by kind.
        written_bytes: their size.
        unreadable: URLs of pages left out because their copy is damaged.
    """

    written: Counter[str] = field(default_factory=Counter)
    written_bytes: int = 0
    unreadable: list[str] = field(default_factory=list)

    def count(self, kind: str, size_bytes: int = 0) -> None:
        """Count one written file, record or row."""
        self.written[kind] += 1
        self.written_bytes += size_bytes


@contextmanager
def open_source(db: Path) -> Iterator[apsw.Connection]:
    """Open a database for short reads.

    Raises:
        StoreError: it is missing or cannot be read.
    """
    if not db.exists():
        raise StoreError(f"there is no database {db}", hint="give an existing file with --db")
    migrate.require_current(db)
    with closing(open_connection(db, read_only=True)) as connection:
        try:
            yield connection
        except apsw.Error as error:
            raise store_error(error, db) from error
