"""`crawld lab universe`: the whole daemon in a deterministic world, judged from outside."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from crawld.cli.lab_output import write_json
from crawld.cli.output import with_exit_code
from crawld.errors import EXIT_OK, OperatorError

if TYPE_CHECKING:
    from crawld.universe.plan import UniversePlan

EXIT_VIOLATIONS = 1
SHOWN = 20
"""Violations that are printed; the JSON has all."""


@with_exit_code
def universe(
    *,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draws the hosts, the faults and every delay.")
    ] = None,
    scenario: Annotated[
        Path | None, typer.Option(help="Run the plan in this file instead of a seed's.")
    ] = None,
    days: Annotated[float, typer.Option(help="Simulated days of a seed.")] = 0.1,
    sites: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="So many sites that change and never fail."),
    ] = None,
    pages: Annotated[int, typer.Option(min=2, help="Pages of each of the --sites.")] = 1_000,
    delay: Annotated[float, typer.Option(min=0.1, help="Delay of their hosts, seconds.")] = 120.0,
    max_cpu: Annotated[
        float, typer.Option(min=0.0, help="CPU seconds after which the run is given up.")
    ] = 3_600.0,
    shrink: Annotated[
        float, typer.Option(min=0.0, help="CPU seconds to make a failing plan smaller.")
    ] = 60.0,
    json_path: Annotated[Path | None, typer.Option("--json", help="Result file.")] = None,
    events: Annotated[
        Path | None, typer.Option(help="File for the lines of the event log.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot of the requests and faults over time, SVG.")
    ] = None,
) -> int:
    """Run the daemon in a simulated world and check its promises; exit with 1 if one is broken.

    Equal seeds and days give the same event log, byte for byte. The daemon meets faults of servers,
    names and the disk, kills and power cuts, steps of the clock and requests of an operator. A
    broken promise is shown with the command that repeats the run, and a smaller plan that breaks
    it, too.
    """
    from crawld.universe.draw import steady_plan
    from crawld.universe.run_universe import run_universe
    from crawld.universe.timeline import Timeline

    plan = _plan(seed, scenario, days)
    if sites is not None:
        plan = steady_plan(plan.seed, days, sites=sites, pages=pages, host_delay_s=delay)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="crawld-universe-"))
        event_file = None if events is None else stack.enter_context(_open(events))
        timeline = None if plot is None else Timeline(event_file)
        result = run_universe(
            plan, Path(folder), event_file=timeline or event_file, max_cpu_s=max_cpu, progress=_tell
        )
    if json_path is not None:
        write_json(json_path, result.as_json())
    if timeline is not None and plot is not None:
        timeline.plot(plan, plot)
    violations = result.auditor.found.violations
    facts = {**result.as_json(), "violations": len(violations)}
    print("\n".join(f"{name}: {json.dumps(value)}" for name, value in facts.items()))
    for violation in violations[:SHOWN]:
        print(f"{violation.at:14.3f} s  {violation.invariant}: {violation.what}")
    if not violations:
        return EXIT_OK
    origin = f"--seed {seed} --days {days:g}" if scenario is None else f"--scenario {scenario}"
    if sites is not None:
        origin += f" --sites {sites} --pages {pages} --delay {delay:g}"
    print(f"replay: crawld lab universe {origin}")
    if shrink > 0.0:
        _print_smaller(plan, violations[0].invariant, shrink)
    return EXIT_VIOLATIONS


def _plan(seed: int | None, scenario: Path | None, days: float) -> UniversePlan:
    from crawld.universe.draw import draw_plan
    from crawld.universe.scenario import read_scenario

    if scenario is not None:
        return read_scenario(scenario)
    if seed is None:
        raise OperatorError("there is nothing to run", hint="name a --seed or a --scenario")
    if not (days > 0 and math.isfinite(days)):
        raise OperatorError("a universe lasts some days", hint="example: --days 0.5")
    return draw_plan(seed, days)


def _print_smaller(plan: UniversePlan, invariant: str, max_cpu_s: float) -> None:
    from crawld.universe.scenario import scenario_text
    from crawld.universe.shrink import shrink

    smaller = shrink(plan, invariant, max_cpu_s=max_cpu_s)
    print(f"smaller: {len(smaller.hosts)} hosts, {smaller.days:g} days; for --scenario:")
    print(scenario_text(smaller))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _open(path: Path) -> IO[str]:
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror}") from error
