"""End a process whose event loop stands still, and leave evidence of what happened.

The event loop gives a sign (a *beat*) four times a second. Two timers in C, which run while C code
holds the lock of the interpreter, expect it:

    after `STALL_S`   SIGALRM: its handler in C writes a stack into the evidence file. Only a stall
                      or a crash writes there, and a beat after a stall empties it. So a process
                      killed during a stall leaves a file that is not empty.
    after `freeze_s`  faulthandler's timer writes all stacks to standard error and ends the process
                      with exit code 1; whoever supervises it starts it again.

SIGALRM goes to a thread of its own that sleeps for ever: it interrupts no system call of the event
loop, and writing the stack of a sleeping thread reads nothing that another thread changes. A crash
in C code (SIGSEGV, SIGBUS, SIGABRT) writes all stacks into the evidence file.

Both timers count time in which the process could run: they stand while the machine is suspended and
while Ctrl-Z stops the process. A process that SIGSTOP or a debugger stops for longer than
`freeze_s` ends when it goes on, since no code of it runs at the stop.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import trio

from crawld.thread_timer import ThreadTimer
from crawld.workers import start_sleeper

BEAT_S: Final = 0.25

STALL_S: Final = 1.0
"""A step under way for so long is evidence against its page; a large page takes this long."""

LATE_S: Final = STALL_S / 2
"""A beat so late may have come just after the alarm."""

STALL_BEATS: Final = round(STALL_S / BEAT_S)

MAX_REARM_S: Final = 2.0
"""How often faulthandler's timer is set again at least, which takes 0.1 ms: it starts a thread."""

SHOWN_BYTES: Final = 8_000
"""Bytes of the evidence that are logged."""


class Evidence:
    """The file that stalls and crashes write into.

    Attributes:
        left: what the last process wrote and did not take back; empty after a kill out of the blue.
    """

    def __init__(self, path: Path) -> None:
        """Open or make the file; in a folder that cannot be written there is no evidence."""
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._file = os.open(path, flags, 0o600)
        except OSError:
            self._file = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self.left = os.pread(self._file, SHOWN_BYTES, 0).decode("utf-8", "replace")

    def fileno(self) -> int:
        """Return the file descriptor, for faulthandler."""
        return self._file

    def begin(self) -> None:
        """Delete what the last process wrote: it was dealt with."""
        self.left = ""
        self.take_back()

    def take_back(self) -> None:
        """Empty the file after a stall; does nothing before `begin`."""
        if self.left:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)

    def close(self) -> None:
        """End cleanly: delete the file, unless evidence of the last process was not dealt with.

        It stays open: the handler of a signal may still be writing.
        """
        if not self.left:
            self._path.unlink(missing_ok=True)


def evidence_path(database: Path) -> Path:
    """Return the path of the evidence beside a database."""
    return database.with_name(database.name + "-stacks")


class FreezeWatch:
    """Watches the event loop of this process; there is one in a process.

    Args:
        evidence: of this process.
        freeze_s: time without a beat after which the process ends; 0: never.
        beat: called at each beat.
    """

    def __init__(self, evidence: Evidence, freeze_s: float, beat: Callable[[], None]) -> None:
        self._evidence = evidence
        self._freeze_s = freeze_s
        self._beat = beat
        self._alarm = ThreadTimer(signal.SIGALRM, start_sleeper())

    async def run(self) -> None:
        """Watch until cancelled; the loop must run while this does."""
        with self._handlers():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._stop_without_timers)
                await self._give_signs()

    async def _give_signs(self) -> None:
        last_at = rearmed_at = trio.current_time()
        rearm_s = min(MAX_REARM_S, self._freeze_s / 4)
        self._arm()
        while True:
            await trio.sleep(BEAT_S)
            self._alarm.set(STALL_S)
            now = trio.current_time()
            if now - last_at >= LATE_S:
                self._evidence.take_back()
            if now - rearmed_at >= rearm_s:
                self._arm()
                rearmed_at = now
            last_at = now
            self._beat()

    @contextlib.contextmanager
    def _handlers(self) -> Iterator[None]:
        was_enabled = faulthandler.is_enabled()
        faulthandler.enable(self._evidence, all_threads=True)
        faulthandler.register(signal.SIGALRM, self._evidence, all_threads=False)
        try:
            yield
        finally:
            self._disarm()
            # SIGALRM stays handled, since one may be under way.
            faulthandler.disable()
            if was_enabled and sys.__stderr__ is not None:
                faulthandler.enable(sys.__stderr__)

    def _arm(self) -> None:
        self._alarm.set(STALL_S)
        if self._freeze_s:
            out = self._evidence if sys.__stderr__ is None else sys.__stderr__
            faulthandler.dump_traceback_later(self._freeze_s, exit=True, file=out)

    def _disarm(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        self._alarm.set(0.0)

    async def _stop_without_timers(self) -> None:
        """Obey Ctrl-Z with the timers off."""
        with trio.open_signal_receiver(signal.SIGTSTP) as stops:
            async for _ in stops:
                self._disarm()
                os.kill(os.getpid(), signal.SIGSTOP)
                self._arm()
