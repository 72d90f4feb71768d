"""`python -m tests.fuzz [TARGET...] [--minutes N]`: search each target for new findings.

Inputs that reach new code are kept in `.fuzz/TARGET` for the next search. An input that is a
finding is written to `tests/fuzz/found/TARGET`, where the tests try it from then on. Exits with 1
if there is one.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from tests.fuzz.targets import CORPUS, FOUND, MAX_BYTES, TARGETS

KEPT = Path(".fuzz")
SLOW_S = 20
"""CPU seconds of one input that are a finding, too."""

MOST_MB = 1_500


def main() -> int:
    """Search the targets in turn, each for its share of the time."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of: {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no target {min(unknown)!r}; there are: {', '.join(TARGETS)}")
    names = options.targets or list(TARGETS)
    share_s = max(1, round(60.0 * options.minutes / len(names)))
    return 1 if sum([_search(name, share_s) for name in names]) else 0


def _search(name: str, for_s: int) -> int:
    """Search one target; return the number of its new findings."""
    kept, found = KEPT / name, FOUND / name
    kept.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    before = set(found.iterdir())
    command = [sys.executable, "-m", "tests.fuzz.guided", name]
    command += [f"-max_total_time={for_s}", f"-max_len={MAX_BYTES}", f"-timeout={SLOW_S}"]
    command += [f"-rss_limit_mb={MOST_MB}", f"-artifact_prefix={found}/", "-print_final_stats=1"]
    # libFuzzer adds to the first directory and reads the others.
    command += [str(kept), str(CORPUS / name), str(found)]
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", ended.stderr)
    covered = re.findall(r"cov: (\d+)", ended.stderr)
    new = sorted(set(found.iterdir()) - before)
    print(
        f"{name}: {runs[1] if runs else '?'} inputs, {covered[-1] if covered else '?'} edges, "
        f"{len(new)} findings",
        flush=True,
    )
    for path in new:
        print(f"  {path}")
    if new or ended.returncode:
        print("\n".join(ended.stderr.splitlines()[-40:]))
    if not any(found.iterdir()):
        found.rmdir()
    return len(new) or bool(ended.returncode)


if __name__ == "__main__":
    sys.exit(main())
