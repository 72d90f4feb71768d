"""Ends hooks that hold the event loop, and names them while they run.

A hook on the event loop is noted before it is called: that costs two stores. A timer of this thread
looks at the note twice a second; its handler runs in the middle of the hook, and raises in it, at
each look again if the hook catches that and goes on. Its signal is one that nobody else uses:
SIGALRM belongs to the freeze watch. Python code, sleeps and Python's own regular expressions end
this way. Code in C that does not return to Python is left to the freeze watch of the daemon.

The timer runs only while a plug-in is in use.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, get_ident, get_native_id, main_thread
from time import perf_counter
from types import FrameType
from typing import Final, Protocol

from crawld.thread_timer import ThreadTimer

LOOP_LIMIT_S: Final = 2.0
"""Longest time of a hook on the event loop; other programs may take the processor meanwhile."""

LOOK_SIGNAL: Final = signal.SIGRTMIN

LOOK_S: Final = 0.5
"""How often the timer looks."""


class HookTimeoutError(BaseException):
    """A hook ran too long. No `Exception`, so that a plug-in does not catch it by accident."""


class Named(Protocol):
    """Who names what holds the event loop: the stall meter."""

    page: str | None


class LoopGuard:
    """Notes the hook that runs on the event loop.

    Attributes:
        running: label of the hook that runs on the loop now; None: none does.
        began_at: since when, seconds of `perf_counter`.
        overran: whether the hook noted last took too long, even if it returned as usual.
    """

    __slots__ = ("_limit_s", "_meter", "_thread", "_timer", "began_at", "overran", "running")

    def __init__(self, meter: Named | None = None, *, limit_s: float = LOOP_LIMIT_S) -> None:
        """Guard the hooks that are called on this thread."""
        self.running: str | None = None
        self.began_at = 0.0
        self.overran = False
        self._meter = meter
        self._limit_s = limit_s
        self._thread = get_ident()
        self._timer: ThreadTimer | None = None

    def is_here(self) -> bool:
        """Whether this thread is that of the event loop."""
        return get_ident() == self._thread

    def begin(self, label: str, now: float) -> str | None:
        """Note a hook; return what the meter named before."""
        self.began_at = now
        self.overran = False
        self.running = label
        if self._meter is None:
            return None
        before = self._meter.page
        self._meter.page = label
        return before

    def name_again(self, before: str | None, *, is_long: bool) -> None:
        """Let the meter name what it named before a hook, unless the hook was long."""
        if self._meter is not None and not is_long:
            self._meter.page = before

    @contextmanager
    def installed(self) -> Iterator[None]:
        """End hooks that take too long while the context lasts; on the main thread only."""
        if current_thread() is not main_thread():
            yield
            return
        former = signal.signal(LOOK_SIGNAL, self._look)
        timer = self._timer = ThreadTimer(LOOK_SIGNAL, get_native_id())
        timer.set(LOOK_S)
        try:
            yield
        finally:
            self._timer = None
            timer.set(0.0)
            signal.signal(LOOK_SIGNAL, signal.SIG_IGN if former is signal.SIG_DFL else former)

    def _look(self, number: int, frame: FrameType | None) -> None:
        if self._timer is not None:
            self._timer.set(LOOK_S)
        if self.running is not None and perf_counter() - self.began_at > self._limit_s:
            self.overran = True
            raise HookTimeoutError
