"""Change histories of a page: exact change times, and visits that saw "changed" or "unchanged".

`build_history` turns any stream of timestamps into a history: sorted, unique, not in the future, of
bounded size. A wiki page with a million revisions is read in chunks; only the newest `limit` times
are kept exactly, the older ones are counted.

The order, the clock and the length of the input are never trusted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from crawld.core.value_type import value_type

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

CLOCK_TOLERANCE_S = 300.0
"""A change up to this far ahead of our clock is clock skew and set to now; beyond it, refused."""

HISTORY_LIMIT = 100_000
"""Times kept exactly (0.8 MB); the estimators give older ones almost no weight."""

_CHUNK = 65_536


@value_type
class Observation:
    """What one visit saw.

    Attributes:
        at: time of the visit, Unix seconds.
        changed: whether the page differs from the previous visit; False at the first visit.
        last_change_at: time of the last change, if the server sent it; else None.
        interval_s: time since the previous visit, >= 0; 0 at the first visit.
    """

    at: float
    changed: bool
    last_change_at: float | None = None
    interval_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ChangeHistory:
    """Exact times of the changes of one page.

    Attributes:
        changed_at: Unix seconds, strictly increasing, none in the future.
        first_at: earliest change ever seen, including those only counted; `inf` without any.
        older: changes before `changed_at[0]`, counted but not kept.
        refused: timestamps that were not finite or in the future.
    """

    changed_at: FloatArray
    first_at: float
    older: int = 0
    refused: int = 0

    @property
    def changes(self) -> int:
        """Number of changes, including those only counted."""
        return int(self.changed_at.size) + self.older


def build_history(
    timestamps: Iterable[float], *, now: float, limit: int = HISTORY_LIMIT
) -> ChangeHistory:
    """Build a history from any number of timestamps, unordered, repeated or false.

    Times later than `now` (with `CLOCK_TOLERANCE_S` of tolerance) are refused. Memory stays at a
    few times `limit`: whenever there are more than `limit` times, the oldest are replaced by a
    count. A duplicate of a time that was already replaced is counted again.
    """
    kept = np.empty(0)
    first_at, older, refused = math.inf, 0, 0
    for chunk in _chunks(timestamps):
        usable = np.isfinite(chunk) & (chunk <= now + CLOCK_TOLERANCE_S)
        refused += int(chunk.size - np.count_nonzero(usable))
        kept = np.union1d(kept, np.minimum(chunk[usable], now))
        if kept.size:
            first_at = min(first_at, float(kept[0]))
        surplus = max(0, kept.size - limit)
        older += surplus
        kept = kept[surplus:]
    return ChangeHistory(kept, first_at, older, refused)


def _chunks(timestamps: Iterable[float]) -> Iterator[FloatArray]:
    if isinstance(timestamps, np.ndarray):
        for start in range(0, timestamps.size, _CHUNK):
            yield timestamps[start : start + _CHUNK].astype(np.float64)
        return
    iterator = iter(timestamps)
    while chunk := list(islice(iterator, _CHUNK)):
        yield np.array(chunk, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class VisitSample:
    """Results of a series of visits; arrays have one entry for each visit except the first.

    Attributes:
        at: time of the visit, Unix seconds.
        interval_s: time since the previous visit.
        changed: whether a change fell into the interval.
        last_change_at: time of the last change before the visit; NaN without one.
    """

    at: FloatArray
    interval_s: FloatArray
    changed: BoolArray
    last_change_at: FloatArray

    def observations(self, *, with_last_change: bool) -> Iterator[Observation]:
        """Yield the visits, on request with the time of the last change."""
        rows = zip(self.at, self.changed, self.last_change_at, self.interval_s, strict=True)
        for at, changed, last, interval_s in rows:
            known = float(last) if with_last_change and last == last else None
            yield Observation(float(at), bool(changed), known, float(interval_s))


def sample_visits(changed_at: FloatArray, visited_at: FloatArray) -> VisitSample:
    """Return what visits see of a page; the first visit has nothing to compare with.

    Both times increase. A change at the same time as a visit is seen.
    """
    seen = np.searchsorted(changed_at, visited_at, side="right")
    padded = np.concatenate(([np.nan], changed_at))
    return VisitSample(visited_at[1:], np.diff(visited_at), np.diff(seen) > 0, padded[seen[1:]])
