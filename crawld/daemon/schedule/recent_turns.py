"""The turns of the last hour that sent a request: a count per minute, and the newest in full."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Final, NamedTuple

from crawld.core.units import MINUTE_S

MINUTES: Final = 60
"""Minutes that are counted."""

KEPT: Final = 4_096
"""Turns that are kept in full, of all hosts together: 0.5 MB."""


class TurnSpan(NamedTuple):
    """A turn of a host: from its start to its end (trio clock)."""

    host: str
    began_at: float
    ended_at: float


class RecentTurns:
    """Remembers turns; times are those of trio's clock."""

    def __init__(self) -> None:
        self._spans: deque[TurnSpan] = deque(maxlen=KEPT)
        self._counts = [0] * MINUTES
        self._minute = -1

    def add(self, host: str, began_at: float, ended_at: float) -> None:
        """Remember a turn that ends now."""
        self._spans.append(TurnSpan(host, began_at, ended_at))
        minute = int(ended_at // MINUTE_S)
        if minute != self._minute:
            self._forget(minute)
        self._counts[minute % MINUTES] += 1

    def of_host(self, host: str, limit: int) -> list[TurnSpan]:
        """Return the newest turns of a host that are remembered, the oldest first."""
        found = []
        for span in reversed(self._spans):
            if span.host == host:
                found.append(span)
                if len(found) == limit:
                    break
        return found[::-1]

    def by_host(self, hosts: Collection[str], limit: int) -> dict[str, list[TurnSpan]]:
        """Return the newest turns of some hosts that are remembered, the newest first."""
        found: dict[str, list[TurnSpan]] = {host: [] for host in hosts}
        for span in reversed(self._spans):
            spans = found.get(span.host)
            if spans is not None and len(spans) < limit:
                spans.append(span)
        return found

    def per_minute(self, now: float) -> list[int]:
        """Return the turns of each of the last `MINUTES` minutes, the one under way last."""
        minute = int(now // MINUTE_S)
        self._forget(minute)
        return [self._counts[each % MINUTES] for each in range(minute - MINUTES + 1, minute + 1)]

    def per_s(self, now: float, window_s: float = MINUTE_S) -> float:
        """Return the turns per second over the last seconds."""
        since, count = now - window_s, 0
        for span in reversed(self._spans):
            if span.ended_at < since:
                return count / window_s
            count += 1
        # All that is remembered is younger than the window.
        if len(self._spans) < KEPT:
            return count / window_s
        return count / max(now - self._spans[0].ended_at, 1e-3)

    def _forget(self, minute: int) -> None:
        """Begin a minute: clear it and those without a turn before it."""
        for each in range(max(self._minute + 1, minute - MINUTES + 1), minute + 1):
            self._counts[each % MINUTES] = 0
        self._minute = minute
