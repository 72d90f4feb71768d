"""`crawld bench NAME`: measure crawld and its peers in one run."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from crawld.bench import run as benchmarks
from crawld.bench.result import as_json, as_text
from crawld.cli.logs import configure_logs


def bench(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(benchmarks.BENCHMARKS)}.")],
    *,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="A small run of seconds.")] = False,
) -> None:
    """Measure crawld against its baselines, in one run on this machine."""
    # Some run a daemon in this process: its log is not what is measured.
    configure_logs(style="console", level=lambda: "error")
    value = benchmarks.run(name, quick=quick, progress=_tell)
    print(as_json(value) if json_out else as_text(value))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
