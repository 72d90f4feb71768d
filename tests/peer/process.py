"""Run processes in a test: in their own group, ended reliably, with their output kept.

A process ends in one of three ways: by itself, by `end()` (a signal, a grace period, then SIGKILL
for its group), or with pytest, however that ends: the kernel sends it SIGTERM (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

END_GRACE_S = 60.0
SHOWN_BYTES = 8000


class ProcessError(AssertionError):
    """A program did not do what the test needs; the message shows its output."""


class ManagedProcess:
    """A process and its output files.

    Attributes:
        pid: its process id, also the id of its group.
        stdout: file with its standard output.
        stderr: file with its standard error.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        directory: Path,
        *,
        name: str,
        environment: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.stdout = directory / f"{name}.out"
        self.stderr = directory / f"{name}.err"
        # setpriv requests SIGTERM on the death of pytest, then becomes the program.
        guard = [shutil.which("setpriv") or "setpriv", "--pdeathsig", "TERM"]
        with self.stdout.open("ab") as out, self.stderr.open("ab") as err:
            self._process = subprocess.Popen(
                [*guard, *map(str, arguments)],
                cwd=directory,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self._pidfd = os.pidfd_open(self.pid)

    @property
    def returncode(self) -> int | None:
        """Exit code (negative for a signal); None while it runs."""
        return self._reap() if self.exits_within(0) else None

    def exits_within(self, timeout_s: float) -> bool:
        """Wait for its end or the timeout; return whether it ended."""
        if self._pidfd < 0:
            return True
        return bool(select.select([self._pidfd], [], [], timeout_s)[0])

    def send(self, number: int) -> None:
        """Send a signal to the process only, like `kill`."""
        if self._pidfd >= 0 and not self.exits_within(0):
            os.kill(self.pid, number)

    def wait(self, timeout_s: float = END_GRACE_S) -> int:
        """Wait until it ends by itself, kill the rest of its group, and return its exit code.

        Raises:
            ProcessError: it still runs after the timeout.
        """
        if not self.exits_within(timeout_s):
            raise self.error(f"still runs after {timeout_s:g} s")
        return self._reap()

    def end(self, number: int = signal.SIGTERM, *, grace_s: float = END_GRACE_S) -> int:
        """Send a signal, wait, kill the rest of its group, and return its exit code."""
        self.send(number)
        self.exits_within(grace_s)
        return self._reap()

    def error(self, what: str) -> ProcessError:
        """Return an error that shows the end of its output."""
        shown = "\n".join(
            f"--- {file.name}\n{file.read_bytes()[-SHOWN_BYTES:].decode(errors='replace')}"
            for file in (self.stdout, self.stderr)
        )
        return ProcessError(f"{self.name} (pid {self.pid}) {what}\n{shown}")

    def _reap(self) -> int:
        if self._pidfd >= 0:
            # Until it is reaped, no other process can have its id or group id.
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            os.close(self._pidfd)
            self._pidfd = -1
        return self._process.wait()


def run(
    arguments: Sequence[str | Path],
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    text: str | None = None,
    timeout_s: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end with `text` as input; return its output and exit code."""
    return subprocess.run(
        [str(argument) for argument in arguments],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        input=text or "",
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
