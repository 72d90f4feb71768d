"""Programs of the harness of the benchmarks, started by the fork server: 1 s less each."""

import os
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.peer.fork_server import fork_server

STOP_S = 60.0


class ForkedChild:
    """What the tests need of `crawld.bench.process.Child`."""

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        words, variables = list(command), {"TMPDIR": str(directory)}
        if words[0] == "env":
            name, _, value = words[1].partition("=")
            variables[name] = value
            del words[:2]
        assert words[:2] == [sys.executable, "-m"], words
        self._log = directory / "output.txt"
        with self._log.open("wb") as log:
            self._program = fork_server().start(
                words[2],
                words[3:],
                directory=directory,
                environment={**os.environ, **variables},
                output=(log.fileno(), log.fileno()),
            )
        self._pidfd = os.pidfd_open(self._program.pid)

    def running(self, *, for_ms: int = 50) -> bool:
        """Wait `for_ms` for the end; return whether it still runs."""
        return not select.select([self._pidfd], [], [], for_ms / 1000)[0]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, kill it after a timeout, and return its exit code."""
        if self._pidfd >= 0:
            for each, wait_s in ((number, STOP_S), (signal.SIGKILL, None)):
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, each)
                if select.select([self._pidfd], [], [], wait_s)[0]:
                    break
            os.close(self._pidfd)
            self._pidfd = -1
        return self._program.wait()

    def output(self) -> str:
        """Return what it printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")


@contextmanager
def run_forked_child(command: Sequence[str], directory: Path) -> Iterator[ForkedChild]:
    """Run `[env NAME=VALUE] python -m MODULE ...` and kill it when the block ends."""
    child = ForkedChild(command, directory)
    try:
        yield child
    finally:
        child.stop(signal.SIGKILL)
