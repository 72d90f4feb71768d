"""Synthetic change histories whose true rate is known: Poisson, bursty, periodic.

Mean rates are log-uniform between two bounds, as rates on the web span decades. All draws use one
seeded generator, so that a seed identifies an experiment.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crawld.core.units import DAY_S
from crawld.errors import OperatorError
from crawld.lab.histories import FloatArray, Histories, from_times

RATES_PER_DAY = (1 / 60, 4.0)
_BURST_SHARE = 0.8
_BURST_GAP_SHARE = 0.02

Gaps = Callable[[np.random.Generator, int], FloatArray]


def _poisson(rng: np.random.Generator, size: int) -> FloatArray:
    return rng.exponential(1.0, size)


def _bursty(rng: np.random.Generator, size: int) -> FloatArray:
    """Hyperexponential with mean 1: four gaps of five are fifty times shorter than the mean."""
    silence = (1.0 - _BURST_SHARE * _BURST_GAP_SHARE) / (1.0 - _BURST_SHARE)
    mean = np.where(rng.random(size) < _BURST_SHARE, _BURST_GAP_SHARE, silence)
    return rng.exponential(1.0, size) * mean


def _periodic(rng: np.random.Generator, size: int) -> FloatArray:
    return 1.0 + 0.05 * rng.uniform(-1.0, 1.0, size)


KINDS: dict[str, Gaps] = {"poisson": _poisson, "bursty": _bursty, "periodic": _periodic}
"""Kinds of synthetic page: how to draw intervals of mean 1."""


def synthetic(
    kind: str, *, pages: int, start: float, end: float, rng: np.random.Generator
) -> tuple[Histories, FloatArray]:
    """Draw histories of one kind.

    Args:
        start: time from which every page is in its stationary regime (warmed up before).
        end: no change at or after it.

    Returns:
        The histories, with one change of each page before `start`, and their true rates per second.

    Raises:
        OperatorError: no such kind.
    """
    if kind not in KINDS:
        raise OperatorError(f"no synthetic kind {kind!r}", hint=f"Use one of {', '.join(KINDS)}.")
    low, high = np.log(RATES_PER_DAY)
    rates = np.exp(rng.uniform(low, high, pages)) / DAY_S
    times = {
        str(page): _one_page(KINDS[kind], rate, start=start, end=end, rng=rng)
        for page, rate in enumerate(rates.tolist())
    }
    return from_times(times), rates


def _one_page(
    gaps: Gaps, rate: float, *, start: float, end: float, rng: np.random.Generator
) -> FloatArray:
    # Twenty mean intervals and a random phase before the start remove the effect of the beginning.
    begin = start - (20.0 + rng.random()) / rate
    size = int((end - begin) * rate * 1.3 + 60)
    times = begin + np.cumsum(gaps(rng, size)) / rate
    while times[-1] < end:
        times = np.append(times, times[-1] + np.cumsum(gaps(rng, size)) / rate)
    first = max(int(np.searchsorted(times, start)) - 1, 0)
    return times[first : int(np.searchsorted(times, end))]
