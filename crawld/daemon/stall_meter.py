"""Measure how long the event loop stands still, and what held it.

The loop stands still for a pass: from the time it has asked the system what is ready until it asks
again. A pass runs one step of every task that is ready; its longest step is blamed. The loop also
stands still when it wakes later than it asked for, since a thread holds the lock of the
interpreter; then what the threads analyse is blamed.

The meter is a trio instrument: 0.7 µs per step of a task and 1.7 µs per pass. A visit has 13 steps
and half a pass, so it costs 0.4 % of the crawl.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog
import trio

log = structlog.get_logger(__name__)

LOGGED_S: Final = 1.0
"""A stall this long is logged."""

NOTED_S: Final = 0.005
"""Shorter steps are not described, since that costs more than the measurement."""

WINDOW_S: Final = 300.0
"""The recent past is between one and two of these."""

BEAT_S: Final = 0.25
"""Longest sleep of the loop, so that a late wake-up is noticed."""

MAX_TEXT: Final = 300
"""Characters kept of a description: a URL may have 8,000."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A time when the event loop stood still.

    Attributes:
        duration_s: how long.
        by: the task whose step was the longest, and the page it analysed, if any.
    """

    duration_s: float = 0.0
    by: str = ""


NO_STALL: Final = Stall()


class StallMeter(trio.abc.Instrument):
    """Measures the passes of the event loop that it is installed in.

    Attributes:
        passes: passes so far.
        page: the page that the step under way analyses; set by the analyser.
        longest: the longest stall since `forget`.
    """

    def __init__(self) -> None:
        self.passes = 0
        self.page: str | None = None
        self.longest = NO_STALL
        self._on_threads: dict[int, str] = {}
        self._serial = 0
        self._windows = [NO_STALL, NO_STALL]
        self._window_ends_at = -math.inf
        self._now = trio.current_time
        self._pass_at = self._step_at = math.inf
        self._wake_at = math.inf
        self._task: trio.lowlevel.Task | None = None
        self._step = NO_STALL

    @contextmanager
    def installed(self, *, measures: bool = True) -> Iterator[None]:
        """Measure the loop while the context lasts, or only count its passes."""
        self._now = trio.lowlevel.current_clock().current_time if measures else _never
        # A hook costs at every step: trio calls those only that an instrument has.
        instrument = self if measures else _PassCounter(self)
        trio.lowlevel.add_instrument(instrument)
        try:
            yield
        finally:
            trio.lowlevel.remove_instrument(instrument)

    async def beat(self) -> None:
        """Wake the loop regularly, until cancelled."""
        while True:
            await trio.sleep(BEAT_S)
            self._turn_window(self._now())

    @contextmanager
    def on_thread(self, url: str) -> Iterator[None]:
        """Note a page while it is analysed on a thread."""
        self._serial += 1
        serial = self._serial
        self._on_threads[serial] = url
        try:
            yield
        finally:
            del self._on_threads[serial]

    def forget(self) -> None:
        """Forget what was measured so far: a start holds the loop, and nobody waits for it."""
        self.longest = NO_STALL
        self._windows = [NO_STALL, NO_STALL]

    @property
    def recent(self) -> Stall:
        """The longest stall of the last five to ten minutes."""
        self._turn_window(self._now())
        return max(self._windows, key=lambda each: each.duration_s)

    # --- what trio calls -------------------------------------------------------------------------

    def after_io_wait(self, timeout: float) -> None:
        """Begin a pass; a late wake-up is a stall."""
        now = self._now()
        if now - self._wake_at >= NOTED_S:
            self._add(Stall(now - self._wake_at, self._threads_text()), now)
        # The first step begins the pass: an automatic clock of a test jumps before it.
        self._pass_at = self._step_at = math.inf
        self.passes += 1

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Begin a step, which ends the step before it."""
        now = self._now()
        if self._step_at == math.inf:
            self._pass_at = now
        elif now - self._step_at >= NOTED_S:
            self._note_step(now)
        self._step_at = now
        self._task = task
        self.page = None

    def before_io_wait(self, timeout: float) -> None:
        """End a pass."""
        now = self._now()
        if now - self._step_at >= NOTED_S:
            self._note_step(now)
        if now - self._pass_at >= NOTED_S:
            self._add(Stall(now - self._pass_at, self._step.by), now)
        self._step, self._task, self.page = NO_STALL, None, None
        self._wake_at = now + timeout

    # --- what it keeps ---------------------------------------------------------------------------

    def _note_step(self, now: float) -> None:
        """Describe the step that has just ended, if it is the longest of its pass."""
        if now - self._step_at > self._step.duration_s:
            name = self._task.name if self._task is not None else ""
            text = f"{name}: {self.page}" if self.page else name
            self._step = Stall(now - self._step_at, text[:MAX_TEXT])

    def _threads_text(self) -> str:
        urls = ", ".join(url[:MAX_TEXT] for url in self._on_threads.values())
        return f"a thread: {urls}"[:MAX_TEXT] if urls else "a thread or the machine"

    def _add(self, stall: Stall, now: float) -> None:
        self._turn_window(now)
        if stall.duration_s <= self._windows[1].duration_s and stall.duration_s < LOGGED_S:
            return  # as nearly all
        if not stall.by:
            stall = Stall(stall.duration_s, "many short steps")
        if stall.duration_s > self._windows[1].duration_s:
            self._windows[1] = stall
        if stall.duration_s > self.longest.duration_s:
            self.longest = stall
        if stall.duration_s >= LOGGED_S:
            log.warning("loop_stalled", duration_s=round(stall.duration_s, 3), by=stall.by)

    def _turn_window(self, now: float) -> None:
        if now >= self._window_ends_at:
            stale = now >= self._window_ends_at + WINDOW_S
            self._windows = [NO_STALL if stale else self._windows[1], NO_STALL]
            self._window_ends_at = now + WINDOW_S


class _PassCounter(trio.abc.Instrument):
    """Counts the passes of a meter that measures nothing."""

    def __init__(self, meter: StallMeter) -> None:
        self._meter = meter

    def after_io_wait(self, timeout: float) -> None:
        """Count a pass."""
        self._meter.passes += 1


def _never() -> float:
    return 0.0
