"""An entry of a sitemap, feed or listing: the URL of a page and the time of its change.

A date is a time span: `2026-11-21` means that the page changed at some time on that day. For a
copy, a span has three cases:

1. The copy is older than the whole span: the page has changed since.
2. The copy is newer than the whole span: the date does not make it stale.
3. The copy was made inside the span: it may or may not have the change. More visits during the span
   do not help. After it, one visit is enough, because the new copy is newer than the span (case 2).
   For a span of a minute or less there is no wait: a wasted visit costs less than reading the
   document twice.

A span that begins in the future is ignored: a clock is wrong, or the date means something else. If
it begins at most `CLOCK_TOLERANCE_S` ahead, the page has changed just now.

Source: Date and Time Formats, W3C note of 1997; RFC 3339; RFC 822 (feeds).
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple

from crawld.core.units import DAY_S

CLOCK_TOLERANCE_S = 300.0
"""How far ahead of our clock a date may be before it is ignored, seconds."""

SHORT_SPAN_S = 60.0
"""Spans up to this length count as a single time, seconds."""

MAX_DATE_LENGTH = 64

_W3C = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?"
    r"\s*(Z|z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.ASCII,
).fullmatch


class TimeSpan(NamedTuple):
    """A span of time in which something happened, Unix seconds; `end` is exclusive."""

    first: float
    end: float


class ListedPage(NamedTuple):
    """The entry of one page in a document.

    Attributes:
        url: canonical URL.
        changed: when it last changed; None if not given.
        every_s: stated interval between changes; None if not given.
    """

    url: str
    changed: TimeSpan | None = None
    every_s: float | None = None


class ChangeBounds(NamedTuple):
    """Bounds that show which copies a date makes stale.

    Attributes:
        first_at: earliest time of the change, Unix seconds.
        last_at: copies made before this time lack the change, Unix seconds.
    """

    first_at: float
    last_at: float


def change_bounds(changed: TimeSpan, now: float) -> ChangeBounds | None:
    """Return which copies the date of a page makes stale; None if the date is ignored.

    >>> day = TimeSpan(86_400.0, 172_800.0)
    >>> change_bounds(day, 180_000.0)
    ChangeBounds(first_at=86400.0, last_at=172800.0)
    >>> change_bounds(day, 100_000.0)
    ChangeBounds(first_at=86400.0, last_at=86400.0)
    >>> change_bounds(TimeSpan(30.0, 31.0), 30.5), change_bounds(day, 50_000.0)
    (ChangeBounds(first_at=30.0, last_at=30.5), None)
    """
    if changed.first > now + CLOCK_TOLERANCE_S:
        return None
    if changed.first > now:
        return ChangeBounds(now, now)
    if changed.end <= now:
        return ChangeBounds(changed.first, changed.end)
    return ChangeBounds(changed.first, changed.first if is_open(changed, now) else now)


def is_open(changed: TimeSpan, now: float) -> bool:
    """Whether the span of a date has not ended, so that its meaning may still change (case 3)."""
    return changed.first <= now < changed.end > changed.first + SHORT_SPAN_S


def read_date(text: str) -> TimeSpan | None:
    """Return the span of a date; None if the text is not a date.

    Args:
        text: a W3C date of any precision, in UTC unless it has an offset, or an RFC 822 date.

    >>> read_date("1970-01-02"), read_date("1970-01-01T01:00:30+01:00")
    (TimeSpan(first=86400.0, end=172800.0), TimeSpan(first=30.0, end=31.0))
    """
    text = text.strip()
    return _read_date(text) if 4 <= len(text) <= MAX_DATE_LENGTH else None


@lru_cache(maxsize=4_096)
def _read_date(text: str) -> TimeSpan | None:
    try:
        if text[10:11] == "T" and text[16:17] == ":":
            moment = datetime.fromisoformat(text)
            first = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
            return TimeSpan(first, first + 1.0)
    except ValueError:
        pass
    try:
        match = _W3C(text)
        return _w3c(match) if match else _rfc822(text)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def _w3c(match: re.Match[str]) -> TimeSpan:
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    moment = datetime(int(year), int(month or 1), int(day or 1), tzinfo=UTC)
    if hour is None:
        return TimeSpan(moment.timestamp(), moment.timestamp() + _days(match) * DAY_S)
    # 24:00 is midnight; a leap second belongs to the minute before.
    moment += timedelta(hours=int(hour), minutes=int(minute), seconds=min(int(second or 0), 59))
    if int(hour) > 24 or int(minute) > 59:
        raise ValueError(match[0])
    first = moment.replace(tzinfo=_zone(offset)).timestamp() + float(fraction or 0.0)
    return TimeSpan(first, first + (1.0 if second else 60.0))


def _days(match: re.Match[str]) -> int:
    year, month = int(match[1]), match[2]
    if match[3]:
        return 1
    return calendar.monthrange(year, int(month))[1] if month else 365 + calendar.isleap(year)


def _zone(offset: str | None) -> timezone:
    if offset is None or offset in "Zz":
        return UTC
    digits = offset[1:].replace(":", "").ljust(4, "0")
    shift = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-shift if offset[0] == "-" else shift)


def _rfc822(text: str) -> TimeSpan:
    moment = parsedate_to_datetime(text)
    first = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return TimeSpan(first, first + 1.0)
