"""Run crawld, crawlctl and the simulated web in their own processes, so that tests can kill them.

A `Crawld` is a folder with one database. Daemons are started on it one after the other, as an
operator would restart them. A daemon counts as started once its control socket answers. Start
processes from the main thread: the guard that ends them with pytest follows the starting thread.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection, HTTPException
from json import dumps, loads
from pathlib import Path
from typing import Any

from crawld.simweb.ledger import Ledger
from tests.peer.process import ManagedProcess, ProcessError, run_forked

POLL_S = 0.1
WAIT_S = 120.0
"""Longest wait of a test; a working program on an idle machine needs a tenth of it."""

_CRAWLD = (sys.executable, "-m", "crawld.cli.main")
PROMPT = (sys.executable, "-m", "tests.peer.prompt_crawld")
"""`crawld` with shorter fixed pauses; see there."""
_CRAWLCTL = (sys.executable, "-m", "crawld.cli.crawlctl")


class ControlError(AssertionError):
    """The control socket answered with an error: its `status` and `answer`."""

    def __init__(self, status: int, answer: object) -> None:
        super().__init__(f"the control socket answered {status}: {answer}")
        self.status = status
        self.answer = answer


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket; httpx would leave the socket open if nobody listens."""

    def __init__(self, path: Path) -> None:
        super().__init__("crawld", timeout=WAIT_S)
        self._path = path

    def connect(self) -> None:
        with contextlib.ExitStack() as failed:
            self.sock = failed.enter_context(socket.socket(socket.AF_UNIX))
            self.sock.settimeout(self.timeout)
            self.sock.connect(str(self._path))
            failed.pop_all()


class Crawld:
    """One folder, one database, one daemon at a time.

    Attributes:
        folder: working directory of every command.
        db: the database, at the default path of `crawld mirror`.
        socket: the control socket, at the daemon's default path.
        process: the last daemon started.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.db = folder / "crawld.db"
        self.socket = folder / "crawld.sock"
        self.process: ManagedProcess | None = None
        self._starts = 0
        self._environment = {"CRAWLD_SOCKET": str(self.socket), "COLUMNS": "200"}

    def start(
        self,
        *arguments: str | Path,
        ready: bool = True,
        program: Sequence[str | Path] = _CRAWLD,
    ) -> ManagedProcess:
        """Start a daemon: `start("mirror", url)`, `start("run", "-c", config)`.

        Args:
            arguments: the command line after `crawld`.
            ready: wait until the control socket answers.
            program: what to run instead of `crawld`. It is forked too, and may change what others
                look up in modules and classes at each use.

        Raises:
            ProcessError: it ended before the socket answered, or the socket does not answer in
                time.
        """
        self.stop()
        self._starts += 1
        self.process = ManagedProcess(
            [*program, *arguments],
            self.folder,
            name=f"crawld-{self._starts}",
            environment=self._environment,
            forked=True,
        )
        if ready:
            self.wait_until(lambda _: True)
        return self.process

    def wait_until(
        self,
        condition: Callable[[Any], bool],
        path: str = "/status",
        *,
        timeout_s: float = WAIT_S,
    ) -> Any:
        """Poll the control socket until the response meets a condition, and return that response.

        Raises:
            ProcessError: the daemon ended, or the condition was not met in time.
        """
        process, answer = self._running(), None
        for _ in range(round(timeout_s / POLL_S)):
            with contextlib.suppress(OSError, HTTPException):
                answer = self.get(path)
                if condition(answer):
                    return answer
            if process.exits_within(POLL_S):
                raise process.error(f"ended with {process.returncode}; {path} answered {answer}")
        raise process.error(
            f"did not meet the condition in {timeout_s:g} s; {path} answered {answer}"
        )

    def get(self, path: str) -> Any:
        """Return the control socket's response to a GET."""
        return self.request("GET", path)

    def post(self, path: str, json: object = None) -> Any:
        """Return the control socket's response to a POST."""
        return self.request("POST", path, json)

    def request(self, method: str, path: str, json: object = None) -> Any:
        """Return the control socket's response.

        Raises:
            OSError: nobody listens, or the connection broke.
            ControlError: the response is an error.
        """
        connection = _UnixConnection(self.socket)
        with contextlib.closing(connection):
            body = None if json is None else dumps(json)
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = loads(response.read())
        if response.status >= 400:
            raise ControlError(response.status, answer)
        return answer

    def crawlctl(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run crawlctl to its end."""
        return run_forked([*_CRAWLCTL, *arguments], self.folder, environment=self._environment)

    def crawld(
        self, *arguments: str | Path, timeout_s: float = WAIT_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a crawld command that ends by itself: `crawld("doctor", "--db", c.db)`."""
        command = [*_CRAWLD, *arguments]
        environment = self._environment
        return run_forked(command, self.folder, environment=environment, timeout_s=timeout_s)

    def kill(self) -> None:
        """Kill the daemon with SIGKILL, like a power failure."""
        self._running().end(signal.SIGKILL)

    def terminate(self, *, timeout_s: float = WAIT_S) -> int:
        """Let the daemon drain and end (SIGTERM); return its exit code."""
        self._running().send(signal.SIGTERM)
        return self._running().wait(timeout_s)

    def interrupt(self, times: int = 1, *, timeout_s: float = WAIT_S) -> int:
        """Press Ctrl-C (SIGINT) `times` times; return the exit code."""
        for _ in range(times):
            self._running().send(signal.SIGINT)
        return self._running().wait(timeout_s)

    def wait(self, *, timeout_s: float = WAIT_S) -> int:
        """Return the exit code of a daemon that ends by itself, such as `mirror --once`."""
        return self._running().wait(timeout_s)

    def output(self) -> str:
        """Return the output of the last daemon, standard output before standard error."""
        process = self._running()
        return process.stdout.read_text() + process.stderr.read_text()

    def stop(self) -> None:
        """End the daemon if it runs."""
        if self.process is not None:
            self.process.end()

    def _running(self) -> ManagedProcess:
        if self.process is None:
            raise ProcessError("no daemon was started")
        return self.process


@contextlib.contextmanager
def with_crawld(folder: Path) -> Iterator[Crawld]:
    """Yield a folder to run daemons in; end the last one afterwards."""
    crawld = Crawld(folder)
    try:
        yield crawld
    finally:
        crawld.stop()


class SimWebProcess:
    """A simulated web in its own process, on one port of every loopback address."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._ledger = folder / "ledger.jsonl"
        self.process = ManagedProcess(
            [sys.executable, "-m", "crawld.simweb", "--ledger", self._ledger, *arguments],
            folder,
            name="simweb",
            forked=True,
        )
        try:
            self.port = int(_first_line(self.process).removeprefix("PORT "))
        except BaseException:
            self.process.end()
            raise

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """Return the URL of a path at a host."""
        return f"http://{host}:{self.port}{path}"

    def ledger(self) -> Ledger:
        """Return all requests so far; a row is written before its response is sent."""
        return Ledger.read(self._ledger)


def _first_line(process: ManagedProcess) -> str:
    """Wait until a server has printed a line, which says where it listens; return the line."""
    for _ in range(round(WAIT_S / POLL_S)):
        if (output := process.stdout.read_text()).endswith("\n"):
            return output.strip()
        if process.exits_within(POLL_S):
            raise process.error(f"ended with {process.returncode}")
    raise process.error("does not say where it listens")


@contextlib.contextmanager
def with_simweb(folder: Path, *arguments: str) -> Iterator[SimWebProcess]:
    """Run `python -m crawld.simweb` with these arguments and a ledger in a folder."""
    web = SimWebProcess(folder, *arguments)
    try:
        yield web
    finally:
        web.process.end()


@contextlib.contextmanager
def with_serve(crawld: Crawld, *arguments: str | Path) -> Iterator[str]:
    """Run `crawld serve` on the folder's database and a free port; yield the URL it prints."""
    serving = ManagedProcess(
        [*_CRAWLD, "serve", "--db", crawld.db, "--listen", "127.0.0.1:0", *arguments],
        crawld.folder,
        name="serve",
        forked=True,
    )
    try:
        yield _first_line(serving)
    finally:
        serving.end()
