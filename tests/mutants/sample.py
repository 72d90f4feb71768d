"""Try a random sample of the small faults: `python -m tests.mutants.sample COUNT SEED SECONDS`.

All faults of all modules take days. A sample gives their score with its error. A fault is tried
on the tests that reach it and take at most so many seconds, as measured under the trace of
mutmut: one that only a longer test finds counts as missed, so the score is a lower bound.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from mutmut.stats import status_by_exit_code

from tests.mutants.score import FOUND

FOLDER = Path("mutants")
STATS = FOLDER / "mutmut-stats.json"
_MUTMUT = (sys.executable, "-m", "mutmut", "run")
_NO_NAME = "no.module.has.this.name"


def main(count: int, seed: int, most_s: float) -> int:
    """Try the sample; print the faults that were not found and the score."""
    if not STATS.exists():
        # Makes the faults and learns which test reaches which; then it refuses the name.
        subprocess.run([*_MUTMUT, _NO_NAME], check=False)
    keep_short_tests(STATS, most_s)
    chosen = draw(all_faults(FOLDER), count, seed)
    reached = reached_functions(STATS)
    tried = [name for name in chosen if function_of(name) in reached]
    subprocess.run([*_MUTMUT, *tried], check=True)
    print(*lines(chosen, all_faults(FOLDER), set(tried)), sep="\n")
    return 0


def keep_short_tests(stats: Path, most_s: float) -> None:
    """Make mutmut forget that longer tests reach anything."""
    value = json.loads(stats.read_text())
    seconds = value["duration_by_test"]
    value["tests_by_mangled_function_name"] = {
        function: [test for test in tests if seconds[test] <= most_s]
        for function, tests in value["tests_by_mangled_function_name"].items()
    }
    stats.write_text(json.dumps(value))


def reached_functions(stats: Path) -> set[str]:
    """Return the functions that a test reaches, as mutmut names them."""
    tests = json.loads(stats.read_text())["tests_by_mangled_function_name"]
    return {function for function, names in tests.items() if names}


def function_of(fault: str) -> str:
    """Return the function of a fault, as mutmut names both."""
    return fault.rpartition("__mutmut_")[0]


def all_faults(folder: Path) -> dict[str, int | None]:
    """Return the exit code of each fault by its name; None: not tried."""
    found: dict[str, int | None] = {}
    for path in sorted(folder.glob("crawld/**/*.meta")):
        found |= json.loads(path.read_text())["exit_code_by_key"]
    return found


def draw(faults: dict[str, int | None], count: int, seed: int) -> list[str]:
    """Return the faults of a sample, all equally likely."""
    return sorted(random.Random(seed).sample(sorted(faults), min(count, len(faults))))


def lines(chosen: list[str], codes: dict[str, int | None], tried: set[str]) -> list[str]:
    """Return the missed faults, found and missed by package, and the score with its error."""
    found, missed = Counter[str](), Counter[str]()
    result = []
    for name in chosen:
        status = status_by_exit_code[codes[name]] if name in tried else "no tests"
        package = ".".join(name.split(".")[: 3 if ".core." in name else 2])
        if status in FOUND:
            found[package] += 1
        else:
            missed[package] += 1
            result.append(f"{status}\t{name}")
    for package in sorted(found | missed):
        result.append(f"{package}\t{found[package]} found, {missed[package]} missed")
    share, number = found.total() / len(chosen), len(chosen)
    error = 1.96 * math.sqrt(share * (1.0 - share) / number)
    result.append(f"{found.total()} of {number} found: {share:.0%} ± {error:.0%}")
    return result


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
