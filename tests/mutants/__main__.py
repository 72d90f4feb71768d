"""Run the tests on each named fault: `python -m tests.mutants [PART OF A NAME]...`.

Exit status 1 if a fault was not found, 2 if none has such a name.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Mutant, copy_source

ROOT = Path(__file__).parents[2]


def main(parts: list[str]) -> int:
    """Try the chosen faults, print what became of each, and return the exit status."""
    chosen = [each for each in MUTANTS if not parts or any(part in each.name for part in parts)]
    if not chosen:
        print(
            "no fault has such a name; the names are:", *(each.name for each in MUTANTS), sep="\n"
        )
        return 2
    missed = sum(not _try(mutant) for mutant in chosen)
    print(f"{len(chosen) - missed} of {len(chosen)} faults found")
    return 1 if missed else 0


def _try(mutant: Mutant) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "source"
        copy_source(ROOT, copy)
        mutant.apply(copy)
        found = mutant.is_found(copy)
    print("found" if found else "NOT FOUND", mutant.name, sep="\t", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
