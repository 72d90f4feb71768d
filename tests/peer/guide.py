"""Run the commands of a guide as a reader types them, with public hosts replaced by local ones.

Commands are the lines of code blocks marked `sh`. A command that lasts (a daemon, a server, a live
view) stays while the next ones run, as in another terminal, until the next daemon or the end of the
guide.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tests.peer.crawld_process import POLL_S, WAIT_S, Crawld
from tests.peer.process import ManagedProcess, run, run_forked

PROGRAMS = {"crawld": "crawld.cli.main", "crawlctl": "crawld.cli.crawlctl"}

BY_HAND = ("make ", ".venv/bin/pip ", "pip ", "python3 -m venv ")
"""Commands that install, which `test_packaging.py` and the Makefile's own run stand for."""

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LASTING = ("crawld run", "crawld serve", "crawld demo", "crawlctl top")
_LIVE = ("--follow", "--watch")


def commands_of(text: str) -> Iterator[str]:
    """Yield the commands of a guide in order, without comments."""
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            command = shlex.join(shlex.split(line, comments=True))
            if command and not command.startswith(BY_HAND):
                yield command


class GuideReader:
    """Types the commands of one guide in one folder.

    Args:
        crawld: its folder is the working directory.
        hosts: local origin by public origin: `{"https://docs.example.org": "http://127.0.0.1:80"}`.
    """

    def __init__(self, crawld: Crawld, hosts: Mapping[str, str]) -> None:
        self._crawld = crawld
        self._hosts = hosts
        self._directory = crawld.folder
        self._views: list[ManagedProcess] = []

    def type(self, command: str) -> None:
        """Run a command; one that ends must succeed, one that lasts must answer.

        Raises:
            ProcessError: a command that should last ended, or says nothing.
            AssertionError: a command failed.
        """
        for public, local in self._hosts.items():
            command = command.replace(public, local)
            # Commands about a host name it without a scheme.
            command = command.replace(_host_of(public), _host_of(local))
        program, *words = shlex.split(command)
        if program in PROGRAMS:
            arguments = [sys.executable, "-m", PROGRAMS[program], *words]
        else:
            arguments = [program, *words]
        if program == "cd":
            self._directory /= words[0]
            return
        if command.startswith("crawld mirror"):
            arguments += ["--allow-private", "--delay", "0.01"]
        if command.startswith("crawld serve") and "--listen" not in words:
            arguments += ["--listen", "127.0.0.1:0"]  # tests run side by side
        if command.startswith(_LASTING) or not {*_LIVE}.isdisjoint(words):
            self._watch(arguments, '"started"' if command.startswith("crawld run") else "\n")
        elif command.startswith("crawld mirror") and "--once" not in words:
            self._crawld.start(*arguments[3:])
            self._crawld.wait_until(lambda status: status["pages"]["visited"] > 0)
        else:
            ours = program in PROGRAMS
            directory = self._directory
            ended = run_forked(arguments, directory) if ours else run(arguments, cwd=directory)
            assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
            if command.startswith("crawld init"):
                self._free_port(Path(words[2]))

    def _free_port(self, directory: Path) -> None:
        """Let a written config listen on any free port, since tests run side by side."""
        path = self._directory / directory / "crawld.toml"
        text = path.read_text(encoding="utf-8")
        assert 'listen = "127.0.0.1:8080"' in text
        path.write_text(text.replace(":8080", ":0"), encoding="utf-8")

    def end(self) -> None:
        """End what lasts."""
        for view in self._views:
            view.end()
        self._crawld.stop()

    def _watch(self, arguments: list[str], words: str) -> None:
        """Start a view or server and wait for its first words."""
        name = f"guide-{len(self._views)}"
        view = ManagedProcess(arguments, self._directory, name=name, forked=True)
        self._views.append(view)
        for _ in range(round(WAIT_S / POLL_S)):
            if words in view.stdout.read_text() + view.stderr.read_text():
                return
            if view.exits_within(POLL_S):
                raise view.error(f"ended with {view.returncode}")
        raise view.error("says nothing")


def _host_of(origin: str) -> str:
    return urlsplit(origin).hostname or origin


def read_guide(path: Path) -> list[str]:
    """Return the commands of a file."""
    return list(commands_of(path.read_text(encoding="utf-8")))
