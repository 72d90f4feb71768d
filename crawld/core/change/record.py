"""The stored form of page models: one packed record for each page.

`RECORD_STRUCT` (one page, standard library) and `RECORD_DTYPE` (an array of pages, numpy) describe
the same bytes; a test compares them. A million models are one array view of the joined bytes.

Invariants: little-endian, no padding, the first byte is `VERSION`. A change of the layout needs a
new version; `upgraded` reads the former one, and the refit job writes all models in the new one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from crawld.core.change.renewal import BINS
from crawld.core.units import DAY_S

VERSION = 2

WINDOWS_S = (DAY_S, 10 * DAY_S, 90 * DAY_S)
"""Time constants of the decayed change counts."""

MEMORY_S = 180 * DAY_S
"""Time constant of the evidence about the rate. Of 10, 90, 180, 365, 730 days and infinity, half a
year predicted the next year's rates best for wiki articles, legal terms and manual pages alike.
The histogram of the intervals fades with it, too: allocations from all intervals of six years keep
wiki articles less fresh than those of the last months."""

RECORD_DTYPE = np.dtype(
    [
        ("version", "u1"),
        ("change_known", "u1"),
        ("modified_kept", "<u2"),
        ("modified_broken", "<u2"),
        ("bins", "<f4", (BINS,)),
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
    ]
)
"""Layout of one page; `PageModel` documents the fields."""

RECORD_STRUCT = struct.Struct(f"<BBHH{BINS}fII8d{len(WINDOWS_S) + 2 + 3}f")

_FORMER_VERSION = 1
_FORMER_BINS = struct.Struct(f"<{BINS}H")
_FORMER_CLASSES_BYTES = 8 * 4
"""Version 1 had whole numbers of intervals, which did not fade, and weights of eight rate classes
at its end."""

_HEAD_BYTES = 6
_FORMER_BYTES = RECORD_STRUCT.size - BINS * 4 + _FORMER_BINS.size + _FORMER_CLASSES_BYTES

Records = npt.NDArray[np.void]


def is_current(packed: bytes) -> bool:
    """Whether a stored model has the current version; the refit job replaces others."""
    return len(packed) == RECORD_DTYPE.itemsize and packed[0] == VERSION


def upgraded(packed: bytes) -> bytes:
    """Return a stored model in the current version if it has the former one; others as they are."""
    if len(packed) != _FORMER_BYTES or packed[0] != _FORMER_VERSION:
        return packed
    rest = _HEAD_BYTES + _FORMER_BINS.size
    counts = _FORMER_BINS.unpack(packed[_HEAD_BYTES:rest])
    bins = struct.pack(f"<{BINS}f", *counts)
    head = bytes([VERSION]) + packed[1:_HEAD_BYTES]
    return head + bins + packed[rest : len(packed) - _FORMER_CLASSES_BYTES]


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
