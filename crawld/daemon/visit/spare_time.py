"""The time that analyses may take for which nobody waits: those of first copies, and of noise."""

from __future__ import annotations

from typing import Final

from crawld.core.content.tree_memory import count_tags
from crawld.daemon.analyser import INLINE_S, cost_s

QUICK_S: Final = INLINE_S
"""Estimated time up to which an unchanged body teaches noise rules, and a first copy is analysed at
its visit: neither is worth a thread."""

SPARE_SHARE: Final = 0.02
"""Share of all time that first copies may take: eight pages a second at about 2 ms each."""

MAX_SPARE_S: Final = 0.25
"""Most unused time that is saved, and the amount at the start: a hundred pages."""


class TokenBucket:
    """A time budget that fills at a steady rate up to a limit.

    An idle crawl analyses every first copy; a busy one spends at most `SPARE_SHARE` of its time on
    them. Times are those of any clock that never goes back.
    """

    def __init__(self, now: float) -> None:
        """Start full."""
        self._left_s, self._at = MAX_SPARE_S, now

    def left_s(self, now: float) -> float:
        """Return how much may be spent; below 0 after more was spent."""
        saved_s = self._left_s + SPARE_SHARE * (now - self._at)
        self._left_s, self._at = min(saved_s, MAX_SPARE_S), now
        return self._left_s

    def spend(self, seconds: float) -> None:
        """Subtract time spent; the budget may become negative."""
        self._left_s -= seconds


def is_quick(body: bytes, weight: int = 1) -> bool:
    """Whether a body is so small that it is read although nobody waits for the result."""
    size, most_s = len(body), QUICK_S / weight
    return cost_s(size) <= most_s and cost_s(size, count_tags(body, size)) <= most_s
