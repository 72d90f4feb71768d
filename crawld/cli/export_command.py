"""The command `crawld export` and its options; it imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crawld.cli.formats import EXPORT_FORM
from crawld.cli.output import with_exit_code


@with_exit_code
def export(
    form: Annotated[str, EXPORT_FORM],
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="PATH", help="Target; static updates a directory.")
    ],
    db: Annotated[Path, typer.Option("--db", help="Database.")] = Path("crawld.db"),
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help='Skip older records: "2 days ago".')
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(help="jsonl, csv: only pages, visits, changes or versions, as one file."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="zim, wacz: title of the file.")] = None,
    description: Annotated[
        str | None, typer.Option(help="zim: what it is about; default: from the site.")
    ] = None,
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="zim: as en or eng; default: from the site.")
    ] = None,
    icon: Annotated[
        Path | None, typer.Option(metavar="FILE", help="zim: PNG or ICO; default: from the site.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="PLUGIN:NAME: config that has it."),
    ] = None,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Export the mirror for other programs, also while the daemon runs; works offline."""
    from crawld.cli.export import export as write

    return write(
        form,
        db,
        out,
        since=since,
        table=table,
        title=title,
        description=description,
        language=language,
        icon=icon,
        config=config,
        as_json=json_out,
    )
