"""Draw results of `crawld bench seen --known N --json` as SVG: a cycle over what is known.

    python -m crawld.bench.seen_plot RESULT.json ... PLOT.svg

Beside them stand the published curves; their hardware was several times slower.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from crawld.lab.plot import plot_lines

PUBLISHED: Final = {
    "DRUM, published": {1: 22.17, 50: 53.53, 100: 81.24, 150: 114.55, 200: 149.11, 250: 196.6}
    | {300: 238.53, 350: 284.92},
    "VEUNI, published": {1: 1.35, 50: 2.6, 100: 3.53, 150: 4.47, 200: 6.11, 250: 6.17}
    | {300: 7.26, 350: 9.07},
}
"""Seconds of a cycle of a million URLs by millions of known ones (Favoreto, UFMG)."""

_OURS: Final = {
    "crawld, end to end": "cycle_end_to_end_cpu_s",
    "crawld, bounded memory": "cycle_cpu_s",
    "crawld, keys in memory": "cycle_immediate_cpu_s",
}
_BASELINES: Final = {"drum": "DRUM", "veuni": "VEUNI", "btree": "SQLite B-tree"}
_MILLION: Final = 1e6

Point = dict[str, object]


def points(results: Sequence[Mapping[str, Mapping[str, object]]]) -> list[Point]:
    """Return what is drawn: known millions of URLs and processor seconds of a cycle, by line."""
    found = []
    for result in results:
        ours, baselines = result["ours"], result["baselines"]
        known = float(str(ours["known_urls"])) / _MILLION
        lines = {label: ours.get(metric) for label, metric in _OURS.items()}
        for name, label in _BASELINES.items():
            metrics = baselines.get(name)
            lines[label] = metrics.get("cycle_cpu_s") if isinstance(metrics, Mapping) else None
        found += [
            {"line": label, "known": known, "seconds": seconds}
            for label, seconds in lines.items()
            if seconds is not None
        ]
    found += [
        {"line": label, "known": known, "seconds": seconds}
        for label, curve in PUBLISHED.items()
        for known, seconds in curve.items()
    ]
    return found


def main(arguments: Sequence[str]) -> None:
    """Draw the results that are named first into the file that is named last."""
    *names, path = arguments
    results = [json.loads(Path(name).read_text(encoding="utf-8")) for name in names]
    plot_lines(
        points(results),
        Path(path),
        name="line",
        x="known",
        x_label="known URLs, millions",
        y="seconds",
        y_label="seconds of processor for a million URLs",
        title="Is a URL new?",
        dashed=tuple(PUBLISHED),
        logarithmic=True,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
