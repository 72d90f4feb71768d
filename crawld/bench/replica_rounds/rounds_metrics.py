"""The metrics of the rounds for `crawld bench replica`, each with the suffix of its web.

Each run, of one web with one seed, is a process of its own; as many run at once as there are
processors. The web of look-alikes is run twice with each seed, fully crawled and partly crawled.
Over the runs of a web counts are added, shares of counts are of the sums, and of every other figure
the worst is reported; so it is over runs of other times (`pooled_runs`).
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from crawld.bench.process import Child, program_error, run_child
from crawld.bench.replica_rounds.calibration import DECILE_NAMES, calibration_error
from crawld.bench.replica_rounds.found_copies import FOUND_NAMES
from crawld.bench.replica_rounds.round_figures import unsaved_name
from crawld.bench.replica_rounds.rounds_web import rounds_web
from crawld.bench.replica_rounds.run_rounds import RoundsScenario, run_rounds
from crawld.bench.replica_rounds.unsaved_requests import UnsavedCause
from crawld.bench.result import Metrics
from crawld.bench.run import Progress
from crawld.simweb.lookalike.web import (
    FULL,
    PARTIAL,
    LookalikeParameters,
    LookalikeWeb,
    make_lookalike_web,
)
from crawld.simweb.replica_parameters import WEBS, scale_web
from crawld.simweb.replica_web import make_web

HOSTS: Final = 800
DAYS: Final = 60.0

_QUICK_KINDS: Final = (
    *("www", "mirrors", "staging", "countries", "diverging_copies", "versions", "languages"),
    *("shops", "forks", "login_walls", "platform_copier", "small_changes", "turning_copier"),
)
_QUICK_COVERAGE: Final = 0.7
_QUICK_HOSTS: Final = 100
_QUICK_DAYS: Final = 8.0

_REPLICATED: Final = 0.3
_PAGES: Final = 20
_MODULE: Final = "crawld.bench.replica_rounds.rounds_metrics"
_TOLD_EVERY_S: Final = 15.0

_ADDED: Final = (
    *("resting_differing_pages", "declared", "wrong_verdicts", "deferred_pages"),
    *("deferred_differing_pages", "attacks", "hijacks_won", "reversed_pairs", "diverged"),
    *("savable_requests", "saved_requests", "returning_sections", "sections_back_in_time"),
    *("samples", "differing_samples", "differing_samples_resting", *FOUND_NAMES, *DECILE_NAMES),
    *(unsaved_name(cause) for cause in UnsavedCause),
)
_BEST_IS_MORE: Final = ("requests_saved_share",)


@dataclass(frozen=True, slots=True)
class RoundsRun:
    """One run of the job through the rounds.

    Attributes:
        web: `lookalike`, or the name of an older web.
        coverage: share of the groups of the web of look-alikes that were crawled before; the
            older webs have their own.
        kinds: names of the only kinds in it; empty: all.
        groups: of each kind; 0: as many as usual among so many hosts.
    """

    web: str
    hosts: int
    seed: int
    days: float
    coverage: float = 1.0
    kinds: tuple[str, ...] = ()
    step_days: float = 0.5
    follow_ups: int = 5
    groups: int = 0

    @property
    def title(self) -> str:
        """What is told of it."""
        part = ", partly crawled" if self.coverage < 1.0 else ""
        return f"seed {self.seed}: {self.web} web{part}"

    def make(self) -> LookalikeWeb:
        """Make the web."""
        if self.web == "lookalike":
            sized = LookalikeParameters(self.hosts, self.coverage, tuple(self.kinds), self.groups)
            return make_lookalike_web(sized, self.seed)
        scaled = scale_web(WEBS[self.web], self.hosts, _REPLICATED, _PAGES)
        return rounds_web(make_web(scaled, self.seed))


def planned_runs(hosts: int, days: float, seeds: Iterable[int], *, quick: bool) -> list[RoundsRun]:
    """Return the runs of all webs; quick: one of a small web of look-alikes for few days."""
    if quick:
        small = partial(RoundsRun, "lookalike", _QUICK_HOSTS, days=_QUICK_DAYS, kinds=_QUICK_KINDS)
        return [small(seed=0, coverage=_QUICK_COVERAGE, step_days=1.0, follow_ups=0)]
    return [
        run
        for seed in seeds
        for run in (
            *(
                RoundsRun("lookalike", hosts, seed, days, coverage=each.coverage)
                for each in (FULL, PARTIAL)
            ),
            *(RoundsRun(name, hosts, seed, days) for name in WEBS),
        )
    ]


def rounds_metrics(runs: Sequence[RoundsRun], progress: Progress) -> Metrics:
    """Return the figures of every web.

    Raises:
        OperatorError: a run fails.
    """
    found: dict[str, list[Metrics]] = defaultdict(list)
    for run, metrics in _measured(runs, progress):
        found[run.web].append(metrics)
        wrong, saved = metrics["wrong_verdicts"], metrics["requests_saved_share"]
        differing = metrics["resting_differing_pages"]
        progress(
            f"{run.title}: {len(runs) - sum(map(len, found.values()))} runs are left;"
            f" {metrics['declared']:.0f} declared, {wrong:.0f} of them wrongly;"
            f" {differing:.0f} resting pages differed; {saved:.3f} of the requests saved"
        )
    return {
        f"{name}_{web}": value
        for web, each in found.items()
        for name, value in joined_figures(each).items()
    }


def joined_figures(runs: Sequence[Metrics]) -> Metrics:
    """Return the figures over some runs; those that each of them has."""
    found: Metrics = {}
    for name in (name for name in runs[0] if all(name in run for run in runs)):
        # A run of less than a day could save nothing.
        ours = [run for run in runs if name not in _BEST_IS_MORE or run["savable_requests"]]
        values = [run[name] for run in ours or runs]
        join = sum if name in _ADDED else min if name in _BEST_IS_MORE else max
        found[name] = float(join(values))
    found["wrong_verdicts_per_1000"] = _per(found, "wrong_verdicts", "declared", 1_000.0)
    found["deferred_differing_share"] = _per(found, "deferred_differing_pages", "deferred_pages")
    found["calibration_error_max"] = calibration_error(found)
    return found


def _per(figures: Mapping[str, float], part: str, whole: str, unit: float = 1.0) -> float:
    return unit * figures[part] / max(1.0, figures[whole])


def _measured(runs: Sequence[RoundsRun], progress: Progress) -> Iterator[tuple[RoundsRun, Metrics]]:
    """Yield the metrics of each run as it ends."""
    left = list(reversed(runs))
    told_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crawld-bench-") as folder, ExitStack() as stack:
        under_way: dict[Child, RoundsRun] = {}
        while left or under_way:
            while left and len(under_way) < len(os.sched_getaffinity(0)):
                run, place = left.pop(), Path(folder) / str(len(left))
                place.mkdir()
                under_way[stack.enter_context(run_child(_command(run), place))] = run
                progress(f"{run.title}: {run.days:g} days of {run.hosts} hosts")
            for child in [one for one in under_way if not one.running()]:
                run = under_way.pop(child)
                yield run, _printed(child)
            if time.monotonic() - told_s > _TOLD_EVERY_S:
                told_s = time.monotonic()
                for child, run in under_way.items():
                    day = (child.output().splitlines() or ["the first visits"])[-1]
                    progress(f"{run.title}: {day.partition(':')[0]} of {run.days:g}")


def _printed(child: Child) -> Metrics:
    """Return what a run printed last."""
    if child.wait(0.0).exit_code:
        raise program_error("the rounds", "failed", child)
    printed = json.loads(child.output().splitlines()[-1])
    return {name: float(value) for name, value in printed.items()}


def _command(run: RoundsRun) -> list[str]:
    return [sys.executable, "-m", _MODULE, json.dumps(asdict(run))]


def main() -> None:
    """Make the run that is given as JSON; print its metrics in the last line."""
    errors = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=errors)
    run = RoundsRun(**json.loads(sys.argv[1]))
    scenario = RoundsScenario(run.days, run.step_days, run.follow_ups)
    result = run_rounds(run.make(), run.seed, scenario, lambda line: print(line, flush=True))
    print(json.dumps(result.metrics))


if __name__ == "__main__":
    main()
