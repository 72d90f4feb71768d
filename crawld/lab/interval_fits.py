"""Fits distributions to the intervals between changes: which process do pages follow?

Families: exponential (a Poisson process), Gamma, Weibull, Pareto (of the second kind, which starts
at 0, as intervals do) and hyperexponential (two rates, one of which is drawn for each interval).
Each is fitted by maximum likelihood and compared by AIC, 2 k − 2 ln L for k parameters. The time
from the last change to the end of the period is a censored interval: it lasted at least that long.
Without it, the long intervals would be missing.

Pages differ in rate. The pooled fit divides the intervals of each page by its mean interval, so
that it shows the shape alone; the fits of single pages show how many follow which family.

Source: PUC-Rio dissertation, figure 6.1; Akaike, IEEE Trans. Automatic Control 1974 (AIC).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # imports its parts where they are used
from numpy.typing import NDArray

from crawld.lab.histories import Histories

Floats = NDArray[np.float64]
Function = Callable[[Floats, Floats], Floats]

LEAST_INTERVAL_S = 1.0
"""Histories are in whole seconds; an interval of 0 has no density in some families."""

_LARGEST_LOG = 30.0
_STARTS = (0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class Family:
    """A family of distributions on positive times, whose first parameter is a scale.

    Attributes:
        parameters: their names; all are positive, or shares in (0, 1) if named so.
        density: ln f(x), from times and parameters. survival: ln S(x).
        start: parameters from a mean time and a shape.
    """

    name: str
    parameters: tuple[str, ...]
    density: Function
    survival: Function
    start: Callable[[float, float], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Fit:
    """A family fitted to intervals.

    Attributes:
        parameters: by name; times in the unit of the intervals.
        log_likelihood: natural logarithm. aic: 2 k − 2 ln L, less is better.
    """

    family: str
    parameters: dict[str, float]
    log_likelihood: float
    aic: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals between changes.

    Attributes:
        ended: complete intervals. censored: intervals that had not ended when last seen.
    """

    ended: Floats
    censored: Floats

    def relative(self) -> Intervals:
        """Return the intervals divided by their mean, as an exponential fit estimates it."""
        mean = (self.ended.sum() + self.censored.sum()) / len(self.ended)
        return Intervals(self.ended / mean, self.censored / mean)


def _gamma_density(x: Floats, p: Floats) -> Floats:
    scale, k = p
    at = x / scale
    return np.asarray((k - 1.0) * np.log(at) - at - scipy.special.gammaln(k) - math.log(scale))


def _weibull_density(x: Floats, p: Floats) -> Floats:
    scale, k = p
    at = np.log(x / scale)
    return np.asarray(math.log(k / scale) + (k - 1.0) * at - np.exp(k * at))


def _mixture(p: Floats) -> tuple[Floats, Floats]:
    long_s, ratio, share = p
    return np.array([1.0 / long_s, (1.0 + ratio) / long_s]), np.log([1.0 - share, share])


def _hyper_density(x: Floats, p: Floats) -> Floats:
    rate, weight = _mixture(p)
    parts = weight + np.log(rate) - rate * x[:, None]
    return np.asarray(np.logaddexp(parts[:, 0], parts[:, 1]))


def _hyper_survival(x: Floats, p: Floats) -> Floats:
    rate, weight = _mixture(p)
    parts = weight - rate * x[:, None]
    return np.asarray(np.logaddexp(parts[:, 0], parts[:, 1]))


FAMILIES = (
    Family(
        "exponential",
        ("mean",),
        lambda x, p: -np.log(p[0]) - x / p[0],
        lambda x, p: -x / p[0],
        lambda mean, _: (mean,),
    ),
    Family(
        "gamma",
        ("scale", "shape"),
        _gamma_density,
        lambda x, p: np.log(np.maximum(scipy.special.gammaincc(p[1], x / p[0]), 1e-300)),
        lambda mean, shape: (mean / shape, shape),
    ),
    Family(
        "weibull",
        ("scale", "shape"),
        _weibull_density,
        lambda x, p: -((x / p[0]) ** p[1]),
        lambda mean, shape: (mean, shape),
    ),
    Family(
        "pareto",
        ("scale", "shape"),
        lambda x, p: math.log(p[1] / p[0]) - (p[1] + 1.0) * np.log1p(x / p[0]),
        lambda x, p: -p[1] * np.log1p(x / p[0]),
        lambda mean, shape: (mean * shape, 1.0 + shape),
    ),
    Family(
        "hyperexponential",
        ("long_mean", "ratio_less_1", "short_share"),
        _hyper_density,
        _hyper_survival,
        lambda mean, shape: (2.0 * mean, 10.0 / shape, 0.5),
    ),
)
"""All families; `ratio_less_1` is the short rate over the long one, less 1."""


def fit_family(family: Family, intervals: Intervals) -> Fit:
    """Return the fit of greatest likelihood.

    Args:
        intervals: at least one ended one; all > 0.
    """
    ended, censored = intervals.ended, intervals.censored
    mean = float(ended.sum() + censored.sum()) / len(ended)
    shares = [name.endswith("share") for name in family.parameters]

    def parameters(free: Floats) -> Floats:
        logs = np.clip(free, -_LARGEST_LOG, _LARGEST_LOG)
        return np.where(shares, scipy.special.expit(logs), np.exp(logs))

    def loss(free: Floats) -> float:
        p = parameters(free)
        with np.errstate(over="ignore", invalid="ignore"):
            total = family.density(ended, p).sum() + family.survival(censored, p).sum()
        return -float(total) if np.isfinite(total) else math.inf

    found = []
    for shape in _STARTS:
        given = np.array(family.start(mean, shape))
        free = np.where(shares, scipy.special.logit(np.where(shares, given, 0.5)), np.log(given))
        corners = np.vstack([free, free + 0.5 * np.eye(len(free))])
        options = {"xatol": 1e-5, "fatol": 1e-6, "maxiter": 2_000, "initial_simplex": corners}
        found.append(scipy.optimize.minimize(loss, free, method="Nelder-Mead", options=options))
        if len(family.parameters) == 1:
            break
    best = min(found, key=lambda one: float(one.fun))
    values = parameters(best.x).tolist()
    likelihood = -float(best.fun)
    return Fit(
        family.name,
        dict(zip(family.parameters, values, strict=True)),
        likelihood,
        2.0 * len(values) - 2.0 * likelihood,
    )


def fit_all(intervals: Intervals) -> list[Fit]:
    """Return the fit of each family, in the order of `FAMILIES`."""
    return [fit_family(family, intervals) for family in FAMILIES]


def log_survival(fit: Fit, times: Floats) -> Floats:
    """Return ln S of a fitted family at times in the unit of its intervals."""
    family = next(each for each in FAMILIES if each.name == fit.family)
    return np.asarray(family.survival(times, np.array(list(fit.parameters.values()))))


def page_intervals(histories: Histories, *, least: int) -> dict[str, Intervals]:
    """Return the intervals of each page that has at least `least` complete ones.

    The period ends with the last change of any page.
    """
    end, found = float(histories.changed_at.max(initial=0.0)), {}
    for name, times in zip(histories.page_ids, histories.page_times, strict=True):
        if len(times) > least:
            ended = np.maximum(np.diff(times), LEAST_INTERVAL_S)
            open_s = np.array([end - times[-1]])
            found[name] = Intervals(ended, open_s[open_s > 0])
    return found


def pooled(pages: list[Intervals]) -> Intervals:
    """Return the intervals of all pages, each relative to the mean of its page."""
    relative = [page.relative() for page in pages]
    return Intervals(
        np.concatenate([page.ended for page in relative]),
        np.concatenate([page.censored for page in relative]),
    )


def observed_survival(intervals: Intervals, times: Floats) -> Floats:
    """Return the share of intervals longer than each time (Kaplan and Meier, JASA 1958)."""
    ends = np.concatenate([intervals.ended, intervals.censored])
    is_end = np.arange(len(ends)) < len(intervals.ended)
    order = np.lexsort((~is_end, ends))
    at_risk = len(ends) - np.arange(len(ends))
    steps = np.where(is_end[order], 1.0 - 1.0 / at_risk, 1.0)
    survival = np.concatenate([[1.0], np.cumprod(steps)])
    return np.asarray(survival[np.searchsorted(ends[order], times, side="right")])
