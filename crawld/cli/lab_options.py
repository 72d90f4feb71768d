"""Dates, durations and numbers among the options of `crawld lab`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from crawld.core.units import DAY_S, YEAR_S
from crawld.errors import OperatorError

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY_S, "w": 7 * DAY_S, "y": YEAR_S}


def parse_date(text: str) -> float:
    """Return the Unix seconds of an ISO 8601 date or time; UTC without an offset.

    Raises:
        OperatorError: the text is not a date.
    """
    try:
        date = datetime.fromisoformat(text)
    except ValueError as error:
        raise OperatorError(f"{text!r} is not a date", hint="example: 2007-01-01") from error
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as 365d, 12h or 90m.

    Raises:
        OperatorError: the text is not a duration.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdwy])", text.strip())
    if match is None or float(match[1]) <= 0:
        raise OperatorError(f"{text!r} is not a duration", hint="examples: 365d, 12h, 90m, 30s")
    return float(match[1]) * _UNITS_S[match[2]]


def numbers(text: str) -> list[float]:
    """Return the numbers of a comma-separated option.

    Raises:
        OperatorError: a part is no number.
    """
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        message = f"{text!r} is not a list of numbers"
        raise OperatorError(message, hint="example: 0.1,0.3") from error
