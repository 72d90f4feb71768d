"""Counts, sizes, durations and times as text for people, for the command line and the web.

Every time is UTC.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from crawld.core.units import DAY_S

SHOWN_TITLE_CHARACTERS = 1_000
"""Longest title that is read to be shown or exported; a page may have one of megabytes."""

LAST_AT = 253_402_300_799.0
"""End of the year 9999, Unix seconds: the last time with four digits for the year."""

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def count_text(n: int) -> str:
    """Return a number with thousands separators."""
    return f"{n:,}"


def plural(n: int, noun: str) -> str:
    """Return a count with its noun: `1 seed`, `2 seeds`."""
    return f"{count_text(n)} {noun}{'' if n == 1 else 's'}"


def size_text(size_bytes: float) -> str:
    """Return a size in the binary unit that leaves one to four digits."""
    size = float(size_bytes)
    for unit in _SIZES[:-1]:
        if size < 1023.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {_SIZES[-1]}"


def duration_text(seconds: float | None) -> str:
    """Return a duration in its two largest units; empty for None."""
    if seconds is None:
        return ""
    if math.isinf(seconds):
        return "forever"
    if seconds < 0.9995:
        return f"{max(seconds, 0.0) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s:02d} s" if minutes < 10 else f"{minutes} min"
    hours, rest_min = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {rest_min:02d} min"
    days, rest_h = divmod(hours, 24)
    return f"{days} d {rest_h} h" if days < 10 else f"{days} d"


_UNITS = (
    (365.25 * DAY_S, "year"),
    (30.4375 * DAY_S, "month"),
    (DAY_S, "day"),
    (3_600.0, "hour"),
    (60.0, "minute"),
)


def about_text(seconds: float) -> str:
    """Return a duration in one rounded unit.

    >>> about_text(3.2 * 86_400), about_text(5_400)
    ('3 days', '90 minutes')
    """
    for unit_s, name in _UNITS:
        # Two units are told in the smaller one: 36 hours, not 2 days.
        if seconds >= 1.75 * unit_s:
            return plural(round(seconds / unit_s), name)
    return plural(max(round(seconds), 1), "second")


def every_text(period_s: float) -> str:
    """Return how often something happens.

    >>> every_text(0.2), every_text(60.0), every_text(3.2 * 86_400)
    ('5 times a second', 'every minute', 'every 3 days')
    """
    if period_s < 0.75:
        return f"{count_text(round(1.0 / period_s))} times a second" if period_s > 0.0 else "always"
    for unit_s, name in (*_UNITS, (1.0, "second")):
        if 0.95 * unit_s <= period_s < 1.1 * unit_s:
            return f"every {name}"
    return f"every {about_text(period_s)}"


def rate_text(per_s: float, noun: str) -> str:
    """Return a rate in the unit that leaves a number a person can imagine.

    >>> rate_text(12.3, "visit"), rate_text(0.5, "visit"), rate_text(1 / 7_200, "change")
    ('12 visits/s', '30 visits/min', '12 changes/day')
    """
    for unit, factor in (("s", 1.0), ("min", 60.0), ("h", 3_600.0), ("day", DAY_S)):
        number = per_s * factor
        if number >= 2.0 or unit == "day":
            break
    shown = count_text(round(number)) if number >= 9.95 or not number else f"{number:.1f}"
    return f"{shown} {noun}s/{unit}"


def delay_text(delay_s: float | None) -> str:
    """Return a delay that somebody chose, to three digits; empty for None.

    >>> delay_text(7.0), delay_text(3.75), delay_text(0.25), delay_text(90.0)
    ('7 s', '3.75 s', '250 ms', '1 min 30 s')
    """
    if delay_s is None or not 1.0 <= delay_s < 59.95:
        return "0 s" if delay_s == 0.0 else duration_text(delay_s)
    return f"{delay_s:.3g} s"


def ago_text(at: float | None, now: float) -> str:
    """Return how long ago a time was; `never` for None."""
    return "never" if at is None else f"{duration_text(max(now - at, 0.0))} ago"


def rough_ago_text(at: float, now: float) -> str:
    """Return about how long ago a time was, in steps: a page that shows it may be kept for a step.

    >>> [rough_ago_text(0.0, now) for now in (30.0, 290.0, 1570.0, 40_000.0, 1e6)]
    ['just now', '4 min ago', '25 min ago', '11 h ago', '11 d ago']
    """
    minutes = int(max(now - at, 0.0) // 60)
    if minutes < 60:
        shown = minutes if minutes < 10 else minutes - minutes % 5
        return f"{shown} min ago" if shown else "just now"
    hours = minutes // 60
    return f"{hours} h ago" if hours < 48 else f"{hours // 24} d ago"


def time_text(at: float | None) -> str:
    """Return a time for people, to the minute; `never` for None."""
    return "never" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def iso_text(at: float) -> str:
    """Return a time in ISO 8601, to the second.

    >>> iso_text(0.0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
