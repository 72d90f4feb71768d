"""Result of a benchmark: medians of crawld and of each baseline, and their ratios.

A metric carries its unit in its name, and the unit tells which direction is better: higher for
rates (`pages_per_s`), lower for times, sizes, shares and residuals (`_s`, `_ms`, `_us`, `_ns`,
`_mb`, `_share`, `_residual`) and `bytes_per_`. A ratio above 1 always means that crawld is better.

Rule: the result describes the machine by its capacity, never by its name or paths.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

Metrics = dict[str, float]

_LESS_IS_BETTER = ("_s", "_ms", "_us", "_ns", "_mb", "_share", "_residual")
_SIZE_SUFFIX = re.compile(r"_[0-9]{1,4}[km]?\Z")


def size_suffix(number: int) -> str:
    """Return what a metric's name ends with at a size: `_10m`, `_100k`, `_500`."""
    if number >= 1_000_000 and number % 1_000_000 == 0:
        return f"_{number // 1_000_000}m"
    return f"_{number // 1_000}k" if number >= 1_000 else f"_{number}"


def less_is_better(metric: str) -> bool:
    """Return whether lower values of a metric are better, by its unit.

    A size after it does not matter: `cycle_s_10m` is a time.
    """
    if "bytes_per_" in metric:
        return True
    unit = _SIZE_SUFFIX.sub("", metric)
    return "_per_" not in metric and unit.endswith(_LESS_IS_BETTER)


def figures(metrics: Metrics) -> str:
    """Return the metrics as one line of progress."""
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())


def medians(runs: Sequence[Mapping[str, float]]) -> Metrics:
    """Return the median of each metric over the runs that measured it, in order of first use."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: median(run[name] for run in runs if name in run) for name in names}


def ratios(ours: Mapping[str, float], baselines: Mapping[str, Mapping[str, float]]) -> Metrics:
    """Return how much better crawld is by the medians, for each metric that a baseline has too.

    The names are `BASELINE.metric`. A ratio above 1 means that crawld is better; there is none if
    its divisor is 0.
    """
    found: Metrics = {}
    for name, theirs in baselines.items():
        for metric, value in theirs.items():
            if metric not in ours:
                continue
            above, below = ours[metric], value
            if less_is_better(metric):
                above, below = below, above
            if below:
                found[f"{name}.{metric}"] = above / below
    return found


def build_result(
    name: str,
    ours: Sequence[Mapping[str, float]],
    baselines: Mapping[str, Sequence[Mapping[str, float]]] | None = None,
) -> dict[str, object]:
    """Return the value that `crawld bench NAME --json` prints, rounded to four significant digits.

    `ours` are crawld's metrics, one mapping per run, `baselines` those of each baseline in the same
    form; baselines without runs are left out.
    """
    our_medians = medians(ours)
    their_medians = {who: medians(runs) for who, runs in (baselines or {}).items() if runs}
    return {
        "name": name,
        "ours": _rounded(our_medians),
        "baselines": {who: _rounded(metrics) for who, metrics in their_medians.items()},
        "ratios": _rounded(ratios(our_medians, their_medians)),
        "machine": machine(),
        "runs": len(ours),
    }


def machine() -> dict[str, object]:
    """Return what the figures depend on: cores, memory, processor, kernel, Python."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": round(memory_bytes / 2**20),
        "processor": _processor(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def as_json(value: Mapping[str, object]) -> str:
    """Return the value as JSON text."""
    return json.dumps(value, indent=2)


def as_text(value: Mapping[str, object]) -> str:
    """Return the value as a table: one line per metric, with each baseline and its ratio."""
    ours = _metrics(value["ours"])
    by_name = value["baselines"]
    baselines = by_name if isinstance(by_name, dict) else {}
    names = dict.fromkeys((*ours, *(metric for them in baselines.values() for metric in them)))
    quotients = _metrics(value["ratios"])
    lines = [f"{value['name']}, medians of {value['runs']}"]
    lines.append("".join((f"{'metric':<28}", *(f"{who:>24}" for who in ("ours", *baselines)))))
    for metric in names:
        cells = [_cell(ours.get(metric), None)]
        for who, theirs in baselines.items():
            cells.append(_cell(theirs.get(metric), quotients.get(f"{who}.{metric}")))
        lines.append("".join((f"{metric:<28}", *(f"{cell:>24}" for cell in cells))))
    return "\n".join(lines)


def _cell(figure: float | None, ratio: float | None) -> str:
    if figure is None:
        return "-"
    return f"{figure:g}" if ratio is None else f"{figure:g} (x {ratio:.3g})"


def _metrics(value: object) -> Metrics:
    return dict(value) if isinstance(value, dict) else {}


def _rounded(metrics: Mapping[str, float]) -> Metrics:
    return {name: float(f"{figure:.4g}") for name, figure in metrics.items()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
