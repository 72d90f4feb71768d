"""Measures how bursty the total request rate of many hosts is: peak against mean per second.

Hosts with equally spaced requests, each with its own phase, add up to a total whose peak has a
known bound; the measured peak is reported with it. With many hosts the peaks of other placements
are as low: the mean over seeds shows which differences are chance.

Source: PUC-Rio dissertation, chapter 5 (the argument); `core/revisit/bounds.py` (the bound).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.bounds import peak_probability

Floats = NDArray[np.float64]
Row = dict[str, object]


def peak_rows(
    request_rates: Floats, *, horizon_s: float, window_s: float = 1.0, seed: int = 0
) -> list[Row]:
    """Measure peak-to-mean requests per window for three placements of the requests of hosts.

    `request_rates` are the requests per second sent to each host, > 0.

    Returns:
        One row each for `equally-spaced` (uniform, merge, index, random: one page a host slot),
        `delayed` (requests moved to a host's slots, idle slots left out) and `unpolite` (Poisson
        superposition): mean and peak per window, their ratio, the share of windows at the peak, and
        the bound on the probability of such a peak under equal spacing.
    """
    # Not the random stream of the rates: phases must not depend on the rates.
    rng = np.random.default_rng([seed, 3])
    ways: dict[str, Callable[[float], Floats]] = {
        "equally-spaced": lambda rate: (np.arange(rate * horizon_s) + rng.random()) / rate,
        "delayed": lambda rate: _delayed(rate, horizon_s, rng),
        "unpolite": lambda rate: rng.uniform(0, horizon_s, rng.poisson(rate * horizon_s)),
    }
    windows = int(horizon_s / window_s)
    rows: list[Row] = []
    for name, place in ways.items():
        count = np.zeros(windows, dtype=np.int64)
        for rate in request_rates.tolist():
            at = (place(rate) / window_s).astype(np.int64)
            count += np.bincount(at[at < windows], minlength=windows)
        mean, peak = float(count.mean()), int(count.max())
        rows.append(
            {
                "policy": name,
                "mean_per_window": mean,
                "peak_per_window": peak,
                "peak_to_mean": peak / mean if mean else 0.0,
                "measured_probability": float((count >= peak).mean()),
                "bound_probability": peak_probability(request_rates, window_s, peak),
            }
        )
    return rows


def mean_peaks(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the mean peak of each placement over runs with different seeds.

    Returns:
        One row each, in the order of the first run: `policy`, `peak_to_mean`, `standard_error` (of
        that mean; 0 for one run) and `runs`.
    """
    peaks: dict[str, list[float]] = {}
    for row in (row for rows in runs for row in rows):
        peaks.setdefault(str(row["policy"]), []).append(float(str(row["peak_to_mean"])))
    return [
        {
            "policy": name,
            "peak_to_mean": float(np.mean(found)),
            "standard_error": float(np.std(found, ddof=1) / len(found) ** 0.5)
            if len(found) > 1
            else 0.0,
            "runs": len(found),
        }
        for name, found in peaks.items()
    ]


def _delayed(rate: float, horizon_s: float, rng: np.random.Generator) -> Floats:
    """Return ideal times of many pages moved to the polite slots of a host at twice the rate."""
    ideal = np.sort(rng.uniform(0, horizon_s, rng.poisson(rate * horizon_s)))
    spacing = 0.5 / rate
    step = np.arange(len(ideal)) * spacing
    return np.asarray(np.maximum.accumulate(ideal - step) + step)
