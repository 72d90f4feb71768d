"""Figures in words for the dashboard: shares, rates, times; a value that is not known is a dash."""

from __future__ import annotations

import math
from typing import Final

from crawld.core.display import count_text, duration_text, iso_text, time_text
from crawld.core.page import PageState
from crawld.core.units import DAY_S

UNKNOWN: Final = "–"
"""What stands for a value that is not known."""

STATE_NAMES: Final = {
    PageState.VISITED: "visited",
    PageState.DISCOVERED: "not visited yet",
    PageState.EXCLUDED: "closed by robots.txt",
    PageState.SUSPENDED: "on a replica",
    PageState.GONE: "gone",
}
"""States of pages in the words of the dashboard."""

_RATES: Final = ((1.0, "s"), (60.0, "min"), (3_600.0, "h"), (DAY_S, "day"), (365 * DAY_S, "year"))


def share(value: float | None) -> str:
    r"""Return a share from 0 to 1 in per cent; it says 100 % and 0 % of nothing else.

    The spaces in it do not break.

    >>> [share(x).replace("\u00a0", " ") for x in (0.97345, 0.99996, 1.0, 0.0, None)]
    ['97.3 %', '> 99.9 %', '100 %', '0 %', '–']
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value in (0.0, 1.0):
        return f"{value:.0%}".replace("%", "\u00a0%")
    if value > 0.9995:
        return ">\u00a099.9\u00a0%"
    if value < 0.0005:
        return "<\u00a00.1\u00a0%"
    return f"{100.0 * value:.1f}\u00a0%"


def interval(low: float, high: float) -> str:
    r"""Return an interval of shares.

    >>> interval(0.951, 1.0).replace("\u00a0", " ")
    '95.1 – 100 %'
    """
    ends = (f"{100.0 * each:.1f}".removesuffix(".0") for each in (low, high))
    return "\u00a0–\u00a0".join(ends) + "\u00a0%"


def number(value: float | None) -> str:
    """Return a count or a mean with three significant digits and thousands separators.

    >>> number(1234567), number(0.01234), number(12.345), number(None)
    ('1,234,567', '0.0123', '12.3', '–')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == int(value) and abs(value) < 1e15:
        return count_text(int(value))
    return count_text(round(value)) if abs(value) >= 1_000 else f"{value:.3g}"


def rate(per_s: float | None) -> str:
    """Return a rate in the shortest unit of time in which it is at least 1.

    >>> rate(4.21), rate(1 / 15), rate(1 / 86400 / 10), rate(0.0)
    ('4.2 / s', '4 / min', '36.5 / year', '0 / s')
    """
    if per_s is None or not math.isfinite(per_s):
        return UNKNOWN
    for unit_s, unit in _RATES:
        if per_s * unit_s >= 0.995 or unit == "year":
            found = per_s * unit_s
            break
    if not per_s:
        return "0 / s"
    text = count_text(round(found)) if found >= 99.5 else f"{found:.1f}".removesuffix(".0")
    return f"{text} / {unit}"


def duration(seconds: float | None) -> str:
    """Return a duration in its two largest units."""
    if seconds is None or math.isnan(seconds):
        return UNKNOWN
    return duration_text(seconds)


def moment(at: float | None) -> str:
    """Return a time to the minute, UTC; also one that no calendar has.

    >>> moment(0.0), moment(1e18), moment(None)
    ('1970-01-01 00:00 UTC', 'not on the calendar', 'never')
    """
    try:
        return time_text(at)
    except (ValueError, OverflowError, OSError):
        return "not on the calendar"


def stamp(at: float | None) -> str:
    """Return a time in ISO 8601 for a `<time>` element; empty if no calendar has it."""
    try:
        return "" if at is None else iso_text(at)
    except (ValueError, OverflowError, OSError):
        return ""


def ago(at: float | None, now: float) -> str:
    """Return how long ago a time was, or in how long it comes.

    >>> ago(40.0, 100.0), ago(160.0, 100.0), ago(None, 100.0)
    ('1 min 00 s ago', 'in 1 min 00 s', 'never')
    """
    if at is None:
        return "never"
    since_s = now - at
    return f"{duration_text(since_s)} ago" if since_s >= 0.0 else f"in {duration_text(-since_s)}"
