"""Real programs the end-to-end tests talk to, each run as plain processes in a directory of a test.

`nginx.py` serves directory trees, `mediawiki.py` a wiki with a history, `daemon.py` runs crawld,
crawlctl and the simulated web. What a machine must have stands in `peers.txt`; `make peers`
installs it. A test says `require_peer("nginx")` before it uses one: a missing peer skips the test
with the command that would install it, but fails it where `CI=true`, since a skipped test proves
nothing.

Rules of every harness here: ports are given by the kernel and bound before the program starts, so
that nobody can take them and the first request waits in the backlog instead of polling; a program
lives in a process group of its own, ends with its test and also if pytest is killed; whatever it
said is shown when it fails.
"""

from __future__ import annotations

import glob
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

_LIST = Path(__file__).with_name("peers.txt")


@dataclass(frozen=True, slots=True)
class Peer:
    """A program of the list: present if the command or file `there` is."""

    name: str
    there: str
    packages: tuple[str, ...]

    def path(self) -> str | None:
        """Return where it is, or None if it is missing."""
        if self.there.startswith("/"):
            return max(glob.glob(self.there), default=None)
        # Administrators' programs are not on the PATH of everybody.
        return shutil.which(self.there, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def peers() -> dict[str, Peer]:
    """Return the list by name."""
    lines = [line.split() for line in _LIST.read_text().splitlines() if not line.startswith("#")]
    return {name: Peer(name, there, tuple(pk.split(","))) for name, there, pk in lines}


def require_peer(*wanted: str | Peer) -> Path:
    """Return where the first of some programs is; skip the test (fail in CI) if any is missing."""
    known = peers()
    programs = [known[peer] if isinstance(peer, str) else peer for peer in wanted]
    if missing := [peer for peer in programs if peer.path() is None]:
        packages = " ".join(package for peer in missing for package in peer.packages)
        reason = f"{', '.join(peer.name for peer in missing)} missing: apt-get install {packages}"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason} (a missing peer fails where CI=true)", pytrace=False)
        pytest.skip(reason)
    return Path(programs[0].path() or "")
