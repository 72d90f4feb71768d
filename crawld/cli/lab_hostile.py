"""`crawld lab hostile`: the daemon beside hostile servers, in simulated time."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawld.cli.lab_output import write_json
from crawld.cli.output import with_exit_code
from crawld.errors import EXIT_OK, OperatorError
from crawld.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawld.simweb.hostile.case import HostileCase

EXIT_FAULTS = 1
APART = ("sizes", "amplified")
"""Families that try the memory and the time of a real machine: `crawld bench hostile` has them."""


@with_exit_code
def hostile(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CASE]...", help="Names of cases; none: all of the families."),
    ] = None,
    *,
    family: Annotated[
        list[str] | None, typer.Option(help="Only this family; may be repeated.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Only every n-th case.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Draws latencies and the order of tasks.")] = 0,
    list_cases: Annotated[
        bool, typer.Option("--list", help="Print the catalogue as Markdown, and run nothing.")
    ] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Result file.")] = None,
) -> int:
    """Run the daemon beside hostile servers; exit with 1 if one of them does harm.

    Time is simulated: each exchange ends within its total time plus one second whatever the speed
    of the machine. Each case must have an outcome that is right for it, a healthy host beside them
    keeps its pace, no private address is dialed, and nothing is left open.
    """
    if list_cases:
        print(catalogue_text())
        return EXIT_OK
    cases = chosen_cases(names or [], family or [], every)
    try:
        from crawld.universe.hostile.run import run_hostile
    except ModuleNotFoundError as error:
        if error.name != "trustme":
            raise
        raise OperatorError(
            "hostile servers need certificates", hint=install_command("bench")
        ) from error
    with tempfile.TemporaryDirectory(prefix="crawld-hostile-") as folder:
        result = run_hostile(cases, Path(folder), seed=seed, progress=_tell)
    found = result.as_json()
    if json_path is not None:
        write_json(json_path, found)
    facts = {**found, "cases": len(result.cases), "faults": len(result.faults())}
    print("\n".join(f"{name}: {json.dumps(value)}" for name, value in facts.items()))
    for fault in result.faults():
        print(f"  {fault}")
    return EXIT_FAULTS if result.faults() else EXIT_OK


def chosen_cases(names: Sequence[str], families: Sequence[str], every: int) -> list[HostileCase]:
    """Return the cases that a command line names.

    Raises:
        OperatorError: there is no case or family of a name.
    """
    from crawld.simweb.hostile.catalogue import CASES, FAMILIES

    for name in families:
        if name not in FAMILIES:
            raise OperatorError(f"no family {name!r}", hint=f"one of: {', '.join(FAMILIES)}")
    for name in names:
        if name not in CASES:
            raise OperatorError(f"no hostile case {name!r}", hint="crawld lab hostile --list")
    if names:
        cases = [CASES[name] for name in names]
    else:
        wanted = families or [name for name in FAMILIES if name not in APART]
        cases = [case for name in wanted for case in FAMILIES[name]]
    return cases[::every]


def catalogue_text() -> str:
    """Return the catalogue of hostile servers as Markdown."""
    from crawld.simweb.hostile.catalogue import ABOUT, CASES, FAMILIES

    lines = [
        "# Hostile servers",
        "",
        f"{len(CASES)} behaviours of servers in {len(FAMILIES)} families, and which outcomes of a",
        "visit are right for them. `crawld lab hostile NAME` runs one; this page is printed by",
        "`crawld lab hostile --list`.",
    ]
    for family, cases in FAMILIES.items():
        lines += ["", f"## {family} ({len(cases)})", "", ABOUT[family], ""]
        by_outcome: dict[str, list[str]] = {}
        for case in cases:
            by_outcome.setdefault(", ".join(sorted(case.outcomes)), []).append(case.name)
        lines += [
            f"- {outcomes}: {', '.join(f'`{name}`' for name in named)}"
            for outcomes, named in by_outcome.items()
        ]
    return "\n".join(lines)


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
