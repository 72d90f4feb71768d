"""Recorded change histories: the change times of many pages.

A file is CSV (plain or gzip) with a header that names the columns `page_id` and `changed_at` (Unix
seconds, UTC); other columns are ignored, rows may be in any order and may repeat. In memory all
times are in one flat array, page after page, so that a million changes take eight megabytes and
every query about a period is one `searchsorted` or one mask.

Invariants: inside a page the times are finite and strictly increasing; `offsets` has one entry more
than there are pages, starts at 0 and never decreases. A page may have no change at all.
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crawld.errors import OperatorError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

COLUMNS = ("page_id", "changed_at")
_FORMAT_HINT = "A history file is CSV (or .csv.gz) with the columns page_id,changed_at."


@dataclass(frozen=True, slots=True, eq=False)
class Histories:
    """Change times of many pages.

    Attributes:
        page_ids: name of each page, as in the file, in order of first appearance.
        changed_at: Unix seconds of all changes, page after page, increasing inside a page.
        offsets: int64, one more than pages; page i owns `changed_at[offsets[i]:offsets[i + 1]]`.
    """

    page_ids: tuple[str, ...]
    changed_at: FloatArray
    offsets: IntArray

    def __len__(self) -> int:
        return len(self.page_ids)

    @property
    def page_times(self) -> list[FloatArray]:
        """The change times of every page as views into `changed_at`, in page order."""
        return [self.page(index) for index in range(len(self))]

    @property
    def counts(self) -> IntArray:
        """Number of changes of every page."""
        return np.diff(self.offsets)

    def page(self, index: int) -> FloatArray:
        """Return the change times of the page at `index` as a view."""
        return self.changed_at[self.offsets[index] : self.offsets[index + 1]]

    def born_at(self) -> FloatArray:
        """Return the first change of every page; `inf` for a page that never changed."""
        born = np.full(len(self), np.inf)
        filled = self.counts > 0
        born[filled] = self.changed_at[self.offsets[:-1][filled]]
        return born

    def changes_in(self, start: float, end: float) -> IntArray:
        """Return how often each page changed in [start, end), in page order."""
        return np.diff(self._kept_offsets((self.changed_at >= start) & (self.changed_at < end)))

    def window(self, start: float, end: float) -> Histories:
        """Return the same pages with only the changes in [start, end)."""
        keep = (self.changed_at >= start) & (self.changed_at < end)
        return Histories(self.page_ids, self.changed_at[keep], self._kept_offsets(keep))

    def before(self, at: float) -> Histories:
        """Return the same pages with only the changes earlier than `at`."""
        return self.window(-math.inf, at)

    def select(self, pages: IntArray | npt.NDArray[np.bool_]) -> Histories:
        """Return the chosen pages (indices, or one boolean per page), with all their changes."""
        chosen = np.flatnonzero(pages) if pages.dtype == np.bool_ else pages
        return from_times({self.page_ids[i]: self.page(i) for i in chosen.tolist()})

    def _kept_offsets(self, keep: npt.NDArray[np.bool_]) -> IntArray:
        kept_before = np.concatenate(([0], np.cumsum(keep, dtype=np.int64)))
        return kept_before[self.offsets]


def from_times(times: Mapping[str, npt.ArrayLike]) -> Histories:
    """Build histories of the pages of a mapping, from change times in any order, with repeats.

    Raises:
        ValueError: a time is not finite.
    """
    parts = [np.unique(np.asarray(changed_at, dtype=np.float64)) for changed_at in times.values()]
    changed_at = np.concatenate(parts) if parts else np.empty(0)
    if not np.isfinite(changed_at).all():
        raise ValueError("a change time must be a finite number of seconds")
    lengths = np.array([part.size for part in parts], dtype=np.int64)
    return Histories(tuple(times), changed_at, np.concatenate(([0], np.cumsum(lengths))))


def read_histories(path: Path | str) -> Histories:
    """Read a history file.

    Args:
        path: `.csv` or `.csv.gz`, with the columns `page_id` and `changed_at`.

    Returns:
        The pages in order of first appearance, repeats removed, times sorted.

    Raises:
        OperatorError: the file is missing, damaged or has an invalid row; the message names the
            line.
    """
    source = Path(path)
    try:
        opened = gzip.open if source.suffix == ".gz" else open
        with opened(source, "rt", encoding="utf-8-sig", newline="") as text:
            return _from_rows(source, text)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise OperatorError(f"cannot read {source}: {error}", hint=_FORMAT_HINT) from error


def _from_rows(source: Path, text: Iterable[str]) -> Histories:
    index_of: dict[str, int] = {}
    pages: list[int] = []
    times: list[float] = []
    for page_id, changed_at in _rows(source, text):
        pages.append(index_of.setdefault(page_id, len(index_of)))
        times.append(changed_at)
    return _grouped(tuple(index_of), np.array(pages, np.int64), np.array(times, np.float64))


def _rows(source: Path, text: Iterable[str]) -> Iterator[tuple[str, float]]:
    rows = csv.reader(text)
    header = [name.strip() for name in next(rows, [])]
    if not set(COLUMNS) <= set(header):
        raise OperatorError(
            f"{source} line 1 lacks the columns page_id and changed_at", hint=_FORMAT_HINT
        )
    page_column, time_column = (header.index(name) for name in COLUMNS)
    for row in rows:
        if not row:
            continue
        try:
            page_id, changed_at = row[page_column].strip(), float(row[time_column])
        except (IndexError, ValueError):
            page_id, changed_at = "", math.nan
        if not page_id or not math.isfinite(changed_at):
            raise OperatorError(
                f"{source} line {rows.line_num} is not a change: {','.join(row)[:80]!r}",
                hint=_FORMAT_HINT,
            )
        yield page_id, changed_at


def _grouped(page_ids: tuple[str, ...], pages: IntArray, times: FloatArray) -> Histories:
    order = np.lexsort((times, pages))
    pages, times = pages[order], times[order]
    fresh = np.ones(pages.size, dtype=np.bool_)
    fresh[1:] = (np.diff(pages) != 0) | (np.diff(times) != 0)
    pages, times = pages[fresh], times[fresh]
    lengths = np.bincount(pages, minlength=len(page_ids))
    return Histories(page_ids, times, np.concatenate(([0], np.cumsum(lengths))))
