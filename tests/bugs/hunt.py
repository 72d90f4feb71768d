"""Run seeds until one breaks a named promise: `python -m tests.bugs.hunt SEEDS INVARIANT...`.

Runs in a copy with a planted bug. Prints the number of seeds that it took, 0 if none found it.
"""

from __future__ import annotations

import sys

from tests.bugs.campaign import run_seeds


def main(seeds: str, *invariants: str) -> None:
    """Hunt, and print the number of seeds."""
    for row in run_seeds(1, int(seeds)):
        found = [each for each in row["violations"] if each["invariant"] in invariants]
        if found:
            print(row["seed"], found[0]["invariant"], found[0]["what"])
            return
    print(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
