"""The words that choose a form of export or import; apart, since `--help` needs them."""

from __future__ import annotations

from enum import StrEnum


class ExportFormat(StrEnum):
    """What `crawld export` can write."""

    STATIC = "static"
    WARC = "warc"
    WACZ = "wacz"
    ZIM = "zim"
    JSONL = "jsonl"
    CSV = "csv"
    DUMP = "dump"


class ImportFormat(StrEnum):
    """What `crawld import` can read."""

    WARC = "warc"
    URLS = "urls"
    ZIM = "zim"
