"""Run `crawld lab` in a process of its own: a command that plots loads 30 MB of Matplotlib."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.peer.process import run_forked


def run_lab(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Return the output and the exit code of `crawld lab ARGUMENTS`."""
    return run_forked([sys.executable, "-m", "crawld.cli.main", "lab", *arguments], folder)
