"""Tables for programs: pages, visits, changes and versions as JSON lines or CSV.

A directory with one file a table, or one table in one file. pandas and DuckDB read both:

    duckdb -c "SELECT outcome, count(*) FROM 'out/visits.jsonl' GROUP BY ALL"
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import apsw

from crawld.errors import OperatorError
from crawld.export.atomic_file import atomic_file, refuse_existing
from crawld.export.source import ExportResult, Progress, no_progress, open_source
from crawld.store.mirror import walk
from crawld.store.mirror.rows import TABLES, ExportTable, rows

Format = Literal["jsonl", "csv"]


def export_records(
    db: Path,
    out: Path,
    form: Format,
    *,
    table: str | None = None,
    since: float | None = None,
    progress: Progress = no_progress,
) -> ExportResult:
    """Write tables.

    Args:
        db: the database; a daemon may be writing to it.
        out: a directory that does not exist yet, or with `table` a file.
        form: `jsonl` or `csv`; the latter with a line of column names.
        table: one of `TABLES` alone.
        since: leave out rows older than this instant.
        progress: told how many tables of how many are done.

    Raises:
        OperatorError: there is no such table, or the place cannot be written.
        StoreError: the database cannot be read.
    """
    if table is not None and table not in TABLES:
        raise OperatorError(f"there is no table {table!r}", hint=f"there are: {', '.join(TABLES)}")
    summary = ExportResult()
    with open_source(db) as connection:
        walk.newest_page(connection)
        if table is not None:
            with atomic_file(out) as file:
                _write(connection, table, form, file, since, summary)
            progress(1, 1)
        else:
            _write_all(connection, out, form, since, summary, progress)
    return summary


def _write_all(
    connection: apsw.Connection,
    out: Path,
    form: Format,
    since: float | None,
    summary: ExportResult,
    progress: Progress,
) -> None:
    refuse_existing(out)
    partial = out.with_name(f"{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        for done, table in enumerate(TABLES):
            progress(done, len(TABLES))
            with atomic_file(partial / f"{table}.{form}") as file:
                _write(connection, table, form, file, since, summary)
        os.rename(partial, out)
    except OSError as error:
        raise OperatorError(
            f"{out} cannot be written: {error.strerror}", hint="name another place with --out"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    progress(len(TABLES), len(TABLES))


def _write(
    connection: apsw.Connection,
    name: str,
    form: Format,
    file: BinaryIO,
    since: float | None,
    summary: ExportResult,
) -> None:
    table = TABLES[name]
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
    write = _json_lines(table, text) if form == "jsonl" else _csv(table, text)
    count = 0
    for chunk in rows(connection, table, since):
        write(chunk)
        count += len(chunk)
    text.flush()
    summary.written[name] = count
    summary.written_bytes += file.tell()
    text.detach()


_Write = Callable[[Sequence[Sequence[Any]]], None]


def _json_lines(table: ExportTable, text: io.TextIOWrapper) -> _Write:
    encode = json.JSONEncoder(ensure_ascii=False).encode

    def write(chunk: Sequence[Sequence[Any]]) -> None:
        text.writelines(encode(dict(zip(table.columns, row, strict=True))) + "\n" for row in chunk)

    return write


def _csv(table: ExportTable, text: io.TextIOWrapper) -> _Write:
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    return writer.writerows
