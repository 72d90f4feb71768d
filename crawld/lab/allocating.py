"""The allocation of a host, repeated over a simulated period as the daemon's job repeats it.

It uses the same functions (`core/revisit/host_allocation.py`), the models that visits have updated,
and the same rules: every hour; few visits since the last whole allocation change the frequencies of
the visited pages only, at its price. An hour without a visit would change nothing and is left out.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from crawld.core.change.model import PageModel
from crawld.core.change.record import Records, records_of
from crawld.core.revisit.host_allocation import (
    EVERY_S,
    AllocationPages,
    allocate_hosts,
    frequency_at_price,
    least_frequency,
    most_visited,
)
from crawld.core.revisit.registry import FrequencyPolicy

_HOST: Final = 1


class RepeatedAllocation:
    """The allocations of one host with pages of one site, all of importance 1."""

    def __init__(self, policy: FrequencyPolicy, models: list[PageModel], slot_s: float) -> None:
        """Start without an allocation.

        Args:
            models: of the pages, by page number; visits update them.
            slot_s: time between two turns, seconds.
        """
        self._policy = policy
        self._models = models
        self._slot_s = slot_s
        self._next_at = -math.inf
        self._price: float | None = None
        self._pages = 0
        self._visited: set[int] = set()
        self._is_new = True

    def record_visit(self, page: int) -> None:
        """Note that the model of a page has changed."""
        self._visited.add(page)
        self._is_new = True

    def run_until(self, at: float) -> None:
        """Allocate if it is time (Unix seconds) to."""
        if at < self._next_at:
            return
        self._next_at = at + EVERY_S
        if not self._is_new:
            return
        self._is_new = False
        if self._price is not None and len(self._visited) <= most_visited(self._pages):
            self._at_price(self._price)
        else:
            self._all()

    def _records(self, pages: list[int]) -> Records:
        return records_of(self._models[page].to_bytes() for page in pages)

    def _all(self) -> None:
        known = [page for page, model in enumerate(self._models) if model.visits]
        if not known:
            return
        pages = AllocationPages.of_models(
            np.array(known, np.int64),
            self._records(known),
            np.ones(len(known)),
            host=_HOST,
            site=1,
            follows=True,
        )
        found = allocate_hosts(pages, {_HOST: self._slot_s}).allocation
        self._policy.set_frequencies(pages.page, found.frequency)
        self._price, self._pages = float(found.price[0]), len(known)
        self._visited.clear()

    def _at_price(self, price: float) -> None:
        pages = sorted(self._visited)
        weights = np.ones(len(pages))
        least = least_frequency(weights, 1.0 / (self._slot_s * self._pages), math.inf)
        frequency = frequency_at_price(self._records(pages), price, weights, least, follows=True)
        self._policy.set_frequencies(pages, frequency)
