"""Figures over runs of the rounds that were made at different times.

    python -m crawld.bench.replica_rounds.pooled_runs FILE...

Each file has the output of `python -m crawld.bench.replica_rounds.rounds_metrics`, or of
`crawld bench replica --json`, of which all webs are taken together. Prints the figures as JSON, and
the deciles of the probability as a table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from crawld.bench.replica_rounds.calibration import deciles_as_markdown
from crawld.bench.replica_rounds.rounds_metrics import joined_figures
from crawld.bench.result import Metrics
from crawld.simweb.replica_parameters import WEBS

_MARK: Final = "savable_requests"
"""A figure that every run has."""


def read_runs(text: str) -> Iterator[Metrics]:
    """Yield the figures in the output of a run, or those of each web in that of the benchmark."""
    lines = text.strip().splitlines()
    printed = json.loads(text if text.lstrip().startswith("{") else lines[-1])
    figures = printed.get("ours", printed)
    if _MARK in figures:
        yield {name: float(value) for name, value in figures.items()}
    for web in ("lookalike", *WEBS):
        suffix = f"_{web}"
        if f"{_MARK}{suffix}" in figures:
            yield {
                name.removesuffix(suffix): float(value)
                for name, value in figures.items()
                if name.endswith(suffix)
            }


def pooled(texts: Iterable[str]) -> Metrics:
    """Return the figures over all runs in some outputs."""
    return joined_figures([run for text in texts for run in read_runs(text)])


def main() -> None:
    """Print the figures over the runs in the given files."""
    found = pooled(Path(name).read_text() for name in sys.argv[1:])
    print(json.dumps(found, indent=1))
    print(deciles_as_markdown(found))


if __name__ == "__main__":
    main()
