"""`crawld lab replicas`: how well replicas are found, with the truth at hand."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from crawld.cli.output import ending
from crawld.errors import OperatorError


@ending
def replicas(
    *,
    web: Annotated[str, typer.Option(help="easy, standard or hard; several by commas.")] = (
        "standard"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Webs of each, seeds 0, 1, …")] = 5,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Find the replicas of simulated webs of 21,500 hosts and print every table as Markdown."""
    from crawld.lab.replica_tables import as_markdown, report
    from crawld.simweb.replica_laws import LAWS

    names = [name.strip() for name in web.split(",")]
    if unknown := [name for name in names if name not in LAWS]:
        raise OperatorError(f"there is no web {unknown[0]!r}", hint=f"there are: {', '.join(LAWS)}")
    tables = [report(LAWS[name], range(seeds), _tell) for name in names]
    if json_out:
        print(json.dumps(tables, indent=1))
    else:
        print("\n\n".join(as_markdown(table) for table in tables))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
