"""Exports pages, visits, changes and versions as tables in JSON lines or CSV.

The target is a directory with one file per table, or one file of one table. pandas and DuckDB read
both:

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
from crawld.export.source import ExportRequest, ExportResult, open_source
from crawld.store.mirror import walk
from crawld.store.mirror.rows import TABLES, ExportTable, rows

Format = Literal["jsonl", "csv"]


def export_records(request: ExportRequest, form: Format) -> ExportResult:
    """Write all tables into a new directory, or `request.table` into a new file.

    CSV files start with a line of column names. Progress counts tables.

    Raises:
        OperatorError: the table is unknown, or the target exists or cannot be written.
        StoreError: the database cannot be read.
    """
    table = request.table
    if table is not None and table not in TABLES:
        raise OperatorError(f"unknown table {table!r}", hint=f"known: {', '.join(TABLES)}")
    result = ExportResult()
    with open_source(request.db) as connection:
        walk.newest_page(connection)

        def write(name: str, path: Path) -> None:
            with atomic_file(path) as file:
                count = _write(connection, TABLES[name], form, file, request.since)
                result.written[name] = count
                result.written_bytes += file.tell()

        if table is not None:
            write(table, request.out)
            request.progress(1, 1)
        else:
            _write_all(request, form, write)
    return result


def _write_all(request: ExportRequest, form: Format, write: Callable[[str, Path], None]) -> None:
    refuse_existing(request.out)
    partial = request.out.with_name(f"{request.out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        for done, table in enumerate(TABLES):
            request.progress(done, len(TABLES))
            write(table, partial / f"{table}.{form}")
        os.rename(partial, request.out)
    except OSError as error:
        raise OperatorError(
            f"{request.out} cannot be written: {error.strerror}",
            hint="give another path with --out",
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    request.progress(len(TABLES), len(TABLES))


def _write(
    connection: apsw.Connection,
    table: ExportTable,
    form: Format,
    file: BinaryIO,
    since: float | None,
) -> int:
    """Write a table and return the number of its rows."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
    write = _json_lines(table, text) if form == "jsonl" else _csv(table, text)
    count = 0
    for chunk in rows(connection, table, since):
        write(chunk)
        count += len(chunk)
    text.detach()  # flushes, and leaves the file open
    return count


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
