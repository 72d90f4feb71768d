"""Shapes of sites on which INDEX must not fall behind simpler policies, with seeded histories.

Each shape draws the changes of some pages over a past and one scored year; `compare` simulates the
policies on it. Rates are lognormal, so that a site has pages of all paces. Policies visit equal
pages in the order of their numbers, which chance decides: the mean over several orders of the same
pages tells more than one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from crawld.core.units import DAY_S, YEAR_S
from crawld.errors import OperatorError
from crawld.lab.histories import FloatArray, from_times
from crawld.lab.scenario import Scenario, scenario_of
from crawld.lab.simulate import Task, run

START = 1.2e9
"""Start of the scored year, Unix seconds."""

END = START + YEAR_S
POLICIES = ("uniform", "proportional", "merge-past", "index")
BUDGETS = (0.02, 0.1)
"""Visits a page and day."""

_MEAN_INTERVAL_DAYS, _SPREAD = 33.0, 1.5
_PAST_YEARS = 3.0

Rng = np.random.Generator
Rate = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class Margin:
    """How INDEX stands against the best of the others in one cell.

    Attributes:
        freshness: of each of `POLICIES`, the mean over orders of the pages.
        margin: INDEX minus the best of the others.
    """

    shape: str
    visits_per_page_day: float
    seed: int
    freshness: dict[str, float]
    margin: float


def compare(
    names: Sequence[str], *, pages: int, seeds: Iterable[int], orders: int = 1
) -> Iterable[Margin]:
    """Simulate the policies on shapes of sites, one cell at a time.

    Args:
        orders: of the pages of each site, ≥ 1.

    Raises:
        OperatorError: there is no such shape.
    """
    for name in names:
        if name not in SHAPES:
            raise OperatorError(f"there is no shape {name!r}", hint=f"Shapes: {', '.join(SHAPES)}.")
    for name in names:
        for seed in seeds:
            ordered = [site(name, pages=pages, seed=seed, order=order) for order in range(orders)]
            for budget in BUDGETS:
                yield _margin(ordered, name, budget, seed)


def site(name: str, *, pages: int, seed: int, order: int = 0) -> Scenario:
    """Return the scored year of a site of one of `SHAPES`, its pages in one of many orders."""
    drawn = SHAPES[name](np.random.default_rng(seed), pages)
    if order:
        drawn = [drawn[page] for page in np.random.default_rng([seed, order]).permutation(pages)]
    times = {f"p{page}": times for page, times in enumerate(drawn)}
    return scenario_of(from_times(times), start=START, duration_s=YEAR_S)


def _margin(ordered: Sequence[Scenario], name: str, budget: float, seed: int) -> Margin:
    freshness = {}
    for policy in POLICIES:
        rows = [run(scenario, Task(policy, budget)) for scenario in ordered]
        freshness[policy] = float(np.mean([float(str(row["freshness"])) for row in rows]))
    best = max(value for policy, value in freshness.items() if policy != "index")
    return Margin(name, budget, seed, freshness, freshness["index"] - best)


# --- drawing ------------------------------------------------------------------------------------


def _rates(rng: Rng, pages: int) -> FloatArray:
    """Draw changes per second of pages."""
    return np.exp(rng.normal(0.0, _SPREAD, pages)) / (_MEAN_INTERVAL_DAYS * DAY_S)


def _births(rng: Rng, pages: int) -> FloatArray:
    """Draw when pages of the past were born."""
    return START - _PAST_YEARS * YEAR_S * rng.uniform(0.1, 1.0, pages)


def _poisson(rng: Rng, born: float, most: float, rate: Rate) -> FloatArray:
    """Draw the birth and the changes of a page whose rate varies with time, by thinning.

    Args:
        most: an upper bound of the rate, 1/s. rate: by Unix seconds.
    """
    count = rng.poisson(most * (END - born))
    at = np.sort(rng.uniform(born, END, count))
    return np.concatenate(([born], at[rng.random(count) * most < rate(at)]))


def _steady(rng: Rng, born: float, rate: float) -> FloatArray:
    """Draw the birth and the changes of a Poisson page."""
    at = rng.uniform(born, END, rng.poisson(rate * (END - born)))
    return np.concatenate(([born], np.sort(at)))


def _renewal(rng: Rng, born: float, gaps: Callable[[int], FloatArray]) -> FloatArray:
    """Draw the birth and the changes of a page from its intervals, seconds."""
    at = np.array([born])
    while at[-1] < END:
        at = np.concatenate((at, at[-1] + np.cumsum(np.maximum(gaps(256), 1.0))))
    return at[at < END]


def _joined(*times: FloatArray) -> FloatArray:
    return np.unique(np.concatenate(times))


def _waves(rng: Rng, times: list[FloatArray], runs: int, since: float) -> list[FloatArray]:
    """Add changes by one cause to some pages each, in runs of some hours."""
    run_at, reached = rng.uniform(since, END, runs), rng.beta(0.4, 1.6, runs)
    result = []
    for own in times:
        hit = (run_at > own[0]) & (rng.random(runs) < reached)
        result.append(_joined(own, run_at[hit] + rng.uniform(0.0, 6 * 3600.0, int(hit.sum()))))
    return [at[at < END] for at in result]


# --- shapes -------------------------------------------------------------------------------------


def poisson(rng: Rng, pages: int) -> list[FloatArray]:
    """Changes at random, at a constant rate."""
    return [
        _steady(rng, born, rate)
        for born, rate in zip(_births(rng, pages), _rates(rng, pages), strict=True)
    ]


def self_exciting(rng: Rng, pages: int) -> list[FloatArray]:
    """A change starts a cluster of others within minutes, hours or days."""
    result = []
    for own in poisson(rng, pages):
        at, found = own, [own]
        while len(at):
            at = np.repeat(at, rng.poisson(0.6, len(at)))
            at = at + rng.exponential(10.0 ** rng.uniform(2.5, 5.5, len(at)))
            found.append(at)
        result.append(np.unique(np.concatenate(found)))
    return [at[at < END] for at in result]


def changing_pace(rng: Rng, pages: int) -> list[FloatArray]:
    """Each page takes another rate every hundred days."""
    result = []
    for born in _births(rng, pages):
        rates = _rates(rng, int((END - born) / (100 * DAY_S)) + 1)

        def now(at: FloatArray, born: float = born, rates: FloatArray = rates) -> FloatArray:
            return np.asarray(rates[((at - born) / (100 * DAY_S)).astype(np.int64)])

        result.append(_poisson(rng, born, float(rates.max()), now))
    return result


def working_hours(rng: Rng, pages: int) -> list[FloatArray]:
    """Changes in eight hours of five days of the week."""
    result = []
    for born, rate in zip(_births(rng, pages), _rates(rng, pages), strict=True):

        def now(at: FloatArray, rate: float = rate) -> FloatArray:
            hours = at / 3600.0
            return np.where(((hours % 24) < 8) & ((hours % 168) < 120), 4.2 * rate, 0.0)

        result.append(_poisson(rng, born, 4.2 * rate, now))
    return result


def sections(rng: Rng, pages: int) -> list[FloatArray]:
    """Pages of a section change together, beside their own changes."""
    count = max(pages // 20, 1)
    since = START - _PAST_YEARS * YEAR_S
    together = [_steady(rng, since, rate) for rate in _rates(rng, count).tolist()]
    result = []
    for page, own in enumerate(poisson(rng, pages)):
        shared = together[page % count]
        result.append(_joined(own, shared[shared > own[0]] + rng.uniform(0.0, 600.0)))
    return [at[at < END] for at in result]


def redesigns(rng: Rng, pages: int) -> list[FloatArray]:
    """All pages change at once, 14 times in four years."""
    at = rng.uniform(START - _PAST_YEARS * YEAR_S, END, 14)
    return [_joined(own, at[at > own[0]]) for own in poisson(rng, pages)]


def new_robots(rng: Rng, pages: int) -> list[FloatArray]:
    """Robots edit many pages in the scored year; half a year of past without them."""
    times = [own[own >= START - YEAR_S / 2] for own in self_exciting(rng, pages)]
    born = rng.uniform(START - YEAR_S / 2, START, pages)
    times = [own if len(own) else np.array([at]) for own, at in zip(times, born, strict=True)]
    return _waves(rng, times, 12, START)


def old_robots(rng: Rng, pages: int) -> list[FloatArray]:
    """Robots edit many pages, ten times a year, as they did in the past."""
    return _waves(rng, self_exciting(rng, pages), 40, START - _PAST_YEARS * YEAR_S)


def periodic(rng: Rng, pages: int) -> list[FloatArray]:
    """A page changes after one to two hundred days, each time nearly the same."""
    period_s = np.exp(rng.uniform(0.0, np.log(200.0), pages)) * DAY_S
    result = []
    for born, each in zip(_births(rng, pages), period_s.tolist(), strict=True):

        def gaps(count: int, each: float = each) -> FloatArray:
            return np.asarray(each * rng.uniform(0.95, 1.05, count))

        result.append(_renewal(rng, born - each, gaps))
    return result


def calendar(rng: Rng, pages: int) -> list[FloatArray]:
    """Changes every day, week, month or quarter, one in ten left out."""
    result = []
    for born, days in zip(_births(rng, pages), rng.choice([1, 7, 30, 91], pages), strict=True):
        at = np.arange(born - days * DAY_S, END - 3 * 3600.0, days * DAY_S)
        kept = rng.random(len(at)) < 0.9
        kept[0] = True
        result.append(at[kept] + rng.uniform(0.0, 3 * 3600.0, int(kept.sum())))
    return result


def young_pages(rng: Rng, pages: int) -> list[FloatArray]:
    """Pages born all the time over four years, lively in their first ten days."""
    return _lively_when_young(rng, START - _PAST_YEARS * YEAR_S, pages, days=10.0, later=0.005)


def young_site(rng: Rng, pages: int) -> list[FloatArray]:
    """The same on a site of five weeks, which grows tenfold in the year."""
    return _lively_when_young(rng, START - YEAR_S / 10, pages, days=10.0, later=0.005)


def young_news(rng: Rng, pages: int) -> list[FloatArray]:
    """Pages born all the time over two years, lively for three days and then never again."""
    return _lively_when_young(rng, START - YEAR_S, pages, days=3.0, later=0.0)


def _lively_when_young(
    rng: Rng, since: float, pages: int, *, days: float, later: float
) -> list[FloatArray]:
    result = []
    for born in rng.uniform(since, END - DAY_S, pages):
        pace = np.exp(rng.normal(0.0, 0.7)) / DAY_S

        def rate(at: FloatArray, born: float = born, pace: float = pace) -> FloatArray:
            return pace * (30.0 / days * np.exp(-(at - born) / (days * DAY_S)) + later)

        result.append(_poisson(rng, born, pace * (30.0 / days + later), rate))
    return result


# Written before INDEX ran on them, and never used to choose anything.


def seasons(rng: Rng, pages: int) -> list[FloatArray]:
    """The pace of a page rises and falls tenfold over the year, each with a season of its own."""
    result = []
    for born, rate in zip(_births(rng, pages), _rates(rng, pages), strict=True):
        phase = rng.random()

        def now(at: FloatArray, rate: float = rate, phase: float = phase) -> FloatArray:
            return np.asarray(rate * 10.0 ** np.sin(2 * np.pi * (at / YEAR_S + phase)))

        result.append(_poisson(rng, born, 10.0 * rate, now))
    return result


def clockwork_and_bursts(rng: Rng, pages: int) -> list[FloatArray]:
    """A third of the pages on a timetable, a third in long-tailed bursts, a third never again."""
    drawn = zip(periodic(rng, pages), self_exciting(rng, pages), strict=True)
    return [(regular, bursts, bursts[:1])[page % 3] for page, (regular, bursts) in enumerate(drawn)]


def sudden_growth(rng: Rng, pages: int) -> list[FloatArray]:
    """In the scored year a quiet site becomes five times as lively, page by page."""
    result = []
    for born, rate in zip(_births(rng, pages), _rates(rng, pages) / 3.0, strict=True):
        wakes_at = rng.uniform(START, END)

        def now(at: FloatArray, rate: float = rate, wakes_at: float = wakes_at) -> FloatArray:
            return np.where(at < wakes_at, rate, 5.0 * rate)

        result.append(_poisson(rng, born, 5.0 * rate, now))
    return result


SHAPES: dict[str, Callable[[Rng, int], list[FloatArray]]] = {
    draw.__name__.replace("_", "-"): draw
    for draw in (
        poisson,
        self_exciting,
        changing_pace,
        working_hours,
        sections,
        redesigns,
        new_robots,
        old_robots,
        periodic,
        calendar,
        young_pages,
        young_site,
        young_news,
        seasons,
        clockwork_and_bursts,
        sudden_growth,
    )
}
"""How to draw the changes of the pages of a site, by name."""
