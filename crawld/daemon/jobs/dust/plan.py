"""When each origin is examined again: soon while its host grows fast, else rarely."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from crawld.core.dust.pace import LONGEST_S, SHORTEST_S, pause_s
from crawld.daemon.clock import Clock
from crawld.daemon.jobs.runner import JITTER_SHARE
from crawld.store.frontier.dust import DustOrigin

_EARLIEST: Final = 1.0 - JITTER_SHARE


class OriginPlan:
    """Plans the examinations of origins, by the monotonic clock.

    Attributes:
        every_s: time until the next run of the job.
    """

    def __init__(self, clock: Clock) -> None:
        self.every_s = SHORTEST_S
        self._clock = clock
        self._next_at = 0.0
        self._last: dict[int, tuple[float, int]] = {}
        self._due_at: dict[int, float] = {}

    def due(self, origins: Iterable[DustOrigin]) -> list[DustOrigin]:
        """Return the origins to examine: all in a run that somebody asked for."""
        now = self._clock.monotonic()
        if now < self._next_at:
            return list(origins)
        return [one for one in origins if self._due_at.get(one.origin_id, 0.0) <= now]

    def examined(self, origin: DustOrigin, asked: int) -> None:
        """Plan the next examination of an origin.

        Args:
            origin: as it was examined.
            asked: visits that the examination asked for.
        """
        now = self._clock.monotonic()
        last_at, visits = self._last.get(origin.origin_id, (now, 0))
        self._last[origin.origin_id] = now, origin.visits
        wait_s = SHORTEST_S
        if last_at < now:
            wait_s = pause_s(origin.visits, origin.visits - visits, now - last_at, asked)
        self._due_at[origin.origin_id] = now + _EARLIEST * wait_s

    def end_run(self, origins: Iterable[DustOrigin]) -> None:
        """Plan the next run; without origins it comes twice as late each time.

        Args:
            origins: all that there are; others are forgotten.
        """
        now = self._clock.monotonic()
        there = {one.origin_id for one in origins}
        self._due_at = {each: at for each, at in self._due_at.items() if each in there}
        self._last = {each: last for each, last in self._last.items() if each in there}
        if self._due_at:
            next_s = (min(self._due_at.values()) - now) / _EARLIEST
            self.every_s = min(max(next_s, SHORTEST_S), LONGEST_S)
        elif self._next_at <= now:
            self.every_s = min(2.0 * self.every_s, LONGEST_S) if self._next_at else SHORTEST_S
        self._next_at = now + _EARLIEST * self.every_s
