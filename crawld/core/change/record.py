"""The stored form of page models: one packed record for each page.

`RECORD_STRUCT` (one page, standard library) and `RECORD_DTYPE` (an array of pages, numpy) describe
the same bytes; a test compares them. A million models are one array view of the joined bytes.

Invariants: little-endian, no padding, the first byte is `VERSION`. A change of the layout needs a
new version; the old one stays readable while databases contain it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from crawld.core.change.classes import PAGE_CLASSES
from crawld.core.change.renewal import BINS

VERSION = 1

DAY_S = 86_400.0
WINDOWS_S = (DAY_S, 10 * DAY_S, 90 * DAY_S)
"""Time constants of the decayed change counts."""

MEMORY_S = 180 * DAY_S
"""Time constant of the evidence about the rate. Of 10, 90, 180, 365, 730 days and infinity, half a
year predicted the next year's rates best for wiki articles, legal terms and manual pages alike."""

CLASS_COUNT = len(PAGE_CLASSES.mean_intervals_s)

RECORD_DTYPE = np.dtype(
    [
        ("version", "u1"),
        ("change_known", "u1"),
        ("modified_kept", "<u2"),
        ("modified_broken", "<u2"),
        ("bins", "<u2", (BINS,)),
        ("visits", "<u4"),
        ("changed_visits", "<u4"),
        ("first_at", "<f8"),
        ("last_visit_at", "<f8"),
        ("last_change_at", "<f8"),
        ("exact_changes", "<f8"),
        ("exact_exposure_s", "<f8"),
        ("changed", "<f8"),
        ("changed_s", "<f8"),
        ("unchanged_s", "<f8"),
        ("counts", "<f4", (len(WINDOWS_S),)),
        ("gaps_s", "<f4", (2,)),
        ("prior_shape", "<f4"),
        ("prior_exposure_s", "<f4"),
        ("rate", "<f4"),
        ("class_weights", "<f4", (CLASS_COUNT,)),
    ]
)
"""Layout of one page; `PageModel` documents the fields."""

RECORD_STRUCT = struct.Struct(f"<BBHH{BINS}HII8d{len(WINDOWS_S) + 2 + 3 + CLASS_COUNT}f")

Records = npt.NDArray[np.void]


def is_current(packed: bytes) -> bool:
    """Whether a stored model has the current version; the next visit replaces others."""
    return len(packed) == RECORD_DTYPE.itemsize and packed[0] == VERSION


def records_of(packed: Iterable[bytes]) -> Records:
    """Return stored models (`PageModel.to_bytes`) as one array of `RECORD_DTYPE`, a writable copy.

    Raises:
        ValueError: the length or the version of an item differs.
    """
    items = list(packed)
    if any(len(item) != RECORD_DTYPE.itemsize for item in items):
        raise ValueError(f"a page model has {RECORD_DTYPE.itemsize} bytes")
    records = np.frombuffer(bytearray(b"".join(items)), dtype=RECORD_DTYPE)
    if np.any(records["version"] != VERSION):
        raise ValueError(f"a page model is of another version than {VERSION}")
    return records
