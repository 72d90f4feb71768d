"""Measures how bursty the total request rate of many hosts is: peak against mean per second.

Hosts with equally spaced requests, each with its own phase, add up to an even total. Ideal times of
single pages (UNPOLITE) or random slots cluster. The measured peak is reported with a bound on the
probability of such a peak under equal spacing.

Source: PUC-Rio dissertation, chapter 4 (the argument); `core/revisit/bounds.py` (the bound).
"""

from __future__ import annotations

from collections.abc import Callable

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


def _delayed(rate: float, horizon_s: float, rng: np.random.Generator) -> Floats:
    """Return ideal times of many pages moved to the polite slots of a host at twice the rate."""
    ideal = np.sort(rng.uniform(0, horizon_s, rng.poisson(rate * horizon_s)))
    spacing = 0.5 / rate
    step = np.arange(len(ideal)) * spacing
    return np.asarray(np.maximum.accumulate(ideal - step) + step)
