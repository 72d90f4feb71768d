"""GREEDY-NCIS: the published policy for hints that may be false, late or missing.

A page changes at rate Δ (Poisson). A share λ of its changes is signalled, and false signals come
at rate ν. With α = (1 − λ)Δ the rate of changes without a signal and γ = λΔ + ν that of signals, a
copy is fresh with probability exp(−α ι), where

    ι = (time since the visit) + β (signals since the visit),    β = −ln(ν/γ) / α,

the effective time: a signal counts for as much doubt as β seconds of silence. A page that is
visited whenever ι reaches a threshold is visited ψ seconds apart on average, and fresh for w:

    ψ(ι) = Σ_i R_i(γ (ι − iβ)) / γ,
    w(ι) = Σ_i ν^i / (α + γ)^(i+1) · R_i((α + γ)(ι − iβ)),    i from 0 while iβ < ι,

with R_i(x) = 1 − e^(−x) Σ_{j≤i} x^j / j!. The value of a visit is w(ι) − e^(−αι) ψ(ι), and the page
of highest value is visited. After a signal that is never false, it is 1/Δ.

Here each page's Δ is that of the year before, and λ and ν are told: the paper estimates them from
logs. Only for the laboratory: values are tabulated for each page, 1 percent apart.

Source: Busa-Fekete, Zimmert, Gyorgy et al., WWW 2025 (arXiv 2502.02430), sections 3 and 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.due import Due
from crawld.core.revisit.policies import VisitObservation
from crawld.lab.unvisited import UnvisitedPages

Floats = NDArray[np.float64]

MOST_SIGNALS = 24
"""Signals of one period that the sums count; their weights fall as (ν/γ)^i and faster."""

_POINTS, _SHORT, _LONG = 1_200, 1e-5, 1e2
"""Grid of effective times, in mean intervals between changes."""


def crawl_values(effective_s: Floats, rate: Floats, signalled: float, false_rate: float) -> Floats:
    """Return the values of visits, seconds.

    Args:
        effective_s: ι of each page, > 0, may be ∞; any shape that broadcasts with `rate`.
        rate: Δ, 1/s. signalled: λ, in [0, 1]. false_rate: ν, 1/s.
    """
    alpha, gamma = (1.0 - signalled) * rate, signalled * rate + false_rate
    endless = 1.0 / rate
    if not signalled:  # the signals say nothing
        gone = alpha * np.minimum(effective_s, 1e3 / rate)
        return np.asarray((1.0 - np.exp(-gone) * (1.0 + gone)) / alpha)
    with np.errstate(divide="ignore"):
        beta_s = -np.log(false_rate / gamma) / np.maximum(alpha, 1e-300)
    left = np.where(np.isinf(effective_s), 0.0, effective_s)
    unfresh = np.exp(-alpha * left)
    apart, fresh = np.zeros_like(left), np.zeros_like(left)
    for count in range(MOST_SIGNALS):
        inside = np.maximum(left - (count * beta_s if count else 0.0), 0.0)
        if not inside.any():
            break
        apart += _residual(count, gamma * inside) / gamma
        share = (false_rate / (alpha + gamma)) ** count / (alpha + gamma)
        fresh += share * _residual(count, (alpha + gamma) * inside)
    value = np.maximum(fresh - unfresh * apart, 0.0)
    return np.asarray(np.where(np.isinf(effective_s), endless, value))


def _residual(count: int, x: Floats) -> Floats:
    """Return R_count(x): the probability of more than `count` events where x are expected."""
    term = np.exp(-x)
    rest = -np.expm1(-x)
    for step in range(1, count + 1):
        term = term * x / step
        rest = rest - term
    return np.maximum(rest, 0.0)


class NoisySignalsPolicy(UnvisitedPages):
    """Selects the page of highest value; importance has no effect.

    Args:
        rate: Δ of each page, 1/s; the index is the page.
        signalled: λ, share of changes with a signal; 0: signals are ignored.
        false_rate: ν, false signals of a page, 1/s.
    """

    def __init__(self, rate: Floats, *, signalled: float, false_rate: float) -> None:
        super().__init__()
        self._rate = rate
        alpha, gamma = (1.0 - signalled) * rate, signalled * rate + false_rate
        with np.errstate(divide="ignore", invalid="ignore"):
            jump = -np.log(false_rate / gamma) / alpha if signalled else np.zeros_like(rate)
        self._jump_s = np.where(np.isnan(jump), np.inf, jump)
        self._grid = np.geomspace(_SHORT, _LONG, _POINTS)
        self._step = float(np.log(_LONG / _SHORT)) / (_POINTS - 1)
        points = np.append(self._grid, np.inf) / rate[:, None]
        self._table = crawl_values(points, rate[:, None], signalled, false_rate)
        self._visited_at = np.full(len(rate), -np.inf)
        self._signals = np.zeros(len(rate))
        self._waits = np.zeros(len(rate), np.bool_)

    def add(self, page: int, last_visit_at: float | None, weight: float = 1.0) -> None:
        """Add a page."""
        if page not in self._slots:
            self._slots.add(page)
            self._waits[page] = True
            self._visited_at[page] = -np.inf if last_visit_at is None else last_visit_at

    def remove(self, page: int) -> None:
        """Remove a page."""
        if page in self._slots:
            self._slots.remove(page)
            self._waits[page] = False

    def select(self, now: float) -> int | None:
        """Return the page of highest value."""
        pages = np.flatnonzero(self._waits)
        if not len(pages):
            return None
        page = int(pages[self.values(now)[pages].argmax()])
        self._waits[page] = False
        return page

    def values(self, now: float) -> Floats:
        """Return the values of visits to all pages now, seconds."""
        with np.errstate(invalid="ignore"):
            doubt = np.where(self._signals > 0.0, self._signals * self._jump_s, 0.0)
        effective = (np.maximum(now - self._visited_at, 0.0) + doubt) * self._rate
        place = np.log(np.maximum(effective, _SHORT) / _SHORT) / self._step
        place = np.where(np.isinf(effective), _POINTS, np.minimum(place, _POINTS - 1))
        return np.asarray(self._table[np.arange(len(place)), place.astype(np.int64)])

    def record_visit(self, page: int, now: float, observation: VisitObservation | None) -> None:
        """Let a page wait again."""
        if page in self._slots:
            self._visited_at[page], self._signals[page], self._waits[page] = now, 0.0, True

    def release(self, page: int) -> None:
        """Put a selected page back in its place."""
        if page in self._slots:
            self._waits[page] = True

    def record_hint(
        self,
        page: int,
        at: float,
        *,
        trust: float = 1.0,
        indirect: bool = False,
        due: Due | None = None,
    ) -> None:
        """Count a signal of a change after the last visit; the learned trust is not used."""
        if page in self._slots and at > self._visited_at[page]:
            self._signals[page] += 1.0
