"""The last known state of each fetched page, as columns, and what moved since it was last read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.hosts import BIN_WORDS, Ids, Keys
from crawld.core.replica.vectors import Floats


class PageColumns(NamedTuple):
    """States of pages, one element a page.

    Attributes:
        path: key of its path.
        signature: key of its cleaned text, `NO_SIGNATURE` if there is none.
        likeness: key of the sketch of its visible text, `NO_SIGNATURE` if there is none.
        bins: the beginning of that sketch, shape (pages, `hosts.BIN_WORDS`).
        version_id: its newest copy; 0: none.
    """

    page_id: Ids
    host_id: Ids
    path: Keys
    signature: Keys
    likeness: Keys
    bins: Keys
    visited_at: Floats
    version_id: Ids

    def at(self, which: Ids | NDArray[np.bool_]) -> PageColumns:
        """Return some of the pages, by their indices or by a mask."""
        return PageColumns._make(column[which] for column in self)


class Moved(NamedTuple):
    """Pages that moved.

    Attributes:
        listed: pages that are new or have another text.
        replaced: how many of them are not new.
        recopied: hosts with a new copy of a page, ascending.
    """

    listed: PageColumns
    replaced: int
    recopied: Ids


_NONE = PageColumns(
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.uint64),
    np.zeros(0, dtype=np.uint64),
    np.zeros(0, dtype=np.uint64),
    np.zeros((0, BIN_WORDS), dtype=np.uint64),
    np.zeros(0),
    np.zeros(0, dtype=np.int64),
)


class PageTable:
    """Pages in ascending order of page_id; batches wait until they are merged."""

    def __init__(self) -> None:
        self.pages = _NONE
        self._waiting: list[PageColumns] = []

    def add(self, batch: PageColumns) -> None:
        """Add states of pages; a later state of a page replaces an earlier one."""
        self._waiting.append(batch)

    def merge(self) -> Moved:
        """Merge what waits into `pages`, in one pass over them; return what moved."""
        if not self._waiting:
            return Moved(_NONE, 0, _NONE.page_id)
        parts, self._waiting = self._waiting, []
        batch = PageColumns._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
        last = len(batch.page_id) - 1 - np.unique(batch.page_id[::-1], return_index=True)[1]
        batch, pages = batch.at(last), self.pages
        place = np.searchsorted(pages.page_id, batch.page_id)
        known = place < len(pages.page_id)
        known[known] = pages.page_id[place[known]] == batch.page_id[known]
        old, seen = pages.at(place[known]), batch.at(known)
        moved, recopied = ~known, ~known & (batch.version_id > 0)
        moved[known] = (
            (old.host_id != seen.host_id)
            | (old.path != seen.path)
            | (old.signature != seen.signature)
        )
        recopied[known] = old.version_id != seen.version_id
        for column, states in zip(pages, seen, strict=True):
            column[place[known]] = states
        if not known.all():
            self.pages = PageColumns._make(
                np.insert(column, place[~known], states, axis=0)
                for column, states in zip(pages, batch.at(~known), strict=True)
            )
        listed = batch.at(moved)
        return Moved(listed, int((moved & known).sum()), np.unique(batch.host_id[recopied]))
