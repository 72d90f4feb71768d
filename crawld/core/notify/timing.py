"""When a rule of notification sends its digest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

LAST_TIME = 250_000_000_000.0
"""In the year 9892, Unix seconds: a clock beyond it counts as this."""


def next_digest(when: str, now: float, *, daily_at: str = "00:00", zone: str = "UTC") -> float:
    """Return when the digest is due that takes an event of now, Unix seconds.

    Args:
        when: `at once`, `hourly` (at the full hour of the zone) or `daily`.
        now: Unix seconds.
        daily_at: time of day `HH:MM` in the zone; a time that summer time skips is later by as
            much, one that it repeats is the first.
    """
    if when == "at once":
        return now
    tz = UTC if zone == "UTC" else ZoneInfo(zone)
    local = datetime.fromtimestamp(min(max(now, 0.0), LAST_TIME), tz)
    if when == "hourly":
        # Counted from the last full hour, since local time may jump in between.
        past_s = local.minute * 60 + local.second + local.microsecond / 1e6
        return local.timestamp() - past_s + 3_600.0
    hour, minute = (int(part) for part in daily_at.split(":"))
    due = local.replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
    while due.timestamp() <= local.timestamp():
        due = (due + timedelta(days=1)).replace(fold=0)
    return due.timestamp()
