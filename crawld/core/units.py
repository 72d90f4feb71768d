"""Units of time, in seconds."""

from __future__ import annotations

from typing import Final

MINUTE_S: Final = 60.0
HOUR_S: Final = 3_600.0
DAY_S: Final = 86_400.0
YEAR_S: Final = 365.0 * DAY_S
