"""Notices that a request has arrived before its response comes.

The delay of a host counts from when the server had the request, so that a slow server can be asked
as often as a fast one. A complete response header proves that it had; the kernel knows it earlier,
when the peer has acknowledged every byte. An observation counts `ARRIVAL_MARGIN_S` after the end of
sending at the earliest: a server begins with a request some time after its kernel received it, and
the gap that the server sees would be shorter by that time.

One task observes all requests under way. A response that comes before the margin costs an entry in
a heap: no system call, no task and no cancel scope.
"""

from __future__ import annotations

import fcntl
import heapq
import sys
import termios
from collections.abc import Callable
from itertools import count
from typing import Final

import trio

from crawld.net.progress import FetchPhase, Progress

ARRIVAL_MARGIN_S: Final = 0.1
"""The earliest observation, after the end of sending: on a machine with six times more work than
cores, nginx began with one request of 280 more than .05 s after the kernel had it."""

WAIT_GROWTH: Final = 1.5
"""How much later, from the end of sending, each further observation is than the one before."""

LATE_S: Final = 0.02
"""An observation that is later than this does not count: the machine is busy, perhaps the server
on it too, and the margin is waited for again."""

AllArrived = Callable[[], bool | None]
"""Whether the peer's system has acknowledged every byte sent; None: it cannot be told."""


def all_arrived(file: Callable[[], int]) -> AllArrived | None:
    """Return the check of a TCP socket; None where the system cannot tell.

    Args:
        file: returns the file descriptor of the socket, -1 once it is closed.
    """
    if sys.platform != "linux":
        return None
    unacknowledged = bytearray(4)  # an int of C

    def check() -> bool | None:
        try:
            fcntl.ioctl(file(), termios.TIOCOUTQ, unacknowledged)
        except (OSError, ValueError):
            return None
        return not any(unacknowledged)

    return check


class ArrivalWatch:
    """Observes the requests of a fetcher; without `run` it observes none."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, float, Progress, AllArrived]] = []
        self._serials = count()
        self._earlier = trio.Event()
        self._runs = False

    def watch(self, progress: Progress, check: AllArrived) -> None:
        """Observe a request that was just sent whole; sets `progress.arrived_at`."""
        if self._runs:
            self._wait(progress, check, trio.current_time(), ARRIVAL_MARGIN_S)

    async def run(self) -> None:
        """Observe until cancelled."""
        self._runs = True
        try:
            while True:
                self._earlier = trio.Event()
                with trio.move_on_at(self._waiting[0][0] if self._waiting else float("inf")):
                    await self._earlier.wait()
                self._observe(trio.current_time())
        finally:
            self._runs = False
            self._waiting.clear()

    def _observe(self, now: float) -> None:
        while self._waiting and self._waiting[0][0] <= now:
            due, _, wait_s, progress, check = heapq.heappop(self._waiting)
            if progress.phase is not FetchPhase.HEADER:
                continue  # the response came
            if now > due + LATE_S:
                self._wait(progress, check, now, ARRIVAL_MARGIN_S)
                continue
            arrived = check()
            if arrived:
                progress.arrived_at = now
            elif arrived is not None:
                self._wait(progress, check, due - wait_s, wait_s * WAIT_GROWTH)

    def _wait(self, progress: Progress, check: AllArrived, since: float, wait_s: float) -> None:
        due = since + wait_s
        if not self._waiting or due < self._waiting[0][0]:
            self._earlier.set()
        heapq.heappush(self._waiting, (due, next(self._serials), wait_s, progress, check))
