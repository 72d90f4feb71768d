"""Run a program to its end and measure its cost: CPU seconds, wall seconds, peak memory.

CPU time is what the kernel charged the process and the children it waited for (`wait4`). Peak
memory is VmHWM of the running process, read every 50 ms. `ru_maxrss` is unsuitable: Linux
initializes it with the peak of the process that forked.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crawld.errors import OperatorError
from crawld.process_status import memory_mb

_POLL_MS = 50
_STOP_S = 60.0
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
_CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """Cost of a run of a program.

    Attributes:
        cpu_s: user and system time.
        wall_s: from start to end.
        peak_rss_mb: peak memory, 2^20 bytes.
        exit_code: exit code; negative for the signal that ended it.
    """

    cpu_s: float
    wall_s: float
    peak_rss_mb: float
    exit_code: int


class Child:
    """A running program; its output goes to a file in its working directory.

    Its temporary files are there too: they are removed even if it is killed.
    """

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        self.peak_rss_mb = 0.0
        self.started_s = time.monotonic()
        self._log = directory / "output.txt"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                env=_environment(directory),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._pidfd = os.pidfd_open(self._process.pid)

    def running(self, *, for_ms: int = _POLL_MS) -> bool:
        """Wait `for_ms` for the end, read the peak memory, and return whether it still runs."""
        waiting = select.poll()
        waiting.register(self._pidfd, select.POLLIN)
        ended = waiting.poll(for_ms)
        self.peak_rss_mb = max(self.peak_rss_mb, self._status_mb("VmHWM"))
        return not ended

    def rss_mb(self) -> float:
        """Return its current memory, 2^20 bytes."""
        return self._status_mb("VmRSS")

    def cpu_s(self) -> float:
        """Return its user and system time so far."""
        text = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8")
        # The name in parentheses may contain spaces; user and system time are fields 14 and 15.
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS_PER_S

    def send(self, number: signal.Signals) -> None:
        """Send a signal; do nothing if it has ended."""
        # Not `Popen.send_signal`: that would reap the process, and `wait` would miss its cost.
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> Usage:
        """Ask it to end, kill it after a timeout, and return its cost."""
        self.send(number)
        return self.wait(_STOP_S)

    def wait(self, limit_s: float) -> Usage:
        """Wait for its end and return its cost; kill it after `limit_s`."""
        until_s = time.monotonic() + limit_s
        while self.running():
            if time.monotonic() > until_s:
                self.send(signal.SIGKILL)
        wall_s = time.monotonic() - self.started_s
        _, status, spent = os.wait4(self._process.pid, 0)
        os.close(self._pidfd)
        exit_code = self._process.returncode = os.waitstatus_to_exitcode(status)
        return Usage(spent.ru_utime + spent.ru_stime, wall_s, self.peak_rss_mb, exit_code)

    def ended(self) -> bool:
        """Return whether `wait` has reaped it."""
        return self._process.returncode is not None

    def output(self) -> str:
        """Return what it printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _status_mb(self, key: str) -> float:
        return memory_mb(self._process.pid, key)


def _environment(directory: Path) -> dict[str, str]:
    """Return the environment of a measured program.

    Python keeps the bytecode of what it imports, as for any user: without it every start compiles
    hundreds of modules, and a short run measures the compiler.
    """
    kept = {name: text for name, text in os.environ.items() if name != _NO_BYTECODE}
    return kept | {"TMPDIR": str(directory)}


@contextmanager
def run_child(command: Sequence[str], directory: Path) -> Iterator[Child]:
    """Run a program and kill it, if it still runs, when the block ends."""
    child = Child(command, directory)
    try:
        yield child
    finally:
        if not child.ended():
            child.stop(signal.SIGKILL)


def measure_run(
    command: Sequence[str], directory: Path, *, limit_s: float, accept: Container[int] = (0,)
) -> Usage:
    """Run a program to its end and return its cost.

    Raises:
        OperatorError: its exit code is not accepted; the hint shows the end of its output.
    """
    with run_child(command, directory) as child:
        usage = child.wait(limit_s)
    if usage.exit_code not in accept:
        raise program_error(command[0], f"ended with {usage.exit_code}", child)
    return usage


def program_error(program: str, what: str, child: Child) -> OperatorError:
    """Return an error about a program, with the end of its output as hint."""
    last_lines = "\n".join(child.output().splitlines()[-15:])
    return OperatorError(f"{Path(program).name} {what}", hint=last_lines)
