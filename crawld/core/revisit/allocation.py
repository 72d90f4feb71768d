"""Revisit frequencies under a bandwidth: uniform, proportional, optimal, and optimal and polite.

The optimum maximises Σ w F(λ, f) under Σ f ≤ C and, if polite, Σ over a host ≤ its ceiling. Each
page then has one price: f > 0 where (w/λ)·g(λ/f) = μ_h, f = 0 where w/λ ≤ μ_h. μ_h = μ for hosts
below their ceiling; a host at its ceiling ("held") has its own μ_h > μ (OPT_POLITE).

A set of pages that shares one price is a *pool*: each held host is a pool, all other hosts together
are one. `optimal_prices.py` finds the prices of all pools, in time linear in the pages.

Source: Cho & Garcia-Molina, TODS 2003, section 5 (who solve N + 1 equations); PUC-Rio dissertation,
chapter 4, for the ceilings. The pools and their solution are ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crawld.core.revisit.freshness import Order, mean_freshness, visit_share
from crawld.core.revisit.optimal_prices import solve_pools
from crawld.core.revisit.pages_by_host import PagesByHost

Floats = NDArray[np.float64]

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Allocation:
    """Revisit frequencies and their prices.

    Attributes:
        frequency: f of each page, per second, in the order of the input.
        price: μ_h of each host, weighted fresh seconds a visit.
        common_price: μ of the hosts below their ceiling; 0 if all hosts are held.
        spent: Σ f of each host, per second.
    """

    frequency: Floats
    price: Floats
    common_price: float
    spent: Floats


def uniform(pages: int, bandwidth: float) -> Floats:
    """Return the same frequency for every page, per second."""
    return np.full(pages, bandwidth / pages if pages else 0.0)


def proportional(change_rate: ArrayLike, bandwidth: float) -> Floats:
    """Return f ∝ λ, per second: plausible, but worse than uniform.

    Source: Cho & Garcia-Molina, TODS 2003, section 5.2.
    """
    rate = np.asarray(change_rate, dtype=np.float64)
    total = rate.sum()
    return uniform(len(rate), bandwidth) if total == 0 else rate * (bandwidth / total)


def ceilings_within(web: PagesByHost, limits: Iterable[tuple[NDArray[np.bool_], float]]) -> Floats:
    """Return the most visits per second to each host where sets of hosts share limits.

    What a set gets at most is divided as if it were alone, at a price of its own. With a lower
    price of all no host of the set would get more than that, and with a higher one the limit of the
    set holds nobody up: so hosts with these ceilings are allocated as with the limits.

    Args:
        limits: hosts that share a limit, one element a host, and its visits per second; of two sets
            with common hosts the smaller one first, and it lies inside the other.
    """
    ceiling = web.ceiling.copy()
    for inside, visits_per_s in limits:
        if ceiling[inside].sum() > visits_per_s:
            shared = replace(web, ceiling=ceiling).part(inside)
            ceiling[inside] = allocate(shared, visits_per_s).spent
    return ceiling


def allocate(web: PagesByHost, bandwidth: float) -> Allocation:
    """Return the frequencies of highest weighted freshness that exceed no host's ceiling.

    Args:
        bandwidth: C, visits per second, ≥ 0; above the sum of the ceilings all hosts are held.

    Returns:
        Frequencies with Σ f = min(C, Σ ceilings of the hosts that have a page with wλ > 0).

    Raises:
        ValueError: the bandwidth is negative, or infinite while a host has no ceiling.

    Source: PUC-Rio dissertation, chapter 4 (OPT_POLITE).
    """
    if not bandwidth >= 0:
        raise ValueError("the bandwidth is negative or not a number")
    alive = web.best_value_limit() > 0
    ceilings = web.ceiling[alive].sum()
    if np.isinf(bandwidth) and np.isinf(ceilings):
        raise ValueError("an infinite bandwidth needs a ceiling on every host")
    frequency, price, common = solve_pools(web, min(bandwidth, ceilings))
    spent = np.bincount(web.host_of_page(), frequency, web.hosts).astype(np.float64)
    return Allocation(frequency, price, common, spent)


def kkt_residual(web: PagesByHost, bandwidth: float, allocation: Allocation) -> float:
    """Return how far an allocation is from the conditions of the optimum.

    Returns:
        The largest of |w g(λ/f)/λ − μ_h|/μ_h over pages with f > 0, (w/λ − μ_h)⁺/μ_h over pages
        with f = 0 and λ > 0, the relative excess over a ceiling and over the bandwidth, the
        relative unused bandwidth, and the slack of held hosts.

    Source: Karush-Kuhn-Tucker conditions of the concave problem; PUC-Rio dissertation, chapter 4.
    """
    worst = 0.0
    host = web.host_of_page()
    for first in range(0, len(host), _BLOCK):
        part = slice(first, first + _BLOCK)
        rate, f = web.change_rate[part], allocation.frequency[part]
        worth, price = web.value_limit(part), allocation.price[host[part]]
        with np.errstate(divide="ignore", invalid="ignore"):
            marginal = worth * visit_share(rate / f)
            gap = np.where(f > 0, np.abs(marginal - price), np.maximum(worth - price, 0.0)) / price
        worst = max(worst, float(np.max(gap[worth > 0], initial=0.0)))
    return max(worst, _slack(web, bandwidth, allocation))


def _slack(web: PagesByHost, bandwidth: float, allocation: Allocation) -> float:
    """Return the largest relative violation of the sums."""
    alive = web.best_value_limit() > 0
    target = min(bandwidth, web.ceiling[alive].sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        over = np.nan_to_num((allocation.spent - web.ceiling) / web.ceiling, nan=0.0, neginf=0.0)
        own = allocation.price > allocation.common_price * (1 + 1e-9)
    held = alive & own & np.isfinite(web.ceiling)
    total = abs(allocation.spent.sum() - target) / target if target > 0 else 0.0
    return max(float(total), float(over.max(initial=0.0)), float((-over[held]).max(initial=0.0)))


def objective(web: PagesByHost, frequency: Floats) -> float:
    """Return the weighted mean freshness of equally spaced visits at some frequencies."""
    total, weight = 0.0, 0.0
    for first in range(0, len(frequency), _BLOCK):
        part = slice(first, first + _BLOCK)
        fresh = mean_freshness(Order.FIXED, web.change_rate[part], frequency[part])
        w = np.ones_like(fresh) if web.weight is None else web.weight[part]
        total, weight = total + float(fresh @ w), weight + float(w.sum())
    return total / weight if weight else 1.0
