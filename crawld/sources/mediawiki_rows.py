"""Reads rows of MediaWiki API responses; a value of the wrong type counts as missing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime


def rows_of(table: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """Return a list of objects; in format version 1 it may be an object of objects."""
    rows = table.get(key)
    if isinstance(rows, dict):
        rows = list(rows.values())
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def text_of(row: Mapping[str, object], key: str) -> str:
    """Return a text, empty if missing."""
    value = row.get(key)
    return value if isinstance(value, str) else ""


def flag_of(row: Mapping[str, object], key: str) -> bool:
    """Return a flag: true, or an empty text in format version 1."""
    return row.get(key) not in (None, False)


def timestamp_of(row: Mapping[str, object], key: str = "timestamp") -> float | None:
    """Return a time as Unix seconds; None if it is missing or invalid."""
    timestamp = row.get(key)
    if not isinstance(timestamp, str):
        return None
    try:
        at = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
