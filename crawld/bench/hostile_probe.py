"""Readers that measure how long answers take, each on a thread with a connection of its own."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_TIMEOUT_S = 60.0
_RECEIVE_BYTES = 1 << 20


@dataclass
class Probe:
    """Asks one server for targets in turn, as long as its block runs.

    A request that is not answered counts with its time so far: a server that stands still is not
    faster than a slow one.

    Args:
        connect: opens a connection.
        host: value of the Host header.
        targets: returns the targets to ask for next; asked again at the end of each round.
        every_s: pause between two requests.
    """

    connect: Callable[[], socket.socket]
    host: str
    targets: Callable[[], Sequence[str]]
    every_s: float = 0.1
    answers: list[tuple[float, float, int, str]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _asked_s: float | None = None

    def __enter__(self) -> Probe:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ask for nothing more; a request that is under way is left alone, and counts once."""
        self._stop.set()
        if self._asked_s is not None and self._thread is not None and self._thread.is_alive():
            self._thread.join(2.0)
        asked_s, self._asked_s = self._asked_s, None
        if asked_s is not None:
            took_s = time.monotonic() - asked_s
            self.answers.append((time.time() - took_s, took_s, 0, "(unanswered)"))

    def durations_ms(self, since: float, until: float) -> list[float]:
        """Return the times of the answers to requests of a period, Unix seconds."""
        return [1e3 * took_s for at, took_s, _, _ in [*self.answers] if since <= at < until]

    def slowest(self) -> str:
        """Return the target that took longest, with its time."""
        if not self.answers:
            return "nothing was asked"
        _, took_s, status, target = max(self.answers, key=lambda answer: answer[1])
        return f"{target[:80]} took {took_s:.3f} s, status {status}"

    def _run(self) -> None:
        connection: socket.socket | None = None
        for target in self._all():
            began_s = self._asked_s = time.monotonic()
            try:
                connection = connection or self.connect()
                status = _ask(connection, self.host, target)
            except OSError:
                status = 0
            took_s = time.monotonic() - began_s
            if status == 0 and connection is not None:
                connection.close()
                connection = None
            if self._stop.is_set():
                return
            self._asked_s = None
            self.answers.append((time.time() - took_s, took_s, status, target))
            if self._stop.wait(self.every_s):
                return

    def _all(self) -> Iterator[str]:
        while True:
            targets = self.targets()
            yield from targets
            if not targets and self._stop.wait(self.every_s):
                return


def over_unix(path: Path) -> Callable[[], socket.socket]:
    """Return a function that connects to a Unix socket."""

    def connect() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_TIMEOUT_S)
        connection.connect(str(path))
        return connection

    return connect


def over_tcp(port: int) -> Callable[[], socket.socket]:
    """Return a function that connects to a port of this machine."""
    return lambda: socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S)


def _ask(connection: socket.socket, host: str, target: str) -> int:
    """Request a target and read its whole answer; return the status, 0 without an answer."""
    request = f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"
    connection.sendall(request.encode("latin-1", "replace"))
    data = b""
    while b"\r\n\r\n" not in data:
        received = connection.recv(65_536)
        if not received:
            return 0
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    status = int(head.split(None, 2)[1])
    fields = head.lower().split(b"\r\n")
    length = next((line for line in fields if line.startswith(b"content-length:")), b":0")
    if b"transfer-encoding: chunked" in fields:
        return status if _read_chunks(connection, body) else 0
    left = int(length.partition(b":")[2]) - len(body)
    while left > 0:
        received = connection.recv(min(left, _RECEIVE_BYTES))
        if not received:
            return 0
        left -= len(received)
    return status


def _read_chunks(connection: socket.socket, data: bytes) -> bool:
    """Read a chunked body to its end; only its last bytes are looked at."""
    for _ in itertools.count():
        if data.endswith(b"0\r\n\r\n"):
            return True
        received = connection.recv(_RECEIVE_BYTES)
        if not received:
            return False
        data = (data + received)[-16:]
    return False
