"""Parses times as people write them: Unix seconds, ISO 8601, or a time ago.

A time without an offset is UTC, like every time that crawld prints.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from crawld.core.units import DAY_S, YEAR_S
from crawld.errors import OperatorError

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?(?:\s+ago)?")
_UNITS_S = {
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("m", "min", "minute"), 60.0),
    **dict.fromkeys(("h", "hour"), 3_600.0),
    **dict.fromkeys(("d", "day"), DAY_S),
    **dict.fromkeys(("w", "week"), 604_800.0),
    "month": 30.0 * DAY_S,
    **dict.fromkeys(("y", "year"), YEAR_S),
}


def parse_timestamp(text: str, now: float) -> float:
    """Return the time that a text names, Unix seconds.

    Args:
        text: `1780000000`, `2026-05-28`, `2026-05-28T20:26:40+02:00`, `2 days ago`, `3h`,
            `yesterday`, `now`. A month is 30 days, a year 365.

    Raises:
        OperatorError: the text is none of these.

    >>> parse_timestamp("2 days ago", 1_000_000.0), parse_timestamp("1970-01-02", 0.0)
    (827200.0, 86400.0)
    """
    wanted = text.strip().lower()
    if wanted in {"now", "yesterday"}:
        return now - (DAY_S if wanted == "yesterday" else 0.0)
    at = _unix_seconds(wanted)
    if at is None:
        at = _ago(wanted, now)
    if at is None:
        at = _iso(text.strip())
    if at is None:
        raise OperatorError(
            f"{text!r} is not a time",
            hint='give Unix seconds, ISO 8601 (2026-05-28, 2026-05-28T18:00Z) or "2 days ago"',
        )
    return at


def _unix_seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _ago(text: str, now: float) -> float | None:
    match = _AGO.fullmatch(text)
    unit_s = _UNITS_S.get(match[2]) if match else None
    return now - float(match[1]) * unit_s if match and unit_s else None


def _iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
