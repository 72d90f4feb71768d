"""Detects crawler traps: URLs of the forms that servers generate without end.

Every check uses one canonical URL alone, so that a verdict needs no history and never changes. Real
pages must pass: a lost page is worse than some wasted visits. What only many URLs show, growth
without new content, is found by `crawld.core.url_growth`; `max_pages_per_host` limits the rest.

    length      longer than any page a person would link to
    segments    deeper than any site is
    repetition  one path segment, or a group of them, repeated: a relative link that appends
                itself. Empty segments count; short numbers do not (tiles, dates, shards)
    parameters  more query parameters than a form has
    calendar    a day or month far ahead of now, or a listing centuries back. An article (a date
                followed by its title) may be of any age
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_YEAR_S = 365.2425 * 86_400


@dataclass(frozen=True, slots=True)
class TrapLimits:
    """Limits beyond which a URL is a trap.

    Attributes:
        max_url_length: characters of the canonical URL.
        max_repeated_segments: times one segment may occur; a group of several segments that occurs
            this often in a row is also a trap.
        max_calendar_run: months that a dated URL may lie ahead of now.
        max_calendar_past_years: years that a dated listing (no title after the date) may lie back.
        max_pages_per_host: known pages of one host.
    """

    max_url_length: int = 2_000
    max_segments: int = 20
    max_repeated_segments: int = 3
    max_query_parameters: int = 40
    max_calendar_run: int = 24
    max_calendar_past_years: int = 250
    max_pages_per_host: int = 10_000_000


DEFAULT_LIMITS = TrapLimits()

_PATH_DATE = re.compile(
    r"/(?P<year>[12][0-9]{3})[/-](?P<month>0[1-9]|1[0-2]|[1-9])"
    r"(?:[/-](?P<day>0[1-9]|[12][0-9]|3[01]|[1-9]))?(?:/(?P<title>.*))?\Z"
)
_CALENDAR_WORD = re.compile(
    r"/(?:calendars?|events?|agenda|schedule|diary|kalender|termine|veranstaltungen"
    r"|calendrier|calendario|eventos|day|month|week)/",
    re.IGNORECASE,
)
_YEAR_NAME = re.compile(r"(?:.*[_-])?(?:year|yr|y|jahr|annee|ano)\Z", re.IGNORECASE)
_MONTH_NAME = re.compile(r"(?:.*[_-])?(?:month|mon|mo|m|monat|mois|mes)\Z", re.IGNORECASE)
_DATE_NAME = re.compile(r"(?:.*[_-])?(?:date|day|month|week|cal|calendar)\Z", re.IGNORECASE)
# Six digits alone are not parsed: 120305 may also be 12 March 2005.
_DATE_VALUE = re.compile(
    r"([12][0-9]{3})(?:-(0[1-9]|1[0-2])(?:-[0-3][0-9])?|(0[1-9]|1[0-2])[0-3][0-9])(?:T.*)?\Z"
)
_YEAR_VALUE = re.compile(r"[12][0-9]{3}\Z")
_MONTH_VALUE = re.compile(r"(?:0?[1-9]|1[0-2])\Z")


def detect_trap(url: str, limits: TrapLimits, now: float) -> str | None:
    """Return the name of the trap that a canonical URL looks like; None if it looks like a page."""
    if len(url) > limits.max_url_length:
        return "length"
    path, _, query = url[url.index("/", 8) :].partition("?")
    segments = path.split("/")[1:]
    if len(segments) > limits.max_segments:
        return "segments"
    pairs = query.split("&") if query else []
    if len(pairs) > limits.max_query_parameters:
        return "parameters"
    most = limits.max_repeated_segments
    # Most URLs repeat nothing, and comparing with a set is cheap.
    if len(set(segments)) < len(segments) and (_repeats(segments, most) or _cycles(segments, most)):
        return "repetition"
    if pairs and len(set(pairs)) < len(pairs) and max(Counter(pairs).values()) > most:
        return "repetition"
    if _far_path_date(path, limits, now) or (pairs and _far_query_date(pairs, limits, now)):
        return "calendar"
    return None


def _is_number(segment: str) -> bool:
    return len(segment) <= 3 and segment.isdigit()


def _repeats(segments: list[str], most: int) -> bool:
    counts = Counter(segments)
    return any(n > most and not _is_number(segment) for segment, n in counts.items())


def _cycles(segments: list[str], most: int) -> bool:
    """Return whether a group of two or more segments occurs `most` times in a row."""
    for period in range(2, len(segments) // most + 1):
        run = 0
        for at in range(period, len(segments)):
            run = run + 1 if segments[at] == segments[at - period] else 0
            if run == period * (most - 1) and not all(
                _is_number(segment) for segment in segments[at - period + 1 : at + 1]
            ):
                return True
    return False


def _months_from_now(year: int, month: int, now: float) -> float:
    return (year - 1970) * 12 + (month - 1) - now / _YEAR_S * 12


def _far_path_date(path: str, limits: TrapLimits, now: float) -> bool:
    found = _PATH_DATE.search(path)
    if found is None:
        return False
    word = _CALENDAR_WORD.search(path, 0, found.start() + 1) is not None
    month, title = found["month"], found["title"] or ""
    # /t/2345/10 and /t/2345/7 are pages of a thread; a month without a day must look like one.
    padded = month[0] == "0" and path[found.start("month") - 1] == "/"
    lone_month = padded or (len(month) == 2 and (word or found.start() == 0))
    if found["day"] is None and not lone_month:
        return False
    ahead = _months_from_now(int(found["year"]), int(month), now)
    if ahead > limits.max_calendar_run:
        return True
    # Without a calendar word an old number is more likely a part number than a date.
    listing = not title or title.startswith("page/")
    return word and listing and -ahead > limits.max_calendar_past_years * 12


def _far_query_date(pairs: list[str], limits: TrapLimits, now: float) -> bool:
    year = month = None
    for pair in pairs:
        name, _, value = pair.partition("=")
        if _DATE_NAME.match(name) and (date := _DATE_VALUE.match(value)):
            year, month = int(date[1]), int(date[2] or date[3])
            break
        if _YEAR_NAME.match(name) and _YEAR_VALUE.match(value):
            year = int(value)
        elif _MONTH_NAME.match(name) and _MONTH_VALUE.match(value):
            month = int(value)
    if year is None or month is None:
        return False
    ahead = _months_from_now(year, month, now)
    return not -limits.max_calendar_past_years * 12 <= ahead <= limits.max_calendar_run
