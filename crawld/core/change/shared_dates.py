"""Dates of last change that many pages of a host share.

The first Last-Modified of a page counts as a change at that time. If the pages of a host were put
there together, all have the date of that day, and none has changed since: a host that is an hour
old would seem to change every hour. Such a date is the beginning of a time without a change.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from crawld.core.change.record import Records

IntArray = npt.NDArray[np.int64]

WITHIN_S: Final = 2.0
"""Dates of one event differ by so much at most; servers tell whole seconds."""

LEAST_PAGES: Final = 3
LEAST_SHARE: Final = 0.1
"""So many pages, and this share of the visited ones, have a date that is shared."""


def without_shared_dates(records: Records, hosts: IntArray) -> Records:
    """Return new records in which a shared date is no change; its exposure stays.

    Args:
        records: page models, an array of `record.RECORD_DTYPE`.
        hosts: the host of each page, any numbers.
    """
    corrected = records.copy()
    first_at = records["first_at"]
    # Pages that changed since keep that evidence, which is of their own.
    only = (records["change_known"] > 0) & (records["last_change_at"] == first_at)
    only &= (records["exact_changes"] > 0.0) & (records["changed"] == 0.0)
    shared = only & (_alike(first_at, hosts) >= _least(records["visits"] > 0, hosts))
    for name in ("exact_changes", "change_known", "counts"):
        corrected[name][shared] = 0
    return corrected


def _alike(first_at: npt.NDArray[np.float64], hosts: IntArray) -> IntArray:
    """Return how many pages of its host have the date of each page, itself included."""
    if not len(hosts):
        return np.zeros(0, np.int64)
    # One axis for all hosts, on which those of two are never near.
    number = np.unique(hosts, return_inverse=True)[1]
    since_s = first_at - first_at.min()
    place = number * (float(since_s.max()) + 3.0 * WITHIN_S) + since_s
    ordered = np.sort(place)
    low = np.searchsorted(ordered, place - WITHIN_S, side="left")
    high = np.searchsorted(ordered, place + WITHIN_S, side="right")
    return np.asarray(high - low)


def _least(visited: npt.NDArray[np.bool_], hosts: IntArray) -> npt.NDArray[np.float64]:
    """Return how many pages make a date a shared one, for each page."""
    _, number, total = np.unique(hosts, return_inverse=True, return_counts=True)
    pages = np.bincount(number, visited, minlength=len(total))
    return np.asarray(np.maximum(LEAST_SHARE * pages[number], LEAST_PAGES))
