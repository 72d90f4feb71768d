"""Run seeds until one finds a planted bug: `python -m tests.bugs.hunt SEEDS NAME`.

Runs in a copy with the bug. Prints the number of seeds that it took, 0 if none found it, and how
many of them were run.
"""

from __future__ import annotations

import sys

from crawld.universe.draw import campaign_days, draw_plan
from tests.bugs.campaign import run_seed
from tests.bugs.catalogue import BUGS


def main(seeds: str, name: str) -> None:
    """Hunt, and print the number of seeds."""
    (bug,) = (each for each in BUGS if each.patch.name == name)
    runs = 0
    for seed in range(1, int(seeds) + 1):
        if not bug.can_show(draw_plan(seed, campaign_days(seed))):
            continue
        runs += 1
        for each in run_seed(seed)["violations"]:
            if each["invariant"] in bug.invariants:
                print(f"{seed} ({runs} run)", each["invariant"], each["what"])
                return
    print(f"0 ({runs} run)")


if __name__ == "__main__":
    main(*sys.argv[1:])
