"""Search a target by coverage: `python -m tests.fuzz.guided TARGET [libFuzzer options] FOLDER`."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["crawld", "tests.fuzz.targets"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Search until libFuzzer's limits, or a finding, end the process."""
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
