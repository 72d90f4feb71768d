"""Print the score of each module of a run of mutmut: `python -m tests.mutants.score [FOLDER]`.

The score is the share of the small faults that a test found, of those that were tried. A fault
that makes the tests hang counts as found; one in code that no test runs does not.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mutmut.stats import status_by_exit_code

FOUND = ("killed", "timeout", "segfault", "caught by type check")
MISSED = ("survived", "no tests")


def scores(folder: Path) -> dict[str, Counter[str]]:
    """Return the number of faults by module and status, as mutmut left them in its folder."""
    found = {}
    for path in sorted(folder.glob("crawld/**/*.meta")):
        codes = json.loads(path.read_text())["exit_code_by_key"].values()
        counts = Counter(status_by_exit_code[code] for code in codes)
        if any(counts[status] for status in (*FOUND, *MISSED)):
            name = path.relative_to(folder).as_posix().removesuffix(".py.meta")
            found[name.replace("/", ".")] = counts
    return found


def lines(found: dict[str, Counter[str]]) -> Iterable[str]:
    """Yield a line a module: found, missed, score."""
    for name, counts in found.items():
        killed, missed = (sum(counts[each] for each in kind) for kind in (FOUND, MISSED))
        yield f"{name}\t{killed} found, {missed} missed\t{killed / (killed + missed):.0%}"


if __name__ == "__main__":
    print(*lines(scores(Path(sys.argv[1] if len(sys.argv) > 1 else "mutants"))), sep="\n")
