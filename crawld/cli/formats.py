"""The formats of `crawld export` and `import`; a separate module, since `--help` needs it."""

from __future__ import annotations

from enum import StrEnum


class ExportFormat(StrEnum):
    """Formats that `crawld export` writes."""

    STATIC = "static"
    WARC = "warc"
    WACZ = "wacz"
    ZIM = "zim"
    JSONL = "jsonl"
    CSV = "csv"
    DUMP = "dump"


class ImportFormat(StrEnum):
    """Formats that `crawld import` reads."""

    WARC = "warc"
    URLS = "urls"
    ZIM = "zim"
