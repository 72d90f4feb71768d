"""A simulated web and a daemon that mirrors it, as separate processes."""

import sys
from contextlib import contextmanager

import pytest

from tests.peer.crawld_process import POLL_S, WAIT_S, with_crawld, with_simweb
from tests.peer.in_process_command import command
from tests.peer.process import ManagedProcess

__all__ = ["command"]


def wait_for_lines(process, file, text, count=1):
    """Wait until a program has printed lines that contain a text, and return the first ones."""
    for _ in range(round(WAIT_S / POLL_S)):
        whole_lines = file.read_text().rpartition("\n")[0].splitlines()
        if len(found := [line for line in whole_lines if text in line]) >= count:
            return found[:count]
        if process.exits_within(POLL_S):
            break
    raise process.error(f"did not print {text!r}")


@pytest.fixture
def start(cleanup, tmp_path):
    """Return a function that starts a module as a program."""

    def run(module, *arguments):
        command = [sys.executable, "-m", module, *arguments]
        process = ManagedProcess(command, tmp_path, name=f"program-{len(list(tmp_path.iterdir()))}")
        cleanup.callback(process.end)
        return process

    return run


@pytest.fixture(scope="session")
def simweb_port(tmp_path_factory):
    """The port of a site of 30 pages."""
    with with_simweb(tmp_path_factory.mktemp("web"), "--pages", "30") as web:
        yield web.port


@contextmanager
def mirroring(port, folder):
    """Mirror the site slowly, so that the daemon stays busy."""
    with with_crawld(folder) as crawld:
        crawld.url = f"http://127.0.0.1:{port}/"
        process = crawld.start("mirror", crawld.url, "--delay", "0.5", "--depth", "9")
        wait_for_lines(process, process.stderr, "robots")  # its first response
        crawld.wait_until(bool, "/log?limit=1")
        yield crawld


@pytest.fixture
def mirror(simweb_port, tmp_path):
    """A mirror for one test, which may stop it."""
    with mirroring(simweb_port, tmp_path / "mirror") as started:
        yield started


@pytest.fixture(scope="module")
def running(simweb_port, tmp_path_factory):
    """A mirror for all tests of a module that do not stop it."""
    with mirroring(simweb_port, tmp_path_factory.mktemp("running")) as started:
        yield started
