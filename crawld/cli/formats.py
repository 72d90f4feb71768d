"""The formats of `crawld export` and `import`; a separate module, since `--help` needs it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import typer


class ExportFormat(StrEnum):
    """Formats that `crawld export` writes."""

    STATIC = "static"
    WARC = "warc"
    WACZ = "wacz"
    ZIM = "zim"
    JSONL = "jsonl"
    CSV = "csv"
    DUMP = "dump"


EXPORT_FORM: Final[Any] = typer.Argument(
    metavar=f"{'|'.join(ExportFormat)}|PLUGIN:NAME",
    help="Format.",
    autocompletion=lambda: list(ExportFormat),
)
"""The argument of `crawld export`."""


class ImportFormat(StrEnum):
    """Formats that `crawld import` reads."""

    WARC = "warc"
    URLS = "urls"
    ZIM = "zim"
