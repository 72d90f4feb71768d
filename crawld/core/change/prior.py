"""Gamma priors of the change rate, one for each host or site section, fitted to its pages.

Two visits give no useful rate for a page; the other pages of its host show the usual rates there.
Groups are integers 0 … G - 1, pages are arrays, rates are per second.

Source: empirical Bayes for Poisson counts (Robbins 1956; the Gamma-Poisson form is textbook); EM:
Dempster, Laird & Rubin, JRSS B 1977; start of the shape: Minka 2002, "Estimating a Gamma
distribution".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from crawld.core.change.gamma import digamma, gamma_quantile
from crawld.core.units import DAY_S
from crawld.core.value_type import value_type

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@value_type
class Gamma:
    """A Gamma distribution of a rate: a prior or a posterior.

    Attributes:
        shape: equivalent number of changes seen, > 0.
        exposure_s: equivalent time over which they were seen, seconds, > 0.
    """

    shape: float
    exposure_s: float

    @property
    def mean(self) -> float:
        """Mean rate per second."""
        return self.shape / self.exposure_s

    def interval(self, level: float) -> tuple[float, float]:
        """Return the central credible interval of the rate, per second; 0 < level < 1."""
        tail = 0.5 * (1.0 - level)
        low = gamma_quantile(tail, self.shape)
        high = gamma_quantile(1.0 - tail, self.shape)
        return low / self.exposure_s, high / self.exposure_s


@dataclass(frozen=True, slots=True, eq=False)
class GammaPriors:
    """A Gamma prior for each group of pages (host or site section).

    Attributes:
        shape: of each group, > 0.
        exposure_s: of each group, seconds, > 0.
    """

    shape: FloatArray
    exposure_s: FloatArray

    def __getitem__(self, group: int) -> Gamma:
        return Gamma(float(self.shape[group]), float(self.exposure_s[group]))


DEFAULT_PRIOR = Gamma(0.5, 0.5 * 30.0 * DAY_S)
"""Prior of unknown pages: about monthly, with the weight of half a change."""

_BORROWED_PAGES = 3.0
"""A group is fitted with this many additional average pages, so that a single page does not define
it."""

_UNKNOWN = Gamma(0.1, 0.1 * 30.0 * DAY_S)
"""Evidence of one more page of each group, with the rate of unknown pages: visits that are minutes
apart must not make a host look lively, or still."""

_SHAPE_BOUNDS = (0.05, 20.0)
"""Bounds of a fitted shape: a page can override the prior, but the prior always has some weight."""


def fit_prior(
    changes: FloatArray,
    exposure_s: FloatArray,
    *,
    groups: IntArray | None = None,
    steps: int = 30,
) -> GammaPriors:
    """Fit a Gamma prior of the rate to each group's pages, by marginal maximum likelihood.

    EM over the unknown rates: the expected rate and log rate of each page, then the Gamma with
    their means. Small groups are pulled towards the mean of all pages (`_BORROWED_PAGES`).

    Args:
        exposure_s: time over which they were seen, >= 0; pages without any are ignored.
        groups: group of each page, 0 … G - 1; None = all in one group.

    Returns:
        A prior for each group; `DEFAULT_PRIOR` if no page has any exposure.
    """
    group_of = np.zeros(changes.size, np.int64) if groups is None else groups
    count = int(group_of.max()) + 1 if group_of.size else 1
    seen = exposure_s > 0
    if not seen.any():
        return GammaPriors(
            np.full(count, DEFAULT_PRIOR.shape), np.full(count, DEFAULT_PRIOR.exposure_s)
        )
    fit = _PriorFit.begin(
        np.concatenate((changes[seen], np.full(count, _UNKNOWN.shape))),
        np.concatenate((exposure_s[seen], np.full(count, _UNKNOWN.exposure_s))),
        np.concatenate((group_of[seen], np.arange(count))),
        count,
    )
    for _ in range(steps):
        fit = fit.step()
    return GammaPriors(fit.shape, fit.exposure_s)


@dataclass(frozen=True, slots=True, eq=False)
class _PriorFit:
    """State of the EM: evidence of each page, current prior of each group."""

    changes: FloatArray
    page_exposure_s: FloatArray
    group_of: IntArray
    pages_in: FloatArray
    shape: FloatArray
    exposure_s: FloatArray

    @classmethod
    def begin(
        cls, changes: FloatArray, exposure_s: FloatArray, group_of: IntArray, count: int
    ) -> _PriorFit:
        # All groups start at the common mean, with the shape of an exponential.
        mean = float(changes.sum()) / float(exposure_s.sum())
        pages_in = np.bincount(group_of, minlength=count).astype(np.float64)
        return cls(
            changes, exposure_s, group_of, pages_in, np.ones(count), np.full(count, 1.0 / mean)
        )

    def step(self) -> _PriorFit:
        shape = self.shape[self.group_of] + self.changes
        exposure_s = self.exposure_s[self.group_of] + self.page_exposure_s
        rate = self._group_means(shape / exposure_s)
        log_rate = self._group_means(digamma(shape) - np.log(exposure_s))
        spread = np.maximum(np.log(rate) - log_rate, 1e-6)
        fitted = np.clip(_shape_of_spread(spread), *_SHAPE_BOUNDS)
        return replace(self, shape=fitted, exposure_s=fitted / rate)

    def _group_means(self, values: FloatArray) -> FloatArray:
        total = np.bincount(self.group_of, values, minlength=self.pages_in.size)
        typical = float(values.mean())
        return (total + _BORROWED_PAGES * typical) / (self.pages_in + _BORROWED_PAGES)


def _shape_of_spread(spread: FloatArray) -> FloatArray:
    """Return the Gamma shape with ln E[x] - E[ln x] = spread, by Newton from a rational start."""
    shape = (3.0 - spread + np.sqrt((spread - 3.0) ** 2 + 24.0 * spread)) / (12.0 * spread)
    for _ in range(3):
        error = np.log(shape) - digamma(shape) - spread
        slope = 1.0 / shape - (digamma(shape * (1 + 1e-5)) - digamma(shape)) / (shape * 1e-5)
        shape = np.maximum(shape - error / slope, shape * 0.5)
    return shape
