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
from crawld.store.engine.connection import open_connection, retry_while_locked, store_error

Progress = Callable[[int, int], None]
"""Called at intervals with the number of pages done and the approximate total."""


def no_progress(done: int, total: int) -> None:
    """Ignore the progress."""


def no_stage(text: str) -> None:
    """Ignore what begins."""


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
        description: zim: what the file is about; None: from the site.
        language: zim: code of ISO 639; None: from the site.
        icon: zim: a PNG or ICO file; None: from the site.
        progress: receives the progress.
        stage: receives what begins now, with a new progress from 0.
    """

    db: Path
    out: Path
    now: float
    since: float | None = None
    table: str | None = None
    title: str | None = None
    description: str | None = None
    language: str | None = None
    icon: Path | None = None
    progress: Progress = no_progress
    stage: Callable[[str], None] = no_stage


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
    _require_current(db)
    with closing(open_connection(db, read_only=True)) as connection:
        try:
            yield connection
        except apsw.Error as error:
            raise store_error(error, db) from error


@retry_while_locked()
def _require_current(db: Path) -> None:
    migrate.require_current(db)
