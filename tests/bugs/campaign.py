"""Run the universes of many seeds: `python -m tests.bugs.campaign FIRST LAST [JSON LINES]`.

One line for each seed with a violation, and a count at the end. With a file, one JSON line for each
seed is appended, and seeds that it has with the same plan are not run again: an interrupted
campaign goes on. Exit status 1 if a promise was broken, or the stated intervals of freshness hold
the truth less often than they claim, 2 for seeds that are no numbers.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from crawld.universe.draw import campaign_days, draw_plan
from crawld.universe.freshness_audit import CLAIMED_SHARE
from crawld.universe.run_universe import run_universe
from crawld.universe.scenario import plan_sha256
from tests import daemon_memory

MAX_CPU_S = 300.0
"""CPU time of one seed; one that takes longer is a finding, too."""

LEAST_SEEDS, ERRORS = 30, 3.0
"""From so many seeds on, a share of intervals below the claimed one by so many errors is short."""


def run_seed(seed: int) -> dict[str, Any]:
    """Return the result of a seed; one that ends by an exception has that as a violation."""
    days = campaign_days(seed)
    with tempfile.TemporaryDirectory(prefix="crawld-campaign-") as folder:
        try:
            result = run_universe(draw_plan(seed, days), Path(folder), max_cpu_s=MAX_CPU_S)
            return result.as_json()
        except Exception as errors:
            error: BaseException = errors
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            what = f"{type(error).__name__}: {error}"
            violation = {"invariant": "universe_failed", "at": 0.0, "what": what}
            plan = plan_sha256(draw_plan(seed, days))
            failed = {"seed": seed, "days": days, "plan_sha256": plan, "visits": 0}
            return {**failed, "violations": [violation]}
        finally:
            daemon_memory.collect()


def known_rows(done: Path) -> dict[int, dict[str, Any]]:
    """Return the results in a file, by seed; a last line that a kill has torn is left out."""
    rows: dict[int, dict[str, Any]] = {}
    for line in done.read_text().splitlines() if done.exists() else []:
        with suppress(ValueError, KeyError, TypeError):
            row = json.loads(line)
            rows[row["seed"]] = row
    return rows


def run_seeds(first: int, last: int, done: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield the results of seeds; those of a file are taken where they are of the same plan."""
    known = {} if done is None else known_rows(done)
    if done is not None and done.exists() and not done.read_text().endswith("\n"):
        with done.open("a") as file:
            file.write("\n")
    for seed in range(first, last + 1):
        row = known.get(seed)
        plan = draw_plan(seed, campaign_days(seed))
        if row is None or row.get("plan_sha256") != plan_sha256(plan):
            row = run_seed(seed)
            if done is not None:
                with done.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        yield row


class FreshnessCount:
    """How many intervals of freshness held the truth, over the seeds of a campaign.

    Attributes:
        name: of the intervals in a row.
    """

    def __init__(self, name: str = "freshness") -> None:
        self.name = name
        self._seeds: list[tuple[int, int]] = []
        self._width = 0.0

    def add(self, row: dict[str, Any]) -> None:
        """Count the intervals of a seed."""
        told = row.get(self.name)
        if told is not None and told["claims"]:
            self._seeds.append((told["claims"], told["covered"]))
            self._width += told["claims"] * told["mean_width"]

    def is_short(self) -> bool:
        """Whether fewer intervals than claimed hold the truth, beyond chance.

        The intervals of a seed depend on each other, seeds do not: the error is that of seeds.
        """
        claims = sum(each for each, _ in self._seeds)
        if len(self._seeds) < LEAST_SEEDS:
            return False
        share = sum(covered for _, covered in self._seeds) / claims
        error = math.sqrt(sum((k - share * n) ** 2 for n, k in self._seeds)) / claims
        return share + ERRORS * error < CLAIMED_SHARE

    def __str__(self) -> str:
        claims, covered = (sum(each) for each in zip(*self._seeds, strict=True))
        width = self._width / claims
        return (
            f"{self.name}: {covered} of {claims} intervals held the truth, mean width {width:.3f}"
        )

    def __bool__(self) -> bool:
        return bool(self._seeds)


def main(first: str, last: str, done: str | None = None) -> int:
    """Run the campaign and return the exit status."""
    if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        print(f"seeds are numbers, the first not after the last: not {first}, {last}")
        return 2
    began_s, seeds, broken, visits = time.process_time(), 0, 0, 0
    counts = FreshnessCount(), FreshnessCount("measured_freshness")
    for row in run_seeds(int(first), int(last), None if done is None else Path(done)):
        seeds, visits = seeds + 1, visits + row["visits"]
        for count in counts:
            count.add(row)
        found = row["violations"]
        broken += bool(found)
        for invariant in dict.fromkeys(each["invariant"] for each in found):
            each = next(each for each in found if each["invariant"] == invariant)
            place = f"--seed {row['seed']} --days {row['days']:g}"
            print(f"{place}  {each['at']:.3f} s  {invariant}: {each['what']}", flush=True)
    cpu_s = time.process_time() - began_s
    print(
        f"{seeds} seeds, {broken} with violations, {visits} visits, {cpu_s / seeds:.1f} CPU s each"
    )
    for count in filter(None, counts):
        print(count)
    return 1 if broken or any(count.is_short() for count in counts) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
