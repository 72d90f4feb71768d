"""The input of a simulation: pages, the scored period, and the past that a policy may know.

Pages that exist by the end of the period take part; pages created inside it count from their
creation. All copies are stale at the start. A policy may know the changes before the start (the
past); a run that uses the period itself is marked as hindsight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.model import PageModel
from crawld.core.change.renewal import (
    EDGES_S,
    Renewal,
    bin_counts,
    exponential_mass,
    fit_counts,
)
from crawld.core.change.site_model import SiteModel, fit_site
from crawld.core.units import YEAR_S
from crawld.errors import OperatorError
from crawld.lab.histories import Histories

Floats = NDArray[np.float64]

_PAGES_FITTED = 4_000
"""Sample size for the models of a large site: enough for seven weights and a shape."""


@dataclass(frozen=True)
class Scenario:
    """Histories and the period that is scored.

    Attributes:
        histories: pages that exist by the end of the period.
        start: start of the period, Unix seconds. end: its end.
        seed: of all draws.
    """

    histories: Histories
    start: float
    end: float
    seed: int = 0

    @property
    def pages(self) -> int:
        """Number of pages."""
        return len(self.histories)

    @property
    def duration_s(self) -> float:
        """Length of the period."""
        return self.end - self.start

    @cached_property
    def born_at(self) -> Floats:
        """Time from which each page counts: the start, or its first change inside."""
        return np.maximum(self.histories.born_at(), self.start)

    @cached_property
    def changes(self) -> int:
        """Number of changes inside the period."""
        return int(self.histories.changes_in(self.start, self.end).sum())

    def past_models(self) -> list[PageModel]:
        """Return the change model of each page after its full history up to the start."""
        models = []
        for index in range(self.pages):
            times = self.histories.page(index)
            known = times[times < self.start].tolist()
            model = PageModel()
            if known:
                model.observe_changes(known, self.start)
            models.append(model)
        return models

    def past_site(self) -> SiteModel:
        """Return the site's models of the past."""
        past = self.histories.before(self.start)
        if len(past) > _PAGES_FITTED:
            chosen = np.random.default_rng(self.seed).choice(
                len(past), _PAGES_FITTED, replace=False
            )
            past = past.select(np.sort(chosen))
        return fit_site(past.changed_at, past.offsets, at=self.start)

    def rates(self, since: float, until: float) -> Floats:
        """Return changes per second of each page over a period; at least half a change."""
        count = self.histories.changes_in(since, until).astype(np.float64)
        return np.maximum(count, 0.5) / (until - since)

    def interval_counts(self, since: float, until: float) -> Floats:
        """Return the number of intervals between changes in each bin, and a little of the prior.

        Returns:
            Shape (pages, bins), each row with a sum > 0: a page without a known interval has those
            of a Poisson page.
        """
        counts = []
        for index in range(self.pages):
            times = self.histories.page(index)
            counts.append(bin_counts(np.diff(times[(times >= since) & (times < until)])))
        return np.array(counts) + 1e-3 * exponential_mass(self.rates(since, until))

    def renewals(self, since: float, until: float) -> Renewal:
        """Return the distribution of the interval between changes of each page over a period."""
        counts, still_open = [], []
        for index in range(self.pages):
            times = self.histories.page(index)
            inside = times[(times >= since) & (times < until)]
            counts.append(bin_counts(np.diff(inside)))
            still_open.append(until - (inside[-1] if len(inside) else since))
        prior = exponential_mass(self.rates(since, until)) + 1e-3
        return fit_counts(np.array(counts), np.array(still_open), prior=prior, edges=EDGES_S)


def scenario_of(
    histories: Histories,
    *,
    start: float | None = None,
    duration_s: float = YEAR_S,
    min_changes: int = 0,
    seed: int = 0,
) -> Scenario:
    """Return the scenario of a period.

    Args:
        start: start of the period; None: the period ends with the last recorded change.
        min_changes: only pages with at least this number of changes inside take part.

    Raises:
        OperatorError: no page takes part, or the period is empty.
    """
    if not (math.isfinite(duration_s) and duration_s > 0):
        raise OperatorError("the duration must be positive", hint="For example --duration 365d.")
    if histories.changed_at.size == 0:
        raise OperatorError("the histories contain no change", hint="Use a file with changes.")
    begin = float(histories.changed_at.max()) - duration_s if start is None else start
    end = begin + duration_s
    chosen = (histories.born_at() < end) & (histories.changes_in(begin, end) >= min_changes)
    if not chosen.any():
        raise OperatorError(
            f"no page has {min_changes} changes in the period",
            hint="Lower --min-changes, or choose another --from or --duration.",
        )
    return Scenario(histories.select(chosen), begin, end, seed)
