"""`crawld lab universe`: the whole daemon in a deterministic world, judged from outside."""

from __future__ import annotations

import json
import math
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated

import typer

from crawld.cli.lab_output import write_json
from crawld.cli.output import with_exit_code
from crawld.errors import EXIT_OK, OperatorError

EXIT_VIOLATIONS = 1
SHOWN = 20
"""Violations that are printed; the JSON has all."""


@with_exit_code
def universe(
    *,
    seed: Annotated[int, typer.Option(min=0, help="Draws the hosts, the faults and every delay.")],
    days: Annotated[float, typer.Option(help="Simulated days.")] = 0.1,
    max_cpu: Annotated[
        float, typer.Option(min=0.0, help="CPU seconds after which the run is given up.")
    ] = 3_600.0,
    json_path: Annotated[Path | None, typer.Option("--json", help="Result file.")] = None,
    events: Annotated[
        Path | None, typer.Option(help="File for the lines of the event log.")
    ] = None,
) -> int:
    """Run the daemon in a simulated world and check its promises; exit with 1 if one is broken.

    Equal seeds and days give the same event log, byte for byte. The daemon meets resets, stalls,
    503 with Retry-After, changes of robots.txt, a clean stop and a kill.
    """
    from crawld.universe.plan import UniversePlan
    from crawld.universe.run_universe import run_universe

    if not (days > 0 and math.isfinite(days)):
        raise OperatorError("a universe lasts some days", hint="example: --days 0.5")
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="crawld-universe-"))
        event_file = None if events is None else stack.enter_context(_open(events))
        planned = UniversePlan.drawn(seed, days)
        result = run_universe(planned, Path(folder), event_file=event_file, max_cpu_s=max_cpu)
    if json_path is not None:
        write_json(json_path, result.as_json())
    violations = result.auditor.violations
    facts = {**result.as_json(), "violations": len(violations)}
    print("\n".join(f"{name}: {json.dumps(value)}" for name, value in facts.items()))
    for violation in violations[:SHOWN]:
        print(f"{violation.at:14.3f} s  {violation.invariant}: {violation.what}")
    if violations:
        print(f"replay: crawld lab universe --seed {seed} --days {days:g}")
    return EXIT_VIOLATIONS if violations else EXIT_OK


def _open(path: Path) -> IO[str]:
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror}") from error
