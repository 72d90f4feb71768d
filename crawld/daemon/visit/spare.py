"""Time that visits may spend on what a job would do later.

A share of all time may be spent, and what was not spent is saved up to a limit. So a crawl that is
not in a hurry leaves nothing to the job, and one that is loses no more than the share.
"""

from __future__ import annotations

from typing import Final

SHARE: Final = 0.02
"""First copies of eight pages a second, at some 2 ms each."""

MOST_S: Final = 0.25
"""Saved at most, and there at the start: a hundred pages."""


class TokenBucket:
    """Saves and spends; instants are those of any clock that never goes back."""

    def __init__(self, now: float) -> None:
        """Start with the most there can be."""
        self._left_s, self._at = MOST_S, now

    def left_s(self, now: float) -> float:
        """Return how much may be spent at an instant; below 0 after more was spent."""
        saved_s = self._left_s + SHARE * (now - self._at)
        self._left_s, self._at = min(saved_s, MOST_S), now
        return self._left_s

    def spend(self, seconds: float) -> None:
        """Take away what was spent, though it was more than was left."""
        self._left_s -= seconds
