"""Draws views that stay: on a terminal in place and without flicker, elsewhere in a row."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from crawld.cli.console import PIPED_COLUMNS, console, drawn_lines
from crawld.core.units import DAY_S

if TYPE_CHECKING:
    from rich.console import RenderableType

LEAST_INTERVAL_S = 0.2
MOST_INTERVAL_S = DAY_S

_OPEN = "\x1b[?1049h\x1b[?25l"  # another screen, without cursor
_CLOSE = "\x1b[?25h\x1b[?1049l"
_HOME = "\x1b[H"
_END_OF_LINE = "\x1b[K"
_END_OF_SCREEN = "\x1b[J"
_QUIT = frozenset(b"qQ\x03\x04")


class Screen:
    """Shows one view after another; from `open_screen`.

    Attributes:
        is_live: whether views replace each other on a terminal.
    """

    def __init__(self, *, is_live: bool, wake: int | None) -> None:
        self.is_live = is_live
        self._wake = wake
        self._keys = sys.stdin.fileno() if is_live and _is_terminal(sys.stdin) else None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        if not self.is_live:
            return (PIPED_COLUMNS, sys.maxsize)
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
        return (max(columns, 20), max(lines, 4))

    def draw(self, view: RenderableType, foot: str) -> None:
        """Show a view with a line below it; on a terminal the view is cut to leave room."""
        if not self.is_live:
            console().print(view)
            print(f"\n{foot}\n", flush=True)
            return
        columns, lines = self.size
        drawn, room = drawn_lines(view, columns), lines - 2
        if len(drawn) > room:
            drawn[room - 1 :] = [f"… {len(drawn) - room + 1} more lines"[:columns]]
        drawn += ["", foot[:columns]]
        # One write, and nothing is erased before it is written again.
        text = "\r\n".join(f"{line}{_END_OF_LINE}" for line in drawn)
        sys.stdout.write(f"{_HOME}{text}{_END_OF_SCREEN}")
        sys.stdout.flush()

    def wait(self, seconds: float) -> bool:
        """Wait, at most until the terminal changes its size; return whether to go on."""
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0.0:
            watched = [each for each in (self._keys, self._wake) if each is not None]
            ready, _, _ = select.select(watched, (), (), left_s)
            if self._keys is not None and self._keys in ready:
                typed = os.read(self._keys, 64)
                if not typed:
                    self._keys = None  # the terminal is gone, or its input ended
                elif not _QUIT.isdisjoint(typed):
                    return False
            if self._wake is not None and self._wake in ready:
                os.read(self._wake, 64)
                return True
        return True


def _is_terminal(stream: object) -> bool:
    return stream is not None and bool(getattr(stream, "isatty", bool)())


@contextmanager
def open_screen() -> Iterator[Screen]:
    """Yield a screen; a terminal shows what it showed before at the end, however that comes.

    The end of the output (`| head`) and Ctrl-C raise as elsewhere.
    """
    is_live = _is_terminal(sys.stdout) and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    if not is_live:
        yield Screen(is_live=False, wake=None)
        return
    with _woken_by_size() as wake, _unbuffered_keys(), _ended_by((signal.SIGTERM, signal.SIGHUP)):
        sys.stdout.write(_OPEN)
        try:
            yield Screen(is_live=True, wake=wake)
        finally:
            with suppress(OSError):
                sys.stdout.write(_CLOSE)
                sys.stdout.flush()


@contextmanager
def _woken_by_size() -> Iterator[int]:
    """Yield a descriptor that is readable when the terminal has changed its size."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.signal(signal.SIGWINCH, lambda *_: None)
    kept = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(kept)
        signal.signal(signal.SIGWINCH, before)
        os.close(reader)
        os.close(writer)


@contextmanager
def _ended_by(signals: Iterable[signal.Signals]) -> Iterator[None]:
    """Leave the block when a signal ends the process, so that the terminal is restored."""

    def end(number: int, _: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in signals}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def _unbuffered_keys() -> Iterator[None]:
    """Read keys as they are typed, without showing them; Ctrl-C keeps its meaning."""
    import termios
    import tty

    if not _is_terminal(sys.stdin):
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSANOW)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
