"""Computes the prices of an optimal allocation for all hosts, in a few passes over the pages.

A *pool* is a set of pages that shares one price and must spend a given bandwidth: each host held at
its ceiling is a pool (number h + 1), all other hosts together are pool 0. The price of a pool is
written μ = (1 − e^(−s))·max(w/λ), s in (0, ∞): for the best page x − ln(1 + x) = s exactly, so that
even a bandwidth too small to change μ by one rounding has its own s.

1. The pages of a host are grouped by log(λ/w), one group per eighth of an octave. Bisection on
   these few groups finds the price of every host, the common price, and which hosts are held, to
   three digits or better.
2. Newton steps on ln s against ln Σf, all open pools in one pass over their pages, inside a
   bracket. Each step squares the error: two or three passes in practice. The sum of pool 0 counts
   min(share, ceiling) for each host, so that it is correct even before the held hosts are known.
3. Hosts of pool 0 above their ceiling become held and get their own price by step 2; hosts held in
   error return to pool 0; and all of it repeats.

A page that changes very fast enters at the price w/λ with a jump: f goes from 0 to λ/36 within one
rounding of the price. If the target is inside such a jump, the bracket collapses, and the
frequencies are interpolated between its two ends: prices stay equal to rounding, sums exact.

Pages are read in blocks that fit the cache. Invariant: low ≤ ln s ≤ high for every pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.revisit.pages_by_host import PagesByHost
from crawld.core.revisit.price import changes_per_visit

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_BLOCK = 1 << 15
_CELLS_PER_OCTAVE = 8
_CELLS = 1024
_BISECTIONS = 44
_PASSES = 200
_TOLERANCE = 1e-9
_COLLAPSED = 1e-12
_MIXING_STEPS = 60
_LOG_S_MOST = 690.0
_LOG_ONE = 30.0
"""From here on e^(−s) is near the rounding of 1."""

_SURELY_HELD = 1.05
"""A host is held from the start if its price by the groups exceeds the common price by this
factor."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """Pages of similar w/λ of one host, as one page: host, Σ λ, and the mean λ/w weighted by λ."""

    host: NDArray[np.int64]
    rate: Floats
    ratio: Floats


def solve_pools(web: PagesByHost, bandwidth: float) -> tuple[Floats, Floats, float]:
    """Return the frequency of each page, the price of each host, and the common price.

    Args:
        bandwidth: C per second, at most the sum of the ceilings of hosts worth a visit.

    Returns:
        f per page (per second), μ_h per host, μ (0 if every host is held).
    """
    pools = _Pools(web)
    pools.start(bandwidth)
    for _ in range(_PASSES):
        pools.converge(bandwidth)
        if not pools.correct():
            break
    return pools.frequencies(bandwidth), pools.prices(), pools.common_price


def _frequency(rate: Floats, q: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Return f and −df/d ln s of pages with q = (best w/λ of the pool)/(their w/λ) ≥ 1."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        share = -q * np.expm1(-s)
        left = 1.0 - share
        log_share = -np.log1p(-np.minimum(share, 1.0))
        falling = s * q * np.exp(-s) / left
        if np.any(s > _LOG_ONE):  # below rounding, only the best page can be distinguished
            best = q == 1.0
            log_share, falling = np.where(best, s, log_share), np.where(best, s, falling)
        x = changes_per_visit(log_share)
        f = rate / x
        slope = f * falling * (1.0 + x) / (x * x)
    live = (left > 0.0) | (q == 1.0)
    return np.where(live, f, 0.0), np.where(live, slope, 0.0)


class _Pools:
    """The solver's state for one allocation."""

    def __init__(self, web: PagesByHost) -> None:
        self._web = web
        self._host = web.host_of_page()
        self._best = web.best_value_limit()
        self._alive = self._best > 0
        self._held = np.zeros(web.hosts, dtype=bool)
        # Pool 0 is common, pool h + 1 is host h.
        self._log_s = np.zeros(web.hosts + 1)
        self._low = np.full(web.hosts + 1, -_LOG_S_MOST)
        self._high = np.full(web.hosts + 1, _LOG_S_MOST)
        self._spent = np.zeros(web.hosts)

    @property
    def common_price(self) -> float:
        """μ; 0 if every host is held."""
        if not self._free.any():
            return 0.0
        return float(-np.expm1(-np.exp(self._log_s[0])) * self._best[self._free].max())

    @property
    def _free(self) -> Mask:
        return self._alive & ~self._held

    def prices(self) -> Floats:
        """Return μ_h of every host."""
        own = -np.expm1(-np.exp(self._log_s[1:])) * self._best
        return np.where(self._held, own, self.common_price)

    # --- step 1 ---------------------------------------------------------------------------------

    def start(self, bandwidth: float) -> None:
        """Find which hosts are held, and ln s of every pool, from groups of pages."""
        groups = self._group_pages()
        everyone = np.ones(len(groups.host), dtype=bool)
        self._log_s[1:] = _bisect(groups, everyone, groups.host, self._best, self._web.ceiling)
        own = np.where(self._alive, -np.expm1(-np.exp(self._log_s[1:])) * self._best, 0.0)
        # Σ min(share at μ, ceiling) falls with μ: hosts are held in order of decreasing price.
        order = np.argsort(-own)
        low, high = 0, int(np.count_nonzero(self._alive))
        while low < high:
            middle = (low + high) // 2
            share = _host_share(groups, own[order[middle]], self._web.hosts)
            # A host spends its ceiling at its own price, even if the rounded sum does not show it.
            spent = np.where(self._alive, np.minimum(share, self._web.ceiling), 0.0)
            spent[order[: middle + 1]] = self._web.ceiling[order[: middle + 1]]
            low, high = (middle + 1, high) if spent.sum() <= bandwidth else (low, middle)
        everyone_held = bandwidth >= self._web.ceiling[self._alive].sum()
        least = order[min(low, max(int(np.count_nonzero(self._alive)) - 1, 0))]
        common = own[least]
        self._held = self._alive & (everyone_held | (own > common * _SURELY_HELD))
        self._held &= np.isfinite(self._web.ceiling)
        self._start_common(groups, bandwidth)

    def _start_common(self, groups: _Groups, bandwidth: float) -> None:
        free = self._free
        if not free.any():
            return
        one = np.zeros(len(groups.host), np.int64)
        target = np.array([max(self._common_target(bandwidth), 0.0)])
        best = np.array([self._best[free].max()])
        self._log_s[0] = _bisect(groups, free[groups.host], one, best, target)[0]

    def _common_target(self, bandwidth: float) -> float:
        return float(bandwidth - self._web.ceiling[self._held].sum())

    def _group_pages(self) -> _Groups:
        keys, rates, ratios = [], [], []
        origin = -np.log2(self._best.max(initial=0.0) or 1.0)
        for part in self._blocks():
            worth = self._web.value_limit(part)
            alive = worth > 0
            ratio, rate = 1.0 / worth[alive], self._web.change_rate[part][alive]
            cell = np.clip((np.log2(ratio) - origin) * _CELLS_PER_OCTAVE, 0, _CELLS - 1)
            key = self._host[part][alive].astype(np.int64) * _CELLS + cell.astype(np.int64)
            found, inverse = np.unique(key, return_inverse=True)
            keys.append(found)
            rates.append(np.bincount(inverse, rate, len(found)))
            ratios.append(np.bincount(inverse, rate * ratio, len(found)))
        if not keys:
            return _Groups(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        found, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        total = np.bincount(inverse, np.concatenate(rates), len(found)).astype(np.float64)
        ratio = np.bincount(inverse, np.concatenate(ratios), len(found)) / total
        return _Groups(found // _CELLS, total, ratio)

    def _blocks(self) -> list[slice]:
        return [slice(k, k + _BLOCK) for k in range(0, len(self._host), _BLOCK)]

    # --- step 2 ---------------------------------------------------------------------------------

    def converge(self, bandwidth: float) -> None:
        """Bring every pool's sum to its target."""
        target = self._targets(bandwidth)
        open_ = np.concatenate([[self._free.any()], self._held]) & (target > 0)
        # With nothing to spend, the price is that of the best page.
        nothing = (target <= 0) & ~open_
        self._log_s[nothing] = self._low[nothing] = self._high[nothing] = _LOG_S_MOST
        for _ in range(_PASSES):
            if not open_.any():
                return
            share, slope = self._sums(open_)
            open_ &= self._newton_step(open_, share, slope, target)

    def _sums(self, open_: Mask) -> tuple[Floats, Floats]:
        """Return Σf and −dΣf/d ln s of every open pool."""
        spent, slope = np.zeros(self._web.hosts), np.zeros(self._web.hosts)
        for part, f, falling in self._frequencies_by_block(open_):
            host = self._host[part]
            first, last = host[0], host[-1] + 1
            spent[first:last] += np.bincount(host - first, f, last - first)
            slope[first:last] += np.bincount(host - first, falling, last - first)
        free, ceiling = self._free, self._web.ceiling
        common = np.minimum(spent, ceiling)[free].sum()
        moving = slope[free & (spent < ceiling)].sum()
        return np.concatenate([[common], spent]), np.concatenate([[moving], slope])

    def _frequencies_by_block(self, open_: Mask) -> Iterator[tuple[slice, Floats, Floats]]:
        """Yield f and its slope for the pages of open pools, block by block."""
        pool_of_host = np.where(self._held, np.arange(self._web.hosts) + 1, 0)
        wanted = open_[pool_of_host] & self._alive
        s = np.exp(self._log_s)[pool_of_host]
        best = np.where(self._held, self._best, self._best[self._free].max(initial=0.0))
        for part in self._blocks():
            host = self._host[part]
            if not wanted[host[0] : host[-1] + 1].any():
                continue
            with np.errstate(divide="ignore", invalid="ignore"):
                q = np.where(wanted, best, np.inf)[host] / self._web.value_limit(part)
            yield part, *_frequency(self._web.change_rate[part], q, s[host])

    def _newton_step(self, open_: Mask, share: Floats, slope: Floats, target: Floats) -> Mask:
        """Move ln s of the open pools by one guarded Newton step; return which stay open."""
        low, high, at = self._low, self._high, self._log_s
        low[open_ & (share > target)] = at[open_ & (share > target)]
        high[open_ & (share <= target)] = at[open_ & (share <= target)]
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = np.log(share / target)
            proposed = at + gap * share / slope
        inside = (proposed > low) & (proposed < high)
        following = np.where(inside, proposed, 0.5 * (low + high))
        met = np.abs(gap) < _TOLERANCE
        low[open_ & met] = high[open_ & met] = at[open_ & met]
        done = met | (high - low < _COLLAPSED)
        at[open_ & ~met] = np.where(done, high, following)[open_ & ~met]
        return np.asarray(~done, dtype=np.bool_)

    # --- step 3 ---------------------------------------------------------------------------------

    def correct(self) -> bool:
        """Move hosts on the wrong side of their ceiling; return whether there were any."""
        common = self.common_price
        own = -np.expm1(-np.exp(self._log_s[1:])) * self._best
        cheap = self._held & (own < common * (1 - 1e-12))
        spent = np.bincount(self._host, self._frequency_now(), self._web.hosts)
        over = self._free & (spent > self._web.ceiling * (1 + 1e-12))
        self._held = (self._held | over) & ~cheap
        moved = bool(cheap.any() or over.any())
        if moved:
            # If the best page of pool 0 left with its host, the same price has another s.
            best = self._best[self._free].max(initial=0.0)
            part = min(common / best, 1.0 - 1e-15) if best > 0 else 0.5
            self._log_s[0] = np.log(-np.log1p(-max(part, 1e-300)))
            self._low[0], self._high[0] = -_LOG_S_MOST, _LOG_S_MOST
        return moved

    def _frequency_now(self) -> Floats:
        everyone = np.ones(self._web.hosts + 1, dtype=bool)
        return self._frequency_at(self._log_s, everyone)

    def _frequency_at(self, log_s: Floats, open_: Mask) -> Floats:
        held_log_s, self._log_s = self._log_s, log_s
        out = np.zeros(len(self._host))
        for part, f, _ in self._frequencies_by_block(open_):
            out[part] = f
        self._log_s = held_log_s
        return out

    def frequencies(self, bandwidth: float) -> Floats:
        """Return f per page, each pool scaled to its exact sum."""
        f = self._frequency_now()
        pools = np.concatenate([[self._free.any()], self._held])
        collapsed = pools & (self._high > self._low)
        if collapsed.any():
            self._interpolate(f, collapsed, bandwidth)
        self._scale(f, bandwidth)
        return f

    def _interpolate(self, f: Floats, collapsed: Mask, bandwidth: float) -> None:
        """Mix the two ends of collapsed brackets so that each pool meets its target."""
        more = self._frequency_at(self._low, collapsed)
        less_sum = np.bincount(self._host, f, self._web.hosts)
        rise = np.maximum(np.bincount(self._host, more, self._web.hosts) - less_sum, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.nan_to_num((self._web.ceiling - less_sum) / rise, nan=0.0)
        # A held host takes its part of the jump, up to its ceiling; pool 0 jumps together.
        room = np.clip(room, 0.0, 1.0)
        mix = np.where(self._held & collapsed[1:], room, 0.0)
        if collapsed[0]:
            free, target = self._free, max(self._common_target(bandwidth), 0.0)
            low, high = 0.0, 1.0
            for _ in range(_MIXING_STEPS):
                middle = 0.5 * (low + high)
                spent = less_sum + np.minimum(middle, room) * rise
                low, high = (low, middle) if spent[free].sum() > target else (middle, high)
            mix = np.where(free, np.minimum(high, room), mix)
        for part in self._blocks():
            own = mix[self._host[part]]
            f[part] = np.where(own > 0, f[part] + own * (more[part] - f[part]), f[part])

    def _scale(self, f: Floats, bandwidth: float) -> None:
        """Remove the rounding error of each pool's sum."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = self._targets(bandwidth) / self._pool_sums(f)
        scale = np.where(np.isfinite(scale), scale, 0.0)
        scale_of_host = np.where(self._held, scale[1:], scale[0])
        for part in self._blocks():
            f[part] *= scale_of_host[self._host[part]]

    def _pool_sums(self, f: Floats) -> Floats:
        spent = np.bincount(self._host, f, self._web.hosts)
        return np.concatenate([[spent[self._free].sum()], spent])

    def _targets(self, bandwidth: float) -> Floats:
        common = max(self._common_target(bandwidth), 0.0)
        return np.concatenate([[common], self._web.ceiling])


def _bisect(
    groups: _Groups, member: Mask, pool: NDArray[np.int64], best: Floats, target: Floats
) -> Floats:
    """Return ln s of each pool at which its groups spend its target."""
    rate, ratio, pool = groups.rate[member], groups.ratio[member], pool[member]
    low, high = np.full(len(best), -60.0), np.full(len(best), 60.0)
    q = np.maximum(ratio * best[pool], 1.0)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        f, _ = _frequency(rate, q, np.exp(middle)[pool])
        above = np.bincount(pool, f, len(best)) > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


def _host_share(groups: _Groups, price: float, hosts: int) -> Floats:
    """Return Σ f of each host at a price."""
    share = np.minimum(price * groups.ratio, 1.0)
    with np.errstate(divide="ignore"):
        f = groups.rate / changes_per_visit(-np.log1p(-share))
    return np.bincount(groups.host, np.where(share < 1.0, f, 0.0), hosts).astype(np.float64)
