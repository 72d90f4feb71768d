"""How long pages stay unchanged from a random time, by the self-exciting model.

`hawkes.py` has the survival after a known change. A forecast needs S(s) = Pr[no change within s of
a random time]. During a forecast the slowest kernel, the pace of a page, is taken as constant, so
that the changes of a page are a Poisson process of *first* changes of rate ν, each of which causes
others through the faster kernels: n each on average, of rate ρ in all, so that ν = (1 − n) ρ. Then

    S(s) = exp(−ν E(s)),   E(s) = s + ∫_0^∞ q_s(u) du,

where q_s(u) is the probability that a first change u before the window, or what it causes, changes
the page in the window. A change causes changes independently of each other, so q_s solves

    q_s(u) = 1 − exp(−Σ_k w_k [e^(−u/τ_k) (1 − e^(−s/τ_k)) + ∫_0^u e^(−v/τ_k) q_s(u − v) dv / τ_k]).

E depends on the site only. Without excitement it is s, and S that of a Poisson page; with bursts it
is concave, from s/(1 − n) to s and a constant: the same number of changes leaves more quiet time.

Source: Hawkes & Oakes, J. Appl. Prob. 1974 (the process as clusters of independent changes); the
constant pace and the numerical form are this project's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from crawld.core.change.hawkes import KERNELS_S, Hawkes

Floats = npt.NDArray[np.float64]

MOST_CAUSED: Final = 0.9
"""The most changes that one causes on average: with one or more a cluster has no end."""

_TAUS: Final = np.array(KERNELS_S[:-1])
_STARTS: Final = np.concatenate(([0.0], np.geomspace(10.0, 60.0 * KERNELS_S[-2], 240)))
"""Times of a first change before the window, 7 % apart: within .1 % of E."""

_ROUNDS: Final = 12


def caused_changes(model: Hawkes) -> float:
    """Return n, the changes that one causes at once or soon, in [0, `MOST_CAUSED`]."""
    return min(sum(model.weights[:-1]), MOST_CAUSED)


@lru_cache(maxsize=64)
def window_exposure_s(model: Hawkes, windows_s: tuple[float, ...]) -> Floats:
    """Return E of some windows, seconds; S of a page of rate ρ is exp(−(1 − n) ρ E).

    Args:
        windows_s: lengths s, > 0.
    """
    windows = np.array(windows_s)
    weights = np.array(model.weights[:-1])
    weights = weights * caused_changes(model) / max(float(weights.sum()), 1e-12)
    inside = -np.expm1(-windows / _TAUS[:, None])
    reached = -np.expm1(-weights @ inside)
    # Σ over kernels of w ∫ e^(−v/τ) q dv / τ, kept by kernel; q is linear between two starts.
    through = np.zeros((len(_TAUS), len(windows)))
    total = np.zeros(len(windows))
    for step_s, start_s in zip(np.diff(_STARTS).tolist(), _STARTS[1:].tolist(), strict=True):
        left = np.exp(-step_s / _TAUS)
        mean = -np.expm1(-step_s / _TAUS) * _TAUS / step_s
        known = through * left[:, None] + (weights * (mean - left))[:, None] * reached
        direct = (weights * np.exp(-start_s / _TAUS)) @ inside + known.sum(axis=0)
        own, before = float(weights @ (1.0 - mean)), reached
        for _ in range(_ROUNDS):
            reached = -np.expm1(-direct - own * reached)
        through = known + (weights * (1.0 - mean))[:, None] * reached
        total += 0.5 * step_s * (before + reached)
    return np.asarray(windows + total)
