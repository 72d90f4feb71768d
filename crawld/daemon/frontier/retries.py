"""Pages that come again at an instant of their own: they failed, were held off or have gone."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Set


class RetryQueue:
    """Such pages of one host and site, the earliest instant first."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        """Begin with none."""
        self._heap: list[tuple[float, int]] = []

    def add(self, page: int, retry_at: float) -> None:
        """Take a page that is to be visited from an instant on (Unix seconds)."""
        heapq.heappush(self._heap, (retry_at, page))

    def first_at(self) -> float | None:
        """Return the earliest instant (Unix seconds); None: there are none."""
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> int | None:
        """Take the first page whose instant has come, or None."""
        if not self._heap or self._heap[0][0] > now:
            return None
        return heapq.heappop(self._heap)[1]

    def drop(self, page: int) -> bool:
        """Forget a page; returns whether it was among these."""
        kept = [each for each in self._heap if each[1] != page]
        found = len(kept) < len(self._heap)
        heapq.heapify(kept)
        self._heap = kept
        return found

    def recall(self, pages: Set[int]) -> None:
        """Let pages come at once, as far as they are among these."""
        self._heap = [(0.0 if page in pages else at, page) for at, page in self._heap]
        heapq.heapify(self._heap)

    def __iter__(self) -> Iterator[int]:
        """Return the pages, in no order."""
        return (page for _, page in self._heap)
