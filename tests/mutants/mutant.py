"""A fault in one place of the source, and the tests that must find it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

COPIED = ("crawld", "tests", "migrations", "etc", "contrib", "docs")
_TESTS_FAILED = 1


@dataclass(frozen=True)
class Mutant:
    """A fault in one place of the source.

    Attributes:
        name: what the fault does to the program.
        module: path of the file, from the root of the source.
        old: text of the file that the fault replaces; it occurs once.
        new: text of the fault.
        tests: paths of the tests that must find it.
    """

    name: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> None:
        """Put the fault into the source under `root`.

        Raises:
            ValueError: the text to replace does not occur exactly once.
        """
        path = root / self.module
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.module} has no single place for it")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")

    def is_found(self, root: Path) -> bool:
        """Run the tests on the source under `root`; return whether one of them fails.

        Raises:
            ValueError: pytest could not run the tests.
        """
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        run = subprocess.run(
            [*command, *self.tests],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode not in (0, _TESTS_FAILED):
            raise ValueError(f"{self.name}: the tests did not run\n{run.stdout}{run.stderr}")
        return run.returncode == _TESTS_FAILED


def copy_source(root: Path, to: Path) -> None:
    """Copy what the tests need from the source under `root` to a new directory."""
    to.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, to / name, symlinks=True, ignore=ignored)
    for path in root.iterdir():
        if path.is_file() and path.suffix in (".toml", ".md"):
            shutil.copy(path, to)
