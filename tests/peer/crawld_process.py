"""crawld, crawlctl and the simulated web as processes of their own: to be killed, and judged.

A `Crawld` is a folder with one database; daemons are started on it one after the other, as an
operator would restart them. It counts as started once its control socket answers. Start processes
from the main thread: the guard that ends them with pytest follows the thread that started them.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from json import dumps, loads
from pathlib import Path
from typing import Any

from crawld.simweb.ledger import Ledger
from tests.peer.process import ManagedProcess, ProcessError, run

POLL_S = 0.05
WAIT_S = 60.0

_CRAWLD = (sys.executable, "-m", "crawld.cli.main")
_CRAWLCTL = (sys.executable, "-m", "crawld.cli.crawlctl")


class ControlError(AssertionError):
    """The control socket answered a request by an error: `status` and what it said."""

    def __init__(self, status: int, answer: object) -> None:
        super().__init__(f"the control socket answered {status}: {answer}")
        self.status = status
        self.answer = answer


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket; httpx would leave the socket open where nobody listens."""

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
        db: the database, where `crawld mirror` puts it by default.
        socket: the control socket, where a daemon puts it by default.
        process: the daemon started last.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.db = folder / "crawld.db"
        self.socket = folder / "crawld.sock"
        self.process: ManagedProcess | None = None
        self._starts = 0
        self._environment = {"CRAWLD_SOCKET": str(self.socket), "COLUMNS": "200"}

    def start(self, *arguments: str | Path, ready: bool = True) -> ManagedProcess:
        """Start a daemon: `start("mirror", url)`, `start("run", "-c", config)`.

        Args:
            arguments: the command line after `crawld`.
            ready: return when the control socket answers, not at once.

        Raises:
            ProcessError: it ended before the socket answered, or the socket stays silent.
        """
        self.stop()
        self._starts += 1
        self.process = ManagedProcess(
            [*_CRAWLD, *arguments],
            self.folder,
            name=f"crawld-{self._starts}",
            environment=self._environment,
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
        """Ask the control socket until the answer meets a condition, and return that answer.

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
                raise process.error(f"ended with {process.returncode}; {path} said {answer}")
        raise process.error(f"did not get there in {timeout_s:g} s; {path} said {answer}")

    def get(self, path: str) -> Any:
        """Return what the control socket answers to a GET."""
        return self.request("GET", path)

    def post(self, path: str, json: object = None) -> Any:
        """Return what the control socket answers to a POST."""
        return self.request("POST", path, json)

    def request(self, method: str, path: str, json: object = None) -> Any:
        """Return what the control socket answers.

        Raises:
            OSError: nobody listens, or it went away.
            RefusedError: it answered by an error.
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
        return run([*_CRAWLCTL, *arguments], cwd=self.folder, environment=self._environment)

    def crawld(
        self, *arguments: str | Path, timeout_s: float = WAIT_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of crawld that ends by itself: `crawld("doctor", "--db", c.db)`."""
        command = [*_CRAWLD, *arguments]
        environment = self._environment
        return run(command, cwd=self.folder, environment=environment, timeout_s=timeout_s)

    def kill(self) -> None:
        """End the daemon by SIGKILL, as a power cut would."""
        self._running().end(signal.SIGKILL)

    def terminate(self, *, timeout_s: float = WAIT_S) -> int:
        """Ask the daemon to drain and end (SIGTERM); return its exit code."""
        self._running().send(signal.SIGTERM)
        return self._running().wait(timeout_s)

    def interrupt(self, times: int = 1, *, timeout_s: float = WAIT_S) -> int:
        """Press Ctrl-C (SIGINT) so many times; return the exit code."""
        for _ in range(times):
            self._running().send(signal.SIGINT)
        return self._running().wait(timeout_s)

    def wait(self, *, timeout_s: float = WAIT_S) -> int:
        """Return the exit code of a daemon that ends by itself, such as `mirror --once`."""
        return self._running().wait(timeout_s)

    def output(self) -> str:
        """Return what the daemon started last wrote, standard output before standard error."""
        process = self._running()
        return process.stdout.read_text() + process.stderr.read_text()

    def stop(self) -> None:
        """End what still runs."""
        if self.process is not None:
            self.process.end()

    def _running(self) -> ManagedProcess:
        if self.process is None:
            raise ProcessError("no daemon was started")
        return self.process


@contextlib.contextmanager
def with_crawld(folder: Path) -> Iterator[Crawld]:
    """Give a folder to daemons; the last one is ended afterwards."""
    crawld = Crawld(folder)
    try:
        yield crawld
    finally:
        crawld.stop()


class SimWebProcess:
    """A simulated web in a process of its own.

    Attributes:
        port: where it listens, at every loopback address.
        process: the process.
    """

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._ledger = folder / "ledger.jsonl"
        self.process = ManagedProcess(
            [sys.executable, "-m", "crawld.simweb", "--ledger", self._ledger, *arguments],
            folder,
            name="simweb",
        )
        try:
            self.port = self._announced()
        except BaseException:
            self.process.end()
            raise

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """Return the URL of a path at a host."""
        return f"http://{host}:{self.port}{path}"

    def ledger(self) -> Ledger:
        """Return every request it got so far; rows are written before the answers go out."""
        return Ledger.read(self._ledger)

    def _announced(self) -> int:
        for _ in range(round(WAIT_S / POLL_S)):
            line = self.process.stdout.read_text()
            if line.startswith("PORT ") and line.endswith("\n"):
                return int(line.split()[1])
            if self.process.exits_within(POLL_S):
                break
        raise self.process.error("did not announce its port")


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
    """Run `crawld serve` on the folder's database and any free port; yields the URL it prints."""
    serving = ManagedProcess(
        [*_CRAWLD, "serve", "--db", crawld.db, "--listen", "127.0.0.1:0", *arguments],
        crawld.folder,
        name="serve",
    )
    try:
        for _ in range(round(WAIT_S / POLL_S)):
            if (said := serving.stdout.read_text()).endswith("\n"):
                break
            if serving.exits_within(POLL_S):
                raise serving.error(f"ended with {serving.returncode}")
        else:
            raise serving.error("does not say where it listens")
        yield said.strip()
    finally:
        serving.end()
