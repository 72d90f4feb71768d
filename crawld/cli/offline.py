"""Work on the file itself: migrate, back up, restore, examine."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import trio
from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from crawld.cli.output import console, json_text
from crawld.cli.retention import purge_table
from crawld.cli.tables import table
from crawld.core.display import count_text, plural, size_text
from crawld.core.url import canonicalize
from crawld.daemon.api.schemas.retention import PurgeReport, PurgeStatus
from crawld.daemon.clock import Clock
from crawld.daemon.purge import older_copies, take_down
from crawld.errors import EXIT_INCOMPLETE, EXIT_OK, StoreError
from crawld.store import doctor as doctors
from crawld.store.doctor import Report
from crawld.store.engine import backup as copies
from crawld.store.engine import migrate as migrations
from crawld.store.engine.backup import Progress as OnStep
from crawld.store.engine.database import Database
from crawld.store.engine.lock import DatabaseLock, network_filesystem
from crawld.store.versions.purge import PurgeResult


def migrate(db: Path) -> int:
    """Bring a database to the schema of this version; return the exit code.

    Raises:
        StoreError: the file is missing, in use, foreign, newer, damaged, or a migration failed.
    """
    require_database(db)
    lock = DatabaseLock.acquire(db)
    try:
        before = migrations.migrate(db, print)
    finally:
        lock.release()
    if before.pending:
        print(f"{db}: schema {before.version} is now {before.newest}")
    else:
        print(f"{db}: schema {before.version} is the newest")
    return EXIT_OK


def backup(db: Path, target: Path) -> int:
    """Copy a database, also beside a running daemon; return the exit code.

    Raises:
        StoreError: the database cannot be read, or the copy exists or cannot be written.
    """
    require_database(db)
    with progress_bar(f"copy {db}") as on_step:
        copies.backup_file(db, target, on_step)
    print(f"{target}: {size_text(target.stat().st_size)}, a whole copy of {db}")
    return EXIT_OK


def restore(db: Path, copy: Path) -> int:
    """Put a copy in the place of a database; return the exit code.

    Raises:
        StoreError: the copy is missing, foreign, newer or damaged, or the database is in use.
    """
    replaced = copies.restore(db, copy)
    print(f"{db} is now the copy {copy}")
    if replaced is not None:
        print(f"what it replaces is kept: {replaced}")
    return EXIT_OK


def doctor(db: Path, *, repair: bool, as_json: bool) -> int:
    """Examine a database, and say what is wrong and what takes the space.

    Args:
        db: the database.
        repair: put right what follows from other rows first.
        as_json: print JSON.

    Returns:
        0 if nothing is wrong (any more), 3 otherwise.

    Raises:
        StoreError: the file cannot be examined at all, or is in use and was to be repaired.
    """
    require_database(db)
    with console(stderr=True).status(f"examining {db}") as spinner:
        if repair:
            report = doctors.repair(db, lambda line: spinner.console.print(f"repair {line}"))
        else:
            report = doctors.examine(db)
    warning = network_filesystem(db)
    if as_json:
        print(json_text({"db": str(db), "warning": warning, **asdict(report), **_as_rows(report)}))
    else:
        console().print(report_table(db, report, warning))
    return EXIT_INCOMPLETE if report.findings else EXIT_OK


def purge(db: Path, urls: Sequence[str], reason: str | None, *, as_json: bool) -> int:
    """Take pages down in a database that no daemon uses; return the exit code.

    Raises:
        InvalidUrlError: one of the URLs is none.
        StoreError: the database is missing, foreign, or in use.
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


def _as_rows(report: Report) -> dict[str, object]:
    return {"space": [space._asdict() for space in report.space]}


def report_table(db: Path, report: Report, warning: str | None) -> RenderableType:
    """Return the report of an examination for a person."""
    parts: list[RenderableType] = []
    if warning:
        parts.append(f"warning: {warning}")
    for finding in report.findings:
        times = f" ({count_text(finding.count)} times)" if finding.count > 1 else ""
        parts.append(f"{finding.kind}: {finding.text}{times}")
    if any(finding.repairable for finding in report.findings):
        parts.append(f"repair what can be: crawld doctor --repair --db {db}")
    if any(not finding.repairable for finding in report.findings):
        parts.append(f"the rest needs a backup: crawld restore COPY --db {db}")
    if not report.findings:
        parts.append(f"{db}: nothing is wrong")
    if report.space:
        rows = (
            (each.table, count_text(each.rows), size_text(each.bytes), size_text(each.unused_bytes))
            for each in report.space
            if each.rows
        )
        parts += ["", table(("table", "rows", "size", "unused"), rows)]
        empty = [each.bytes for each in report.space if not each.rows]
        parts.append(f"{plural(len(empty), 'empty table')}: {size_text(sum(empty))}")
        parts.append(f"free inside the file: {size_text(report.free_bytes)}")
    return Group(*parts)


def require_database(db: Path) -> None:
    """Refuse a database that does not exist.

    Raises:
        StoreError: it does not.
    """
    if not db.exists():
        raise StoreError(f"there is no database {db}", hint="name an existing file with --db")


@contextmanager
def progress_bar(text: str) -> Iterator[OnStep]:
    """Show a bar on a terminal, nothing elsewhere."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("pages"),
        TimeRemainingColumn(),
    )
    shown = sys.stderr.isatty()
    with Progress(*columns, console=console(stderr=True), transient=True, disable=not shown) as bar:
        task = bar.add_task(text)

        def on_step(copied: int, pages: int) -> None:
            bar.update(task, completed=copied, total=pages)

        yield on_step
