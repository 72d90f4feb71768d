"""Run a simulated web in its own process."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crawld.bench.process import Child, program_error, run_child

_START_S = 60.0


@contextmanager
def run_simweb(directory: Path, *arguments: str) -> Iterator[tuple[Child, int]]:
    """Run `python -m crawld.simweb ARGUMENTS` until the block ends; yield its process and port."""
    directory.mkdir(parents=True)
    with run_child([sys.executable, "-m", "crawld.simweb", *arguments], directory) as web:
        yield web, wait_port(web)


def wait_port(server: Child, limit_s: float = _START_S) -> int:
    """Return the port of a server that prints a line `PORT n` when it accepts connections.

    Raises:
        OperatorError: it ended, or printed no port in time.
    """
    until_s = time.monotonic() + limit_s
    while server.running() and time.monotonic() < until_s:
        words = server.output().split()
        if len(words) >= 2 and words[0] == "PORT":
            return int(words[1])
    raise program_error("crawld.simweb", "does not start", server)
