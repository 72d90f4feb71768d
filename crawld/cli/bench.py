"""`crawld bench NAME`: measure crawld and comparable programs in one run."""

from __future__ import annotations

import sys

from crawld.bench import run as benchmarks
from crawld.bench.result import as_json, as_text
from crawld.cli.logs import configure_logs


def bench(
    name: str, *, json_out: bool = False, quick: bool = False, known: int | None = None
) -> None:
    """Run a benchmark and print its result."""
    # Some benchmarks run a daemon in this process; its log must not take part.
    configure_logs(style="console", level=lambda: "error")
    value = benchmarks.run(name, quick=quick, progress=_print_progress, known=known)
    print(as_json(value) if json_out else as_text(value))


def _print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
