"""The named points: a function of the product, and what a process does that reaches it.

A kill comes within or after the n-th call of the function: at the k-th operation of the disk from
its begin on (writes, truncations and syncs of SQLite's files), or at once if k is 0.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import apsw

from crawld.export import atomic_file, warc
from crawld.store.engine import backup, database, group_commit, migrate
from crawld.store.replica import pages
from crawld.store.versions import delta, retention

BELOW: Final = "unix"
MOST_OPERATIONS: Final = 60


@dataclass(frozen=True, slots=True)
class Point:
    """A point at which a process can be killed.

    Attributes:
        work: name of what the process does, in `work.py`.
        module, function: where it is.
        most_calls: how many calls the work makes at least; the n-th is drawn of so many.
        applies: whether a call with these arguments counts.
    """

    work: str
    module: Any
    function: str
    most_calls: int = 12
    applies: Callable[..., bool] = lambda *arguments: True


def _commits(_: apsw.Connection, statement: str) -> bool:
    return statement == "COMMIT"


POINTS: Final[dict[str, Point]] = {
    "group-commit": Point("crawl", group_commit, "_execute", 60, _commits),
    "batch": Point("crawl", group_commit, "_run_all", 60),
    "checkpoint": Point("crawl", database, "_checkpoint"),
    "migration-copy": Point("migrate", migrate, "publish", 1),
    "migration": Point("migrate", migrate, "_apply", 2),
    "migration-statements": Point("migrate", migrate, "_run_statements", 2),
    "backup-step": Point("back_up", backup, "_step", 20),
    "backup-publish": Point("back_up", backup, "publish", 1),
    "export": Point("export", warc, "record", 100),
    "export-publish": Point("export", atomic_file.os, "link", 1),
    "prune": Point("prune", pages, "suspend"),
    "resume": Point("prune", pages, "resume_some"),
    "retention": Point("retain", retention, "apply", 4),
    "delta": Point("retain", delta, "apply", 5),
    "delta-re-basing": Point("retain", retention, "put_encodings", 4),
}


class _Counter:
    """Kills the process at an operation of the disk, once it is armed."""

    def __init__(self) -> None:
        self._left: int | None = None
        self._lock = threading.Lock()

    def arm(self, operations: int) -> None:
        """Kill at the operation of this number from now on; 0: now."""
        if not operations:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left = operations

    def count(self) -> None:
        """Count an operation, which is about to be done."""
        with self._lock:
            if self._left is not None:
                self._left -= 1
                if not self._left:
                    os.kill(os.getpid(), signal.SIGKILL)


class _Files(apsw.VFS):
    def __init__(self, counter: _Counter) -> None:
        self._counter = counter
        super().__init__("killing", BELOW, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        if name is None:
            return super().xOpen(name, flags)
        return _File(self._counter, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, counter: _Counter, name: str | apsw.URIFilename, flags: list[int]) -> None:
        super().__init__(BELOW, name, flags)
        self._counter = counter

    def xWrite(self, data: bytes, offset: int) -> None:
        self._counter.count()
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self._counter.count()
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        self._counter.count()
        super().xSync(flags)


def install(point: Point, call: int, operations: int) -> _Files | None:
    """Let this process be killed at a point; for a process that is made for it.

    Args:
        call: number of the call that arms the kill, from 1.
        operations: number of the operation of the disk from then on; 0: before the call.
    """
    counter = _Counter()
    original = getattr(point.module, point.function)
    left = [call]

    def counted(*arguments: Any, **keywords: Any) -> Any:
        if point.applies(*arguments):
            left[0] -= 1
            if not left[0]:
                counter.arm(operations)
        return original(*arguments, **keywords)

    setattr(point.module, point.function, counted)
    return _Files(counter) if operations else None
