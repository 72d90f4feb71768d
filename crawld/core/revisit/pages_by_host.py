"""Pages grouped by host: the input of an allocation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PagesByHost:
    """Pages grouped by host.

    Attributes:
        change_rate: λ per page, per second, ≥ 0; inf: changes faster than any visits.
        offsets: first page of each host and, at the end, the number of pages.
        ceiling: most visits per second to each host (1/P_h), inf = no limit.
        weight: importance of each page; None: all 1.
    """

    change_rate: Floats
    offsets: Indices
    ceiling: Floats
    weight: Floats | None = None

    def __post_init__(self) -> None:
        if len(self.ceiling) != len(self.offsets) - 1:
            raise ValueError("there must be one ceiling a host")
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.change_rate):
            raise ValueError("the offsets do not cover the pages")
        if np.any(np.isnan(self.ceiling)) or np.any(self.ceiling < 0):
            raise ValueError("a ceiling is negative")

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return len(self.ceiling)

    def part(self, inside: NDArray[np.bool_]) -> PagesByHost:
        """Return some of the hosts with their pages; `inside`: one element a host."""
        pages = np.repeat(inside, np.diff(self.offsets))
        counts = np.diff(self.offsets)[inside]
        return PagesByHost(
            self.change_rate[pages],
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            self.ceiling[inside],
            None if self.weight is None else self.weight[pages],
        )

    def host_of_page(self) -> NDArray[np.int32]:
        """Return the host index of each page."""
        return np.repeat(np.arange(self.hosts, dtype=np.int32), np.diff(self.offsets))

    def value_limit(self, part: slice) -> Floats:
        """Return w/λ of some pages, the upper limit of a visit's value; 0 where w or λ is 0."""
        rate = self.change_rate[part]
        weight = 1.0 if self.weight is None else self.weight[part]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(rate > 0, weight / rate, 0.0)

    def best_value_limit(self) -> Floats:
        """Return the largest w/λ of each host; 0 if no visit to it has a value."""
        best = np.zeros(self.hosts)
        filled = np.diff(self.offsets) > 0
        if filled.any():
            worth = self.value_limit(slice(None))
            best[filled] = np.maximum.reduceat(worth, self.offsets[:-1][filled])
        return best
