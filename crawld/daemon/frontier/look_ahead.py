"""Never-visited pages of one host and site: a short breadth-first look-ahead in memory.

The rest waits in the file. A page that was taken is held until its visit is recorded, so that no
refill brings it again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from crawld.core.revisit.due import MISSING_S

LOOK_AHEAD: Final = 256
"""Pages of the frontier held in memory per host and site."""


class LookAhead:
    """Never-visited pages of one host and site, in the order of their visits.

    Attributes:
        more: whether the file holds such pages beyond these.
        held: pages taken and not yet recorded; a refill must skip them.
        unordered: whether pages were added since `reorder` was last called for.
    """

    __slots__ = ("_due_at", "_grew", "_pages", "held", "more", "unordered")

    def __init__(self) -> None:
        self.more = self._grew = self.unordered = False
        self.held: set[int] = set()
        self._due_at = math.inf
        self._pages: list[int] = []  # a deque would cost 600 bytes a host

    def __len__(self) -> int:
        return len(self._pages)

    def __bool__(self) -> bool:
        """Whether there is such a page, here or in the file."""
        return bool(self._pages) or self.more

    def __iter__(self) -> Iterator[int]:
        return iter(self._pages)

    def add(self, pages: Iterable[int]) -> None:
        """Add pages just admitted; beyond the look-ahead they stay in the file."""
        for page in pages:
            if self.more or len(self._pages) >= LOOK_AHEAD:
                self.note_more()
                return
            # A refill may have read it between its commit and this call.
            if page not in self.held and page not in self._pages:
                self._pages.append(page)
                self.unordered = True

    def add_first(self, pages: Iterable[int]) -> None:
        """Add pages before all others; some may be here already."""
        first = dict.fromkeys(pages)
        self._pages = [*first, *(page for page in self._pages if page not in first)]

    def reorder(self, pages: list[int]) -> None:
        """Let pages that wait be visited in this order; others that wait come after them."""
        present, known = set(self._pages), set(pages)
        rest = [page for page in self._pages if page not in known]
        self._pages = [*(page for page in pages if page in present), *rest]

    def empty(self) -> None:
        """Let no page wait, here or in the file."""
        self.more, self._pages = False, []

    def begin_refill(self) -> None:
        """Begin to read the file; pages added from now on may be missing from what is read."""
        self._grew = False

    def note_more(self) -> None:
        """Note that the file has more never-visited pages; a refill under way may miss them."""
        self.more = self._grew = True

    def refill(self, pages: list[int], *, asked: int) -> None:
        """Add the next pages of the frontier, in breadth-first order, read since `begin_refill`.

        Args:
            pages: page numbers read from the file.
            asked: how many were asked for; fewer mean that the file has no more.
        """
        present = set(self._pages)
        fresh = [page for page in pages if page not in self.held and page not in present]
        self._pages.extend(fresh)
        self.unordered = self.unordered or bool(fresh)
        self.more = self._grew or len(pages) >= asked
        self._grew = False

    @property
    def wants_refill(self) -> bool:
        """Whether few pages are left and the file has more."""
        return self.more and len(self._pages) < LOOK_AHEAD // 4

    def take(self) -> int | None:
        """Remove and return the first page, or None; it is held."""
        if not self._pages:
            return None
        page = self._pages.pop(0)
        self.held.add(page)
        self._due_at = math.inf
        return page

    def due_at(self, now: float) -> float:
        """Return since when (Unix seconds) the first page has waited too long; ∞: it has not.

        Asked at each turn. After a page was taken the next has as long.
        """
        self._due_at = min(self._due_at, now + MISSING_S) if self._pages else math.inf
        return self._due_at if self._due_at <= now else math.inf

    def put_back(self, page: int) -> None:
        """Put a page that is held back to the front."""
        self.held.discard(page)
        self._pages.insert(0, page)
