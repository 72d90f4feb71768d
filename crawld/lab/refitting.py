"""The models of a site and of its pages, fitted again over a simulated period as the daemon does.

The daemon's `estimate` job fits them every six hours to a sample of what is known, and gives them
to the policy of each host. The function (`core/change/site_model.py`) and the sample are the same.
The rule that keeps a fit while little is new is the same, too.
"""

from __future__ import annotations

import math

import numpy as np

from crawld.core.change.model import PageModel
from crawld.core.change.record import records_of
from crawld.core.change.site_model import (
    FIT_EVERY_S,
    SAMPLE_NEWEST,
    SAMPLE_PAGES,
    LastFit,
    fit_sample,
)
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.lab.scenario import Scenario


class RepeatedFit:
    """The fits of one site with one host, under INDEX."""

    def __init__(self, policy: IndexPolicy, models: list[PageModel], scenario: Scenario) -> None:
        """Start with what was known before the period.

        Args:
            models: of the pages, by page number; visits update them.
        """
        self._policy = policy
        self._models = models
        self._next_at = -math.inf
        self._known: list[list[float]] = []
        for page in range(scenario.pages):
            times = scenario.histories.page(page)
            self._known.append(times[times < scenario.start].tolist())
        self._count = sum(map(len, self._known))
        self._fitted = LastFit(self._count, scenario.start, self._count)
        # A site with more pages than the sample has: any of them, the same in each fit.
        rng = np.random.default_rng(scenario.seed)
        self._order: list[int] = rng.permutation(scenario.pages).tolist()

    def record_visit(self, page: int, changed_at: list[float]) -> None:
        """Note the changes that a visit found, the oldest first."""
        known = self._known[page]
        latest = known[-1] if known else -math.inf
        new = [at for at in changed_at if at > latest]
        known += new
        self._count += len(new)

    def run_until(self, at: float) -> None:
        """Fit the models if it is time (Unix seconds) to."""
        if at < self._next_at:
            return
        of_both = self._fitted.is_due(self._count, at)
        if not of_both and not self._fitted.is_hawkes_due(self._count):
            return
        self._next_at = at + FIT_EVERY_S
        self._fitted = self._fitted.followed_by(self._count, at, of_both=of_both)
        known = [page for page in self._order if self._known[page]]
        chosen = sorted(known[:SAMPLE_PAGES])
        sample = [self._known[page][-SAMPLE_NEWEST:] for page in chosen]
        visited_at = [self._models[page].last_visit_at for page in chosen]
        until = [
            self._policy.known_until(page, visited, at)
            for page, visited in zip(chosen, visited_at, strict=True)
        ]
        kept = None if of_both else self._policy.site_model.scale
        model = fit_sample(sample, until, scale=kept)
        if model is None:
            return
        self._policy.set_site_model(model)
        held = sorted(page for page in known if self._models[page].visits)
        self._policy.set_models(held, records_of(self._models[page].to_bytes() for page in held))
