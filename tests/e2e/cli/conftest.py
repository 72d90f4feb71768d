"""A simulated web and a daemon that mirrors it, as separate processes."""

import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.peer.in_process_command import command

__all__ = ["command"]

GUARD_S = 60.0
"""A program that hangs is killed after this time, so that its test fails."""


def until(process, stream, wanted):
    """Read lines until one contains a text, and return it."""
    guard = threading.Timer(GUARD_S, process.kill)
    guard.start()
    seen = []
    try:
        for line in stream:
            if wanted in line:
                return line
            seen.append(line)
    finally:
        guard.cancel()
    raise AssertionError(f"ended with {process.wait()}, output: {''.join(seen)}")


def end_of(process):
    """Wait until a program ends; return its stdout and stderr."""
    try:
        return process.communicate(timeout=GUARD_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@pytest.fixture(scope="session")
def simweb_port():
    """The port of a site of 30 pages, in a separate process."""
    with start("crawld.simweb", "--pages", "30", stdout=subprocess.PIPE) as process:
        yield int(until(process, process.stdout, "PORT").split()[1])
        process.terminate()


def start(module, *arguments, **options):
    """Start a module as a program."""
    return subprocess.Popen([sys.executable, "-m", module, *arguments], text=True, **options)


@dataclass
class Mirror:
    """A running daemon."""

    process: subprocess.Popen
    db: Path
    socket: Path
    url: str


@contextmanager
def mirroring(port, db):
    """Mirror the site in a separate process, slowly, so that it stays busy."""
    url = f"http://127.0.0.1:{port}/"
    arguments = ("mirror", url, "--db", str(db), "--delay", "0.5", "--depth", "9")
    with start(
        "crawld.cli.main", *arguments, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        until(process, process.stderr, "robots")  # its first response
        yield Mirror(process, db, db.with_suffix(".sock"), url)
        process.kill()
        process.communicate()


@pytest.fixture
def mirror(simweb_port, tmp_path):
    """A mirror for one test, which may stop it."""
    with mirroring(simweb_port, tmp_path / "m.db") as started:
        yield started


@pytest.fixture(scope="module")
def running(simweb_port, tmp_path_factory):
    """A mirror for all tests of a module that do not stop it."""
    with mirroring(simweb_port, tmp_path_factory.mktemp("running") / "m.db") as started:
        yield started
