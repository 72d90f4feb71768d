"""What was seen of a page's changes: recorded changed_at, and visits that saw changed or unchanged.

Knows how to make any stream of timestamps a history one can compute with: sorted, unique, not in
the future, of bounded size. A wiki page with a million revisions is read chunk by chunk; beyond
`limit` changed_at only the newest are kept exactly and the older ones are counted.

Must never: trust an order, a clock or a length it was given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

CLOCK_TOLERANCE_S = 300.0
"""A change this far ahead of our clock is taken as clock skew and set to now; beyond it, a lie."""

HISTORY_LIMIT = 100_000
"""Instants kept exactly; 0.8 MB. The estimators weigh older ones with almost nothing."""

_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Observation:
    """What one visit saw.

    Attributes:
        at: instant of the visit, Unix seconds.
        changed: whether the page differs from the previous visit; False at the first visit.
        last_change_at: instant of the last change, where the server told; else None.
        interval_s: time since the previous visit, >= 0; 0 at the first visit.
    """

    at: float
    changed: bool
    last_change_at: float | None = None
    interval_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ChangeHistory:
    """Exact change changed_at of one page, fit for computing.

    Attributes:
        changed_at: Unix seconds, strictly increasing, none after the `now` of its making.
        first_at: earliest instant ever seen, also of those thinned out; `inf` without any.
        older: changes before `changed_at[0]` that were counted and not kept.
        refused: timestamps that were no changed_at: not finite, or in the future.
    """

    changed_at: FloatArray
    first_at: float
    older: int = 0
    refused: int = 0

    @property
    def changes(self) -> int:
        """Number of changes, those thinned out included."""
        return int(self.changed_at.size) + self.older


def build_history(
    timestamps: Iterable[float], *, now: float, limit: int = HISTORY_LIMIT
) -> ChangeHistory:
    """Make a history of timestamps in any order, with repeats, lies and no bound on their number.

    Memory stays at a few times `limit`: whenever more than `limit` changed_at have gathered, the
    oldest are folded into a count. A repeat of an instant already folded is counted again.

    Args:
        timestamps: Unix seconds; an array, or anything that can be iterated once.
        now: instant of reading; later timestamps are refused (`CLOCK_TOLERANCE_S` forgiven).
        limit: changed_at to keep exactly, > 0.

    Returns:
        The history, with what was folded and refused counted.
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
    """What a series of visits sees of a history; all arrays have one entry a visit but the first.

    Attributes:
        at: instant of the visit, Unix seconds.
        interval_s: time since the visit before.
        changed: whether a change fell into the interval.
        last_change_at: instant of the last change before the visit; NaN if there is none.
    """

    at: FloatArray
    interval_s: FloatArray
    changed: BoolArray
    last_change_at: FloatArray

    def observations(self, *, told: bool) -> Iterator[Observation]:
        """Yield the visits one by one; `told`: the server names the last change."""
        rows = zip(self.at, self.changed, self.last_change_at, self.interval_s, strict=True)
        for at, changed, last, interval_s in rows:
            known = float(last) if told and last == last else None
            yield Observation(float(at), bool(changed), known, float(interval_s))


def sample_visits(changed_at: FloatArray, visited_at: FloatArray) -> VisitSample:
    """Return what visits at the given changed_at see of a page that changed at `changed_at`.

    Args:
        changed_at: change changed_at, strictly increasing.
        visited_at: visit changed_at, increasing; a change at the very instant of a visit is seen.

    Returns:
        One entry for every visit after the first, which has nothing to compare with.
    """
    seen = np.searchsorted(changed_at, visited_at, side="right")
    padded = np.concatenate(([np.nan], changed_at))
    return VisitSample(visited_at[1:], np.diff(visited_at), np.diff(seen) > 0, padded[seen[1:]])
