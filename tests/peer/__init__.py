"""Real programs for the end-to-end tests, run as plain processes in a test's directory.

`nginx.py` serves directory trees, `mediawiki.py` runs a wiki with a history, `crawld_process.py`
runs crawld, crawlctl and the simulated web; `storm/` judges a mirror while its wiki changes.
`peers.txt` lists the programs a machine needs; `make peers` installs them. A test calls
`require_peer("nginx")` before it uses one. If a program is missing, the test is skipped with the
command that installs it; with `CI=true` it fails, because a skipped test proves nothing.

Rules for every harness here: the kernel chooses the ports and the harness binds them before the
program starts, so no other process can take them and the first request waits in the backlog
instead of polling. A program has its own process group and ends with its test, also if pytest is
killed. An error shows the program's output.
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
    """A program of `peers.txt`, present if the command or file pattern exists."""

    name: str
    pattern: str
    packages: tuple[str, ...]

    def path(self) -> str | None:
        """Return its path, or None if it is missing."""
        if self.pattern.startswith("/"):
            return max(glob.glob(self.pattern), default=None)
        # Administration programs (/usr/sbin) are not on every user's PATH.
        return shutil.which(self.pattern, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def peers() -> dict[str, Peer]:
    """Return the programs of `peers.txt` by name."""
    lines = [line.split() for line in _LIST.read_text().splitlines() if not line.startswith("#")]
    return {name: Peer(name, pattern, tuple(pk.split(","))) for name, pattern, pk in lines}


def require_peer(*wanted: str | Peer) -> Path:
    """Return the path of the first program; skip the test (in CI: fail it) if any is missing."""
    known = peers()
    programs = [known[peer] if isinstance(peer, str) else peer for peer in wanted]
    if missing := [peer for peer in programs if peer.path() is None]:
        packages = " ".join(package for peer in missing for package in peer.packages)
        reason = f"{', '.join(peer.name for peer in missing)} missing: apt-get install {packages}"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason} (a missing peer fails where CI=true)", pytrace=False)
        pytest.skip(reason)
    return Path(programs[0].path() or "")
