"""`crawld export FORM`: the mirror in the forms of other programs."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crawld.cli.formats import ExportFormat
from crawld.cli.offline import progress_bar
from crawld.core.timestamps import parse_timestamp
from crawld.cli.output import clean, json_text
from crawld.core.display import count_text, size_text
from crawld.errors import EXIT_INCOMPLETE, EXIT_OK, OperatorError
from crawld.export.source import ExportResult, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The options of `crawld export`, as its manual page describes them."""

    db: Path
    out: Path
    since: str | None
    table: str | None
    title: str | None
    as_json: bool


_UNREADABLE_SHOWN = 5


def export(form: ExportFormat, options: ExportOptions) -> int:
    """Write the mirror; return the exit code: 3 if pages were left out because they are damaged.

    Raises:
        OperatorError: an option is wrong, or the place cannot be written.
        StoreError: the database cannot be read.
    """
    began_s = time.monotonic()
    if options.table is not None and form not in (ExportFormat.JSONL, ExportFormat.CSV):
        raise OperatorError(
            f"--table is not for {form}", hint="it is for: crawld export jsonl, crawld export csv"
        )
    now = time.time()
    since = None if options.since is None else parse_timestamp(options.since, now)
    with progress_bar(f"export {form}") as progress:
        summary = _export(form, options, now, since, progress)
    seconds = time.monotonic() - began_s
    if options.as_json:
        print(json_text(_as_json(form, options, summary, seconds)))
    else:
        print(_as_text(options, summary, seconds))
    return EXIT_INCOMPLETE if summary.unreadable else EXIT_OK


def _export(
    form: ExportFormat, options: ExportOptions, now: float, since: float | None, progress: Progress
) -> ExportResult:
    from crawld.export import archive, dump, records, static, wacz

    if form is ExportFormat.ZIM:
        return _export_zim(options, now, since, progress)

    db, out = options.db, options.out
    whole: dict[ExportFormat, Callable[[], ExportResult]] = {
        ExportFormat.STATIC: lambda: static.export_static(
            db, out, now=now, since=since, progress=progress
        ),
        ExportFormat.WARC: lambda: archive.export_warc(
            db, out, now=now, since=since, progress=progress
        ),
        ExportFormat.WACZ: lambda: wacz.export_wacz(
            db, out, now=now, since=since, title=options.title, progress=progress
        ),
        ExportFormat.JSONL: lambda: records.export_records(
            db, out, "jsonl", table=options.table, since=since, progress=progress
        ),
        ExportFormat.CSV: lambda: records.export_records(
            db, out, "csv", table=options.table, since=since, progress=progress
        ),
        ExportFormat.DUMP: lambda: dump.export_dump(db, out, since=since, progress=progress),
    }
    return whole[form]()


def _export_zim(
    options: ExportOptions, now: float, since: float | None, progress: Progress
) -> ExportResult:
    try:
        from crawld.export.zim import BrokenWriterError, export_zim
    except ModuleNotFoundError as error:
        raise OperatorError(
            f"this export needs {error.name}, which is not installed",
            hint="pip install 'crawld[zim]'",
        ) from error
    try:
        with _silent_stdout():
            return export_zim(
                options.db,
                options.out,
                now=now,
                since=since,
                title=options.title,
                progress=progress,
            )
    except BrokenWriterError as error:
        atexit.register(_exit_process, error.exit_code)
        raise


def _exit_process(exit_code: int) -> None:
    """End the process before Python ends the threads in it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


@contextmanager
def _silent_stdout() -> Iterator[None]:
    """Keep what libzim prints out of what this command says."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _as_json(
    form: ExportFormat, options: ExportOptions, summary: ExportResult, seconds: float
) -> dict[str, object]:
    return {
        "form": form.value,
        "db": str(options.db),
        "out": str(options.out),
        "written": summary.written,
        "written_bytes": summary.written_bytes,
        "unreadable": summary.unreadable,
        "duration_s": round(seconds, 3),
    }


def _as_text(options: ExportOptions, summary: ExportResult, seconds: float) -> str:
    counts = ", ".join(f"{count_text(n)} {kind}" for kind, n in summary.written.items() if n)
    lines = [
        f"{options.out}: {counts or 'nothing new'}"
        f" ({size_text(summary.written_bytes)}) in {seconds:.1f} s"
    ]
    shown = summary.unreadable[:_UNREADABLE_SHOWN]
    lines += [f"damaged, left out: {clean(url)}" for url in shown]
    if len(summary.unreadable) > len(shown):
        lines.append(f"and {count_text(len(summary.unreadable) - len(shown))} more")
    if shown:
        lines.append(f"look at the file: crawld doctor --db {options.db}")
    return "\n".join(lines)
