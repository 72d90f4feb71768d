"""`crawld export FORM`: write the mirror in a format of other programs."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from crawld.cli.formats import ExportFormat
from crawld.cli.offline import progress_bar
from crawld.cli.output import clean, exit_now, json_text, missing_extra
from crawld.core.display import count_text, duration_text, size_text
from crawld.core.timestamps import parse_timestamp
from crawld.errors import EXIT_INCOMPLETE, EXIT_OK, OperatorError
from crawld.export.source import ExportRequest, ExportResult

_UNREADABLE_SHOWN = 5


def export(
    form: str,
    db: Path,
    out: Path,
    *,
    since: str | None,
    table: str | None,
    title: str | None,
    description: str | None,
    language: str | None,
    icon: Path | None,
    config: Path | None,
    as_json: bool,
) -> int:
    """Export the mirror; return the exit code: 3 if damaged pages were left out.

    Args:
        form: an `ExportFormat`, or `PLUGIN:NAME` for that of a plug-in of `config`.

    Raises:
        OperatorError: an option is invalid, or the target cannot be written.
        StoreError: the database cannot be read.
    """
    started_s = time.monotonic()
    write = _writer(form, config)
    if table is not None and form not in (ExportFormat.JSONL, ExportFormat.CSV):
        raise OperatorError(
            f"--table does not apply to {form}", hint="only to: crawld export jsonl, export csv"
        )
    for option, given in (("description", description), ("language", language), ("icon", icon)):
        if given is not None and form != ExportFormat.ZIM:
            raise OperatorError(
                f"--{option} does not apply to {form}", hint="only to: crawld export zim"
            )
    now = time.time()
    after = None if since is None else parse_timestamp(since, now)
    with progress_bar(f"export {form}") as progress:
        request = ExportRequest(
            db,
            out,
            now,
            since=after,
            table=table,
            title=title,
            description=description,
            language=language,
            icon=icon,
            progress=progress,
            stage=progress.stage,
        )
        result = write(request)
    seconds = time.monotonic() - started_s
    if as_json:
        print(json_text(_as_json(form, request, result, seconds)))
    else:
        print(_as_text(request, result, seconds))
    return EXIT_INCOMPLETE if result.unreadable else EXIT_OK


def _writer(form: str, config: Path | None) -> Callable[[ExportRequest], ExportResult]:
    """Return what writes a format.

    Raises:
        OperatorError: there is no such format.
    """
    if ":" in form:
        return _plugin_writer(form, config)
    try:
        return partial(_export, ExportFormat(form))
    except ValueError:
        known = ", ".join(ExportFormat)
        raise OperatorError(
            f"there is no export format {form!r}",
            hint=f"known are: {known}; PLUGIN:NAME with -c FILE for that of a plug-in",
        ) from None


def _plugin_writer(form: str, config: Path | None) -> Callable[[ExportRequest], ExportResult]:
    from crawld.config.load import load
    from crawld.export.plugged import export_by_plugin
    from crawld.plugin_host.in_use import use_plugins
    from crawld.plugin_host.supplied import check_named

    if config is None:
        raise OperatorError(
            f"{form} is a format of a plug-in", hint="name the config that has it: -c FILE"
        )
    exporters = use_plugins(load(config).config).supplied.exporters
    check_named("export format", form, exporters)
    return partial(export_by_plugin, name=form, exporter=exporters[form][1])


def _export(form: ExportFormat, request: ExportRequest) -> ExportResult:
    from crawld.export import archive, dump, records, static, wacz

    match form:
        case ExportFormat.STATIC:
            return static.export_static(request)
        case ExportFormat.WARC:
            return archive.export_warc(request)
        case ExportFormat.WACZ:
            return wacz.export_wacz(request)
        case ExportFormat.ZIM:
            return _export_zim(request)
        case ExportFormat.DUMP:
            return dump.export_dump(request)
        case ExportFormat.JSONL:
            return records.export_records(request, "jsonl")
        case ExportFormat.CSV:
            return records.export_records(request, "csv")


def _export_zim(request: ExportRequest) -> ExportResult:
    try:
        from crawld.export.zim import BrokenWriterError, export_zim
    except ModuleNotFoundError as error:
        raise missing_extra(error, "zim") from error
    try:
        with _silent_stdout():
            return export_zim(request)
    except BrokenWriterError as error:
        atexit.register(exit_now, error.exit_code)  # libzim's threads would abort the process
        raise


@contextmanager
def _silent_stdout() -> Iterator[None]:
    """Drop what libzim writes to stdout; its errors are exceptions."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)


def _as_json(
    form: str, request: ExportRequest, result: ExportResult, seconds: float
) -> dict[str, object]:
    return {
        "form": form,
        "db": str(request.db),
        "out": str(request.out),
        "written": result.written,
        "written_bytes": result.written_bytes,
        "unreadable": result.unreadable,
        "duration_s": round(seconds, 3),
    }


def _as_text(request: ExportRequest, result: ExportResult, seconds: float) -> str:
    counts = ", ".join(f"{count_text(n)} {kind}" for kind, n in result.written.items() if n)
    lines = [
        f"{request.out}: {counts or 'nothing new'}"
        f" ({size_text(result.written_bytes)}) in {duration_text(seconds)}"
    ]
    shown = result.unreadable[:_UNREADABLE_SHOWN]
    lines += [f"damaged, left out: {clean(url)}" for url in shown]
    if len(result.unreadable) > len(shown):
        lines.append(f"and {count_text(len(result.unreadable) - len(shown))} more")
    if shown:
        lines.append(f"check the database: crawld doctor --db {request.db}")
    return "\n".join(lines)
