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
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.peer.fork_server import ForkedProgram, fork_server

END_GRACE_S = 120.0
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
        forked: bool = False,
        files: Path | None = None,
    ) -> None:
        """Start a program.

        Args:
            arguments: the program and its arguments.
            directory: its working directory.
            name: name of the output files.
            environment: variables beside those of this process.
            pass_fds: descriptors it inherits.
            forked: start `python -m MODULE` by the fork server, without its imports.
            files: the directory of the output files; by default the working directory.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.stdout = (files or directory) / f"{name}.out"
        self.stderr = (files or directory) / f"{name}.err"
        words = [str(each) for each in arguments]
        variables = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | ForkedProgram
        with self.stdout.open("ab") as out, self.stderr.open("ab") as err:
            if forked:
                assert words[:2] == [sys.executable, "-m"], words
                self._process = fork_server().start(
                    words[2],
                    words[3:],
                    directory=directory,
                    environment=variables,
                    output=(out.fileno(), err.fileno()),
                )
            else:
                # setpriv requests SIGTERM on the death of pytest, then becomes the program.
                guard = [shutil.which("setpriv") or "setpriv", "--pdeathsig", "TERM"]
                self._process = subprocess.Popen(
                    [*guard, *words],
                    cwd=directory,
                    env=variables,
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


def run_forked(
    arguments: Sequence[str | Path],
    directory: Path,
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE ...` to its end by the fork server; return its output and exit code.

    Raises:
        ProcessError: it still ran after the timeout.
    """
    with tempfile.TemporaryDirectory() as folder:
        process = ManagedProcess(
            arguments,
            directory,
            name="run",
            environment=environment,
            forked=True,
            files=Path(folder),
        )
        try:
            code = process.wait(timeout_s)
        finally:
            process.end(signal.SIGKILL)
        out, err = process.stdout.read_text(), process.stderr.read_text()
    return subprocess.CompletedProcess([str(each) for each in arguments], code, out, err)
