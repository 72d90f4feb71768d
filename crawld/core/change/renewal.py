"""Renewal processes from histograms of the intervals between changes.

Works on one page or a stack of pages with common bin edges: `mass` has shape (bins,) or (pages,
bins), and times broadcast against the pages: shape () or (k,) for one page, (pages,) or (pages, k)
for a stack. The density is uniform inside a bin (log-uniform has no mass at 0, where bursts are,
and no closed integrals). So F and S are piecewise linear, their integrals piecewise polynomial, and
everything except the renewal function is exact.

No function returns NaN for an age beyond the last edge. There the process is taken as memoryless
with mean max(m, age): an interval that has lasted this long will last about as long again.

Sources: Wolf et al., WWW 2002 (value of a visit for any distribution); PUC-Rio thesis, 6.1.3 (ten
bins of exponentially growing width) and 6.2.2 (expected fresh time); Xie, Commun. Statist. 1989
(renewal equation by Riemann-Stieltjes sums with midpoints); Turnbull, JRSS B 1976 (self-consistent
estimate with censoring); Wald's identity for the residual life.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Times = npt.ArrayLike

BINS = 10
FIRST_WIDTH_S = 900.0
WIDTH_RATIO = 4.0
_FLOOR = 1e-12
_SELF_CONSISTENT_STEPS = 60
_CELLS_AT_ONCE = 1 << 20
"""Cells of renewal functions in memory at once, 50 bytes each."""


def exponential_edges(
    bins: int = BINS, first_width: float = FIRST_WIDTH_S, ratio: float = WIDTH_RATIO
) -> FloatArray:
    """Return 0 and the upper edges of bins whose widths grow by `ratio`.

    With the defaults: 15 min, 75 min, 5.25 h, 21 h, 3.6 d, 14 d, 57 d, 228 d, 2.5 y, 10 y.
    """
    widths = first_width * ratio ** np.arange(bins)
    return np.concatenate(([0.0], np.cumsum(widths)))


EDGES_S = exponential_edges()
"""Edges of every page's histogram of intervals, seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Renewal:
    """Distribution of the intervals between changes, for one page or a stack of pages.

    Attributes:
        edges: bins + 1 increasing times, the first 0; any unit (seconds, or gap / scale).
        mass: probability of each bin, shape (bins,) or (pages, bins), rows summing to 1.
    """

    edges: FloatArray
    mass: FloatArray

    def cdf(self, x: Times) -> FloatArray:
        """Return F(x), the probability that an interval is at most x."""
        return 1.0 - self.survival(x)

    def survival(self, x: Times) -> FloatArray:
        """Return S(x), the probability that an interval exceeds x; non-increasing in x."""
        at, into, width = self._locate(x)
        begun = _pick(self.survival_at_edges(), at)
        density = _pick(self.mass, at) / width
        return np.maximum(begun - density * into, 0.0)

    def mean(self) -> FloatArray:
        """Return the mean interval, shape () or (pages,)."""
        middles = 0.5 * (self.edges[1:] + self.edges[:-1])
        return np.asarray(self.mass @ middles)

    def second_moment(self) -> FloatArray:
        """Return E[X^2], shape () or (pages,)."""
        low, high = self.edges[:-1], self.edges[1:]
        return np.asarray(self.mass @ ((low * low + low * high + high * high) / 3.0))

    def integrated_survival(self, x: Times) -> FloatArray:
        """Return the integral of S from 0 to x; the mean for x beyond the last edge."""
        at, into, width = self._locate(x)
        begun = _pick(self._integral_at_edges(), at)
        slope = _pick(self.mass, at) / width
        survival = _pick(self.survival_at_edges(), at)
        return begun + into * (survival - 0.5 * slope * into)

    def equilibrium_survival(self, s: Times) -> FloatArray:
        """Return S_e(s), the probability of no change for s after a random time (Wolf 2002)."""
        mean = _like(self.mean(), s)
        return np.clip(1.0 - self.integrated_survival(s) / mean, 0.0, 1.0)

    def visit_value(self, tau: Times) -> FloatArray:
        """Return W(tau), the marginal value of visits every tau; increasing, at most E[X^2]/(2m).

        W(tau) = integral of S_e from 0 to tau - tau S_e(tau) = (1/m) integral of s S(s) ds.
        """
        at, into, width = self._locate(tau)
        slope = _pick(self.mass, at) / width
        survival = _pick(self.survival_at_edges(), at)
        low = self.edges[at]
        inside = into * (
            low * survival + into * (0.5 * (survival - slope * low) - into * slope / 3.0)
        )
        return (_pick(self.moment_at_edges(), at) + inside) / _like(self.mean(), tau)

    def conditional_survival(self, age: Times, s: Times) -> FloatArray:
        """Return Pr[no change for another s | none for `age`]."""
        age, s = np.asarray(age, np.float64), np.asarray(s, np.float64)
        alive = self.survival(age)
        memoryless = np.exp(-s / np.maximum(_like(self.mean(), age), np.maximum(age, _FLOOR)))
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = self.survival(age + s) / alive
        return np.where(alive > _FLOOR, inside, memoryless)

    def residual_mean(self, age: Times) -> FloatArray:
        """Return E[time to the next change | none for `age`]."""
        age = np.asarray(age, np.float64)
        alive = self.survival(age)
        mean = _like(self.mean(), age)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (mean - self.integrated_survival(age)) / alive
        return np.where(alive > _FLOOR, inside, np.maximum(mean, age))

    def _locate(self, x: Times) -> tuple[npt.NDArray[np.intp], FloatArray, FloatArray]:
        clipped = np.clip(np.asarray(x, np.float64), 0.0, self.edges[-1])
        at = np.clip(np.searchsorted(self.edges, clipped, side="right") - 1, 0, len(self.edges) - 2)
        return at, clipped - self.edges[at], self.edges[at + 1] - self.edges[at]

    def survival_at_edges(self) -> FloatArray:
        """Return S at each edge, shape (…, bins + 1)."""
        # Summed from the far end, so that a tail of 1e-12 is not lost in 1 - 0.999….
        tail = np.flip(np.cumsum(np.flip(self.mass, -1), -1), -1)
        return np.concatenate((tail, np.zeros_like(tail[..., :1])), axis=-1)

    def _integral_at_edges(self) -> FloatArray:
        survival = self.survival_at_edges()
        areas = 0.5 * (survival[..., 1:] + survival[..., :-1]) * np.diff(self.edges)
        return np.concatenate((np.zeros_like(areas[..., :1]), areas.cumsum(-1)), axis=-1)

    def moment_at_edges(self) -> FloatArray:
        """Return the integral of s S(s) from 0 to each edge, shape (…, bins + 1)."""
        # The integral of s S(s) over [a, b], S linear: (b-a)/6 (S_a (2a+b) + S_b (a+2b)).
        survival = self.survival_at_edges()
        low, high = self.edges[:-1], self.edges[1:]
        areas = (
            (high - low)
            / 6.0
            * (survival[..., :-1] * (2.0 * low + high) + survival[..., 1:] * (low + 2.0 * high))
        )
        return np.concatenate((np.zeros_like(areas[..., :1]), areas.cumsum(-1)), axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class RenewalFunction:
    """A table of M(y), the expected number of changes within y of a change.

    Attributes:
        grid: increasing times, the first 0.
        expected: M on the grid, shape (points,) or (pages, points).
        mean: mean interval, shape () or (pages,).
        excess: E[X^2] / (2m), the limit of the residual life, same shape as `mean`.
    """

    grid: FloatArray
    expected: FloatArray
    mean: FloatArray
    excess: FloatArray

    def residual_life(self, y: Times) -> FloatArray:
        """Return R(y) = m (1 + M(y)) - y, the expected time from y to the next change (Wald).

        y is the time since a change, with any changes in between; shapes as in `Renewal`. Beyond
        the grid R is its limit E[X^2]/(2m).
        """
        y = np.asarray(y, np.float64)
        at = np.clip(np.searchsorted(self.grid, y, side="right") - 1, 0, len(self.grid) - 2)
        share = (y - self.grid[at]) / (self.grid[at + 1] - self.grid[at])
        low, high = _pick(self.expected, at), _pick(self.expected, at + 1)
        inside = _like(self.mean, y) * (1.0 + low + share * (high - low)) - y
        return np.where(y <= self.grid[-1], np.maximum(inside, 0.0), _like(self.excess, y))


def _pick(table: FloatArray, at: npt.NDArray[np.intp]) -> FloatArray:
    """Return the entries of one page, or of each page of a stack."""
    if table.ndim == 1:
        return np.asarray(table[at])
    pages = np.arange(len(table)).reshape((-1,) + (1,) * (at.ndim - 1))
    return np.asarray(table[pages, at])


def _like(value: FloatArray, x: Times) -> FloatArray:
    """Return a value of each page, shaped to broadcast against times."""
    return value.reshape(value.shape + (1,) * (np.ndim(x) - value.ndim)) if value.ndim else value


def renewal_function(renewal: Renewal, *, horizon: float, points: int = 192) -> RenewalFunction:
    """Solve M = F + F * M numerically for every page of a stack at once.

    The grid is geometric, like the bins, and M is taken as linear in each of its cells: M(t_i) =
    F(t_i) + sum over j of (M(t_j) - M(t_{j-1})) (1 - Q_ij), with Q_ij the mean of S over the ages
    that cell j has at t_i, and the unknown term moved to the left. The source takes F at the middle
    of a cell instead; then cells longer than most intervals divide by nearly 0.

    Args:
        horizon: end of the grid; beyond it the residual life is taken as its limit. Use several
            mean intervals of the slowest page.
        points: points of the grid, > 8; the cost is pages x points^2.

    Source: Xie, Commun. Statist. Simul. 1989 (RS-method), on an uneven grid.
    """
    first = max(renewal.edges[1] / 16.0, horizon * 1e-9)
    grid = np.concatenate(([0.0], np.geomspace(min(first, horizon / 2), horizon, points - 1)))
    stack = Renewal(renewal.edges, np.atleast_2d(renewal.mass))
    at_once = max(_CELLS_AT_ONCE // points**2, 1)
    expected = np.concatenate(
        [
            _expected_changes(Renewal(renewal.edges, stack.mass[begin : begin + at_once]), grid)
            for begin in range(0, len(stack.mass), at_once)
        ]
    )
    single = renewal.mass.ndim == 1
    mean = renewal.mean()
    return RenewalFunction(
        grid, expected[0] if single else expected, mean, renewal.second_moment() / (2.0 * mean)
    )


def _expected_changes(stack: Renewal, grid: FloatArray) -> FloatArray:
    """Return M on the grid, shape (pages, points)."""
    pages, points = len(stack.mass), len(grid)
    ages = np.maximum(grid[:, None] - grid, 0.0).ravel()
    alive = stack.integrated_survival(np.broadcast_to(ages, (pages, ages.size)))
    alive = alive.reshape(pages, points, points)
    missing = (alive[:, :, :-1] - alive[:, :, 1:]) / np.diff(grid)
    whole = stack.cdf(np.broadcast_to(grid, (pages, points)))
    steps = np.zeros((pages, points))
    for i in range(1, points):
        after = np.einsum("pj,pj->p", steps[:, 1:i], missing[:, i, : i - 1])
        steps[:, i] = (whole[:, i] - after) / missing[:, i, i - 1]
    return np.asarray(np.cumsum(steps, axis=1))


def fit(
    gaps: Times,
    *,
    edges: FloatArray = EDGES_S,
    open_gaps: Times = (),
    open_weights: Times = 1.0,
    prior: FloatArray | None = None,
) -> Renewal:
    """Fit one distribution to complete gaps and to gaps still open at the end of observation.

    Args:
        gaps: complete intervals, >= 0; those beyond the last edge count in the last bin.
        edges: bins + 1 increasing times, the first 0.
        open_gaps: ages of the unfinished intervals, >= 0.
        open_weights: number of gaps that each of them represents, >= 0.
        prior: pseudo-counts of the bins, > 0 somewhere; default one log-uniform gap over all bins.

    Returns:
        The self-consistent (Turnbull) estimate: open gaps are spread over the bins beyond them.
    """
    counts = bin_counts(np.asarray(gaps, np.float64), edges)
    pseudo = np.full(len(edges) - 1, 1.0 / (len(edges) - 1)) if prior is None else prior
    base = counts + pseudo
    ages = np.atleast_1d(np.asarray(open_gaps, np.float64))
    weights = np.broadcast_to(np.asarray(open_weights, np.float64), ages.shape)
    share_beyond = bin_share_beyond(ages, edges)
    mass = base / base.sum()
    for _ in range(_SELF_CONSISTENT_STEPS if ages.size else 0):
        total = share_beyond @ mass
        mass = base + mass * ((weights / np.maximum(total, 1e-300)) @ share_beyond)
        mass /= mass.sum()
    return Renewal(edges, mass)


def fit_counts(
    counts: FloatArray,
    open_gap_s: FloatArray,
    *,
    prior: FloatArray,
    edges: FloatArray = EDGES_S,
) -> Renewal:
    """Fit a stack of pages, each from its histogram and its one open gap.

    Args:
        counts: complete gaps in each bin, shape (pages, bins).
        open_gap_s: age of the open gap of each page, >= 0.
        prior: pseudo-counts, shape (pages, bins) or (bins,), with mass in the last bin.

    Returns:
        The stack. One open gap for each page needs few rounds of redistribution.
    """
    base = counts + prior
    share_beyond = bin_share_beyond(open_gap_s, edges)
    mass = base / base.sum(axis=1, keepdims=True)
    for _ in range(12):
        share = share_beyond * mass
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        mass = base + share
        mass /= mass.sum(axis=1, keepdims=True)
    return Renewal(edges, mass)


def exponential_mass(rate: FloatArray, edges: FloatArray = EDGES_S) -> FloatArray:
    """Return the bin probabilities of Poisson pages, shape (pages, bins); the last bin is open.

    Rates are per second, from 0 to infinity.
    """
    changes = np.minimum(np.asarray(rate), 1e6)[..., None] * edges
    survival = np.exp(-np.minimum(changes, 700.0))
    survival[..., -1] = 0.0
    return np.asarray(survival[..., :-1] - survival[..., 1:])


def bin_counts(
    gaps: FloatArray, edges: FloatArray = EDGES_S, weights: FloatArray | None = None
) -> FloatArray:
    """Return the number of gaps in each bin; those beyond the last edge count in the last bin."""
    at = np.clip(np.searchsorted(edges, gaps, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(at, weights, minlength=len(edges) - 1).astype(np.float64)


def bin_share_beyond(ages: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the share of each bin that lies beyond each age, shape (ages, bins); in [0, 1]."""
    capped = np.minimum(ages, 0.5 * (edges[-1] + edges[-2]))
    share = (edges[1:] - capped[:, None]) / np.diff(edges)
    return np.asarray(np.clip(share, 0.0, 1.0), np.float64)
