"""Plant each bug in a copy, for the universe to find: `python -m tests.bugs [PART OF A NAME]...`.

Prints after how many seeds each is found. Exit status 1 if one is not found within `SEEDS`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bugs.catalogue import BUGS, Bug
from tests.mutants.mutant import copy_source

ROOT = Path(__file__).parents[2]
SEEDS = int(os.environ.get("CRAWLD_BUG_SEEDS", "500"))


def main(parts: list[str]) -> int:
    """Try the chosen bugs, print what became of each, and return the exit status."""
    chosen = [bug for bug in BUGS if not parts or any(part in bug.patch.name for part in parts)]
    found = [_seeds_to_find(bug) for bug in chosen]
    for bug, count in zip(chosen, found, strict=True):
        print(f"{count or f'more than {SEEDS}'} seeds", bug.patch.name, sep="\t")
    return 0 if all(found) else 1


def _seeds_to_find(bug: Bug) -> int | None:
    """Return after how many seeds a bug is found; None: not at all."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "source"
        copy_source(ROOT, copy)
        bug.patch.apply(copy)
        command = [sys.executable, "-m", "tests.bugs.hunt", str(SEEDS), bug.patch.name]
        env = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.run(
            command, cwd=copy, env=env, stdout=subprocess.PIPE, text=True, check=True
        )
    print(bug.patch.name, run.stdout.strip(), sep="\t", file=sys.stderr, flush=True)
    return int(run.stdout.split()[0]) or None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
