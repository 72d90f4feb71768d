"""What is told about a URL: that it was found, or what became of it; and how such news add up."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

Events = NDArray[np.uint8]

MARK_BITS: Final = 3
_MARK_MASK: Final = np.uint8((1 << MARK_BITS) - 1)
_SETS: Final = 1 << MARK_BITS
_ANNOUNCED: Final = 1 << (MARK_BITS + 1)


class SeenMark(IntEnum):
    """What is known of a URL."""

    FOUND = 0
    """Discovered, not admitted."""

    WAITING = 1
    """Admitted, not fetched."""

    PAGE = 2
    """Fetched: a row of `page`."""

    REFUSED = 3
    """Not in scope, a trap, or forbidden."""

    PURGED = 4
    """Removed by the operator, and not to come back."""


def event_of(mark: SeenMark, *, sets: bool = False, announced: bool = False) -> int:
    """Return the event of a URL as a byte.

    Args:
        mark: of a URL that is new.
        sets: whether a URL that is known takes the mark, too.
        announced: whether its finder was told already that it is new.
    """
    return int(mark) | (_SETS if sets else 0) | (_ANNOUNCED if announced else 0)


def announced(events: Events) -> Events:
    """Return events whose finder was told that the URL is new."""
    return events | np.uint8(_ANNOUNCED)


def marks_of(events: Events) -> Events:
    """Return the mark that each event gives to a new URL."""
    return events & _MARK_MASK


def sets_mark(events: Events) -> NDArray[np.bool_]:
    """Return which events give their mark to a known URL."""
    return np.asarray(events & np.uint8(_SETS) != 0)


def is_announced(events: Events) -> NDArray[np.bool_]:
    """Return which events belong to a URL that its finder takes for new."""
    return np.asarray(events & np.uint8(_ANNOUNCED) != 0)


def last_mark(events: Events) -> int | None:
    """Return the mark of a known URL after some events in order; None: it stays as it is."""
    setting = np.flatnonzero(sets_mark(events))
    return int(marks_of(events)[setting[-1]]) if len(setting) else None


def first_mark(events: Events) -> int:
    """Return the mark that a new URL has after some events in order."""
    last = last_mark(events)
    return int(marks_of(events)[0]) if last is None else last
