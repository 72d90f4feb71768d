"""Rows of the answers of a MediaWiki API: whatever is not as expected is as if it were missing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime


def rows_of(table: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """Return a list of objects, which format version 1 may give as a table."""
    rows = table.get(key)
    if isinstance(rows, dict):
        rows = list(rows.values())
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def text_of(row: Mapping[str, object], key: str) -> str:
    """Return a text, empty where there is none."""
    value = row.get(key)
    return value if isinstance(value, str) else ""


def flag_of(row: Mapping[str, object], key: str) -> bool:
    """Return a flag: true, or in format version 1 an empty text."""
    return row.get(key) not in (None, False)


def timestamp_of(row: Mapping[str, object], key: str = "timestamp") -> float | None:
    """Return an instant as Unix seconds, None where there is none that can be read."""
    timestamp = row.get(key)
    if not isinstance(timestamp, str):
        return None
    try:
        at = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
