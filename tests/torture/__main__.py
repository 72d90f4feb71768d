"""`python -m tests.torture [--kills N] [--seed S] [--point NAME]... [--json FILE]`.

Each kill: a fresh copy of a file, a process that works on it, SIGKILL at a drawn place of a named
point, then the checks of what is left, the same work again to its end, and the checks once more.
Exits with 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

from crawld.store.engine import migrate
from tests.torture import points, work
from tests.torture.checks import CHECKS, Left

MOST_TRIES = 30
"""Draws of a place that the work does not reach, one after the other."""


class Campaign:
    """Kills at the points in turn.

    Attributes:
        kills: how many processes were killed, by point.
        broken: what was wrong after a kill, a line each.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._draw = random.Random(seed)
        self._full = folder / "full.db"
        # In a process of its own: threads of this one would be lost in those that it forks.
        status, lines = _run(None, self._full, 0, 0, "prepare")
        if status:
            raise SystemExit(f"the file cannot be made: {lines[-1:]}")
        self.kills: Counter[str] = Counter()
        self.reports = 0
        self.broken: list[str] = []

    def result(self) -> str:
        """Return the counts so far, as JSON."""
        counts = {
            "kills": sum(self.kills.values()),
            "by_point": dict(self.kills),
            "acknowledged": self.reports,
            "broken": self.broken,
        }
        return json.dumps(counts, indent=1)

    def kill(self, name: str) -> None:
        """Kill a process at a point once, and check what it leaves."""
        for _ in range(MOST_TRIES):
            call = self._draw.randint(1, points.POINTS[name].most_calls)
            operations = self._draw.choice((0, self._draw.randint(1, points.MOST_OPERATIONS)))
            if self._try(name, call, operations):
                self.kills[name] += 1
                return
        self.broken.append(f"{name}: no place was reached in {MOST_TRIES} draws")

    def _try(self, name: str, call: int, operations: int) -> bool:
        """Run the work once; return whether it was killed."""
        point = points.POINTS[name]
        place = self._folder / "life"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        path = place / "mirror.db"
        if point.work == "migrate":
            newest = len(migrate.migrations())
            migrate.migrate(path, upto=self._draw.randint(1, newest - 1))
        else:
            shutil.copy(self._full, path)
        status, reported = _run(point, path, call, operations)
        if status == 0 or (operations and status > 0):
            # Not reached. The last reader of a file locks it in vain at its end, which a VFS of
            # apsw raises and SQLite alone ignores; the same work without it follows each kill.
            return False
        where = f"{name} call {call} operation {operations}"
        if status != -signal.SIGKILL:
            self.broken.append(f"{where}: ended with {status}: {reported[-1:]}")
            return True
        self.reports += len(reported)
        check = CHECKS[point.work]
        self.broken += [f"{where}: {fault}" for fault in check(Left(path, reported, whole=False))]
        status, again = _run(None, path, 0, 0, point.work)
        if status != 0:
            self.broken.append(f"{where}: the work cannot go on: {status}, {again[-1:]}")
        else:
            found = check(Left(path, again, whole=True))
            self.broken += [f"{where}, afterwards: {fault}" for fault in found]
        return True


def _run(
    point: points.Point | None, path: Path, call: int, operations: int, name: str = ""
) -> tuple[int, list[str]]:
    """Do the work in a process of its own; return its end and the lines that it reported."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        code = 1
        try:
            files = None if point is None else points.install(point, call, operations)
            work.WORK[name if point is None else point.work](
                path, lambda line: _report(writing, line)
            )
            code = 0
            del files
        except BaseException as error:
            _report(writing, f"{type(error).__name__}: {error}")
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().decode().split("\n")
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), lines[:-1]


def _report(descriptor: int, line: str) -> None:
    os.write(descriptor, f"{line}\n".encode())  # at once: what is reported was acknowledged


def main() -> int:
    """Run a campaign, and print its counts."""
    parser = argparse.ArgumentParser(prog="tests.torture", description=__doc__)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--point", action="append", choices=points.POINTS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = options.point or list(points.POINTS)
    with tempfile.TemporaryDirectory(prefix="crawld-torture-") as folder:
        campaign = Campaign(Path(folder), options.seed)
        for number in range(options.kills):
            campaign.kill(names[number % len(names)])
            if options.json is not None:
                options.json.write_text(campaign.result() + "\n")
    print(campaign.result())
    return 1 if campaign.broken else 0


if __name__ == "__main__":
    sys.exit(main())
