"""Commands on a database file: migrate, backup, restore, doctor, purge."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import trio
from rich.console import Group, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from crawld.cli.console import console
from crawld.cli.output import json_text, require_database
from crawld.cli.retention import purge_table
from crawld.cli.tables import table
from crawld.core.display import count_text, plural, size_text
from crawld.core.url import canonicalize
from crawld.daemon.api.schemas.retention import PurgeReport, PurgeStatus
from crawld.daemon.clock import Clock
from crawld.daemon.purge import older_copies, take_down
from crawld.errors import EXIT_INCOMPLETE, EXIT_OK
from crawld.store import doctor as doctors
from crawld.store.doctor import Report
from crawld.store.engine import backup as copies
from crawld.store.engine import migrate as migrations
from crawld.store.engine.database import Database
from crawld.store.engine.lock import DatabaseLock, network_filesystem
from crawld.store.versions.purge import PurgeResult


def migrate(db: Path) -> int:
    """Migrate a database to the schema of this version; return the exit code.

    Raises:
        StoreError: the file is missing, in use, foreign, newer or damaged, or a migration failed.
    """
    require_database(db)
    with DatabaseLock.acquire(db):
        before = migrations.migrate(db, print)
    if before.pending:
        print(f"{db}: migrated from schema {before.version} to {before.newest}")
    else:
        print(f"{db}: schema {before.version} is current")
    return EXIT_OK


def backup(db: Path, target: Path) -> int:
    """Back up a database, also while a daemon runs; return the exit code.

    Raises:
        StoreError: the database cannot be read, or the target exists or cannot be written.
    """
    require_database(db)
    with progress_bar(f"copy {db}") as on_step:
        copies.backup_file(db, target, on_step)
    print(f"{target}: {size_text(target.stat().st_size)}, complete copy of {db}")
    return EXIT_OK


def restore(db: Path, copy: Path) -> int:
    """Replace a database with a backup; return the exit code.

    Raises:
        StoreError: the backup is missing, foreign, newer or damaged, or the database is in use.
    """
    replaced = copies.restore(db, copy)
    print(f"{db}: restored from {copy}")
    if replaced is not None:
        print(f"the replaced database is kept: {replaced}")
    return EXIT_OK


def doctor(db: Path, *, repair: bool, as_json: bool) -> int:
    """Check a database; print its errors and the space of each table.

    With `repair`, first repair data that can be derived from other rows. Return 0 without errors
    or after their repair, else 3.

    Raises:
        StoreError: the file cannot be checked, or is in use and cannot be repaired.
    """
    require_database(db)
    with console(stderr=True).status(f"checking {db}") as spinner:
        if repair:
            report = doctors.repair(db, lambda line: spinner.console.print(f"repair {line}"))
        else:
            report = doctors.examine(db)
    warning = network_filesystem(db)
    if as_json:
        space = [each._asdict() for each in report.space]
        print(json_text({"db": str(db), "warning": warning, **asdict(report), "space": space}))
    else:
        console().print(report_table(db, report, warning))
    return EXIT_INCOMPLETE if report.findings else EXIT_OK


def purge(db: Path, urls: Sequence[str], reason: str | None, *, as_json: bool) -> int:
    """Delete every copy of pages and block their URLs; return the exit code.

    Raises:
        InvalidUrlError: a URL is invalid.
        StoreError: the database is missing, foreign or in use.
    """
    require_database(db)
    canonical = [canonicalize(url) for url in urls]
    done, erased = trio.run(_purge, db, canonical, reason)
    report = PurgeReport(
        pages=[PurgeStatus(**each._asdict()) for each in done],
        erased=erased,
        copies=older_copies(db),
    )
    console().print(report.model_dump_json(indent=2) if as_json else purge_table(report))
    return EXIT_OK


async def _purge(
    db: Path, urls: Sequence[str], reason: str | None
) -> tuple[list[PurgeResult], bool]:
    async with await Database.open(db) as database, trio.open_nursery() as nursery:
        await nursery.start(database.run_writer)
        done = await take_down(database, Clock(), urls, reason)
        nursery.cancel_scope.cancel()
    return done


def report_table(db: Path, report: Report, warning: str | None) -> RenderableType:
    """Return the report of a check as text."""
    parts: list[RenderableType] = []
    if warning:
        parts.append(f"warning: {warning}")
    for finding in report.findings:
        times = f" ({count_text(finding.count)} times)" if finding.count > 1 else ""
        parts.append(f"{finding.kind}: {finding.text}{times}")
    if any(finding.repairable for finding in report.findings):
        parts.append(f"some errors can be repaired: crawld doctor --repair --db {db}")
    if any(not finding.repairable for finding in report.findings):
        parts.append(f"other errors need a backup: crawld restore COPY --db {db}")
    if not report.findings:
        parts.append(f"{db}: no errors")
    if report.space:
        rows = (
            (each.table, count_text(each.rows), size_text(each.bytes), size_text(each.unused_bytes))
            for each in report.space
            if each.rows
        )
        parts += ["", table(("table", "rows", "size", "unused"), rows)]
        empty = [each.bytes for each in report.space if not each.rows]
        parts.append(f"{plural(len(empty), 'empty table')}: {size_text(sum(empty))}")
        parts.append(f"free pages: {size_text(report.free_bytes)}")
    return Group(*parts)


class ProgressSteps:
    """A progress bar on a terminal: called with steps done and their total."""

    def __init__(self, bar: Progress, text: str) -> None:
        self._bar = bar
        self._text = text
        self._task = bar.add_task(text)

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done."""
        self._bar.update(self._task, completed=done, total=total)

    def stage(self, text: str) -> None:
        """Begin a stage of unknown length, until the next call."""
        self._bar.reset(self._task, total=None, description=f"{self._text}: {text}")


@contextmanager
def progress_bar(text: str) -> Iterator[ProgressSteps]:
    """Show a progress bar on a terminal, nothing elsewhere."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    shown = sys.stderr.isatty()
    with Progress(*columns, console=console(stderr=True), transient=True, disable=not shown) as bar:
        yield ProgressSteps(bar, text)
