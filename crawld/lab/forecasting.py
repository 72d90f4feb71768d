"""Forecasts of the freshness of a year, made before it, beside what INDEX keeps in the year.

The pages are chosen by the year before. The forecast knows what a daemon knows at the start: the
change models of the pages, the model of the site, and the histories. It is compared with the last
three quarters of the year, since all copies are stale at the start. Two assumptions are told apart:
that pages go on to change as often as before, and how they change, given how often: for the second,
all rates are multiplied by what makes their sum that of the year.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.hawkes import POISSON, SHARED, Hawkes
from crawld.core.change.record import records_of
from crawld.core.revisit.forecast import (
    HintQuality,
    SurvivalCurves,
    gaps_of_last_year,
    survival_curves,
)
from crawld.core.units import DAY_S, YEAR_S
from crawld.errors import OperatorError
from crawld.lab.hint_options import HintOptions
from crawld.lab.histories import Histories
from crawld.lab.scenario import Scenario
from crawld.lab.simulate import Task, run

_START_SHARE: Final = 0.25
"""Part of the year that is not scored."""

Row = dict[str, object]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PagesAtStart:
    """What is known of the pages at the start of the year.

    Attributes:
        rates: by their change models, 1/s. gaps_s: of their histories, None: too few changes.
        site: the self-exciting model of the site.
    """

    rates: Floats
    gaps_s: list[Floats | None]
    site: Hawkes

    def at(self, changes_per_s: float) -> PagesAtStart:
        """Return what would be known if all pages together changed so often."""
        rates = self.rates * (changes_per_s / float(self.rates.sum()))
        known = [page for page, gaps in enumerate(self.gaps_s) if gaps is not None]
        by_gaps = sum(len(gaps) / gaps.sum() for gaps in self.gaps_s if gaps is not None)
        shorter = by_gaps / float(rates[known].sum()) if known else 1.0
        gaps = [None if each is None else each * shorter for each in self.gaps_s]
        return replace(self, rates=rates, gaps_s=gaps)


CURVES: Final[dict[str, Callable[[PagesAtStart], SurvivalCurves]]] = {
    "forecast": lambda known: survival_curves(known.rates, model=known.site, gaps_s=known.gaps_s),
    "model alone": lambda known: survival_curves(known.rates, model=known.site),
    "shared model": lambda known: survival_curves(known.rates, model=SHARED),
    "Poisson": lambda known: survival_curves(known.rates, model=POISSON),
    "gaps, else Poisson": lambda known: survival_curves(
        known.rates, model=POISSON, gaps_s=known.gaps_s, model_gaps=0.0
    ),
}
"""Forecasts by their names: crawld's, those of its parts, and of constant rates."""


def held_out(
    histories: Histories, *, start: float, past_changes: int, most_pages: int, seed: int
) -> Scenario:
    """Return the year after `start` of the pages with so many changes in the year before it.

    Args:
        most_pages: of more, so many are drawn.

    Raises:
        OperatorError: no page had them.
    """
    chosen = histories.changes_in(start - YEAR_S, start) >= past_changes
    chosen &= histories.born_at() < start
    if not chosen.any():
        raise OperatorError(
            f"no page has {past_changes} changes in the year before the period",
            hint="Lower --past-changes, or choose another --from.",
        )
    pages = np.flatnonzero(chosen)
    if len(pages) > most_pages:
        rng = np.random.default_rng(seed)
        pages = np.sort(rng.choice(pages, most_pages, replace=False))
    return Scenario(histories.select(pages), start, start + YEAR_S, seed)


def known_at_start(scenario: Scenario) -> PagesAtStart:
    """Return what a daemon knows that has read all histories up to the start."""
    records = records_of(model.to_bytes() for model in scenario.past_models())
    gaps = []
    for page in range(scenario.pages):
        times = scenario.histories.page(page)
        gaps.append(gaps_of_last_year(times[times < scenario.start], scenario.start))
    return PagesAtStart(records["rate"].astype(np.float64), gaps, scenario.past_site().hawkes)


def compare(
    scenario: Scenario, budgets: Sequence[float], hints: Sequence[HintOptions | None]
) -> list[Row]:
    """Return a row for each kind of hints and budget, and for both assumptions.

    Args:
        budgets: visits per page and day.
        hints: pushed, without false ones; None: no hints.
    """
    known = known_at_start(scenario)
    assumed = {
        "as before": known,
        "as in the year": known.at(scenario.changes / scenario.duration_s),
    }
    curves = {
        changes: {name: make(pages) for name, make in CURVES.items()}
        for changes, pages in assumed.items()
    }
    rows: list[Row] = []
    for told in hints:
        quality = None if told is None else HintQuality(told.lag_s, told.miss)
        for budget in budgets:
            simulated = _simulated(scenario, budget, told)
            visits_per_s = budget * scenario.pages / DAY_S
            for changes, each in curves.items():
                expected = {
                    name: pages.forecast(visits_per_s, quality).freshness
                    for name, pages in each.items()
                }
                rows.append(
                    {
                        "hints": "none" if told is None else str(told),
                        "visits a page and day": budget,
                        "changes": changes,
                        "simulated": simulated,
                        **expected,
                    }
                )
    return rows


def _simulated(scenario: Scenario, budget: float, hints: HintOptions | None) -> float:
    """Return the freshness that INDEX keeps after the start of the year."""
    task = Task("index", budget, hints=hints)
    first = replace(scenario, end=scenario.start + _START_SHARE * scenario.duration_s)
    whole, begun = (float(str(run(each, task)["freshness"])) for each in (scenario, first))
    return (whole - _START_SHARE * begun) / (1.0 - _START_SHARE)
