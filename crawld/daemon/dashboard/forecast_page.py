"""The page of the dashboard about freshness per budget of requests.

A forecast takes a second or two, so it is kept for a while; viewers who ask for the same meanwhile
wait for the one under way.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

import trio
from starlette.exceptions import HTTPException

from crawld.daemon.api.forecast import forecast_of
from crawld.daemon.api.schemas.forecast import Forecast, ForecastPoint
from crawld.daemon.daemon import Daemon
from crawld.daemon.dashboard.view import Parameters, View
from crawld.dashboard.chart import Chart
from crawld.dashboard.line_chart import Axis, Point, Series, line_chart
from crawld.dashboard.words import duration, number, share

KEPT_S: Final = 300.0
NONE_KEPT_S: Final = 30.0
MAX_KEPT: Final = 20
"""Forecasts that are kept, and for how long; that there is none yet, too."""


class Forecasts:
    """Makes forecasts, one at a time, and keeps them for a while."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._lock = trio.Lock()
        self._kept: dict[str | None, tuple[float, Forecast | str]] = {}

    async def get(self, what: str | None) -> Forecast | str:
        """Return the forecast of a site, a host or everything; or why there is none."""
        async with self._lock:
            made_at, found = self._kept.get(what, (0.0, ""))
            kept_s = KEPT_S if isinstance(found, Forecast) else NONE_KEPT_S
            if found and trio.current_time() < made_at + kept_s:
                return found
            made = await self._make(what)
            self._kept.pop(what, None)
            self._kept[what] = trio.current_time(), made
            while len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            return made

    async def _make(self, what: str | None) -> Forecast | str:
        try:
            return await forecast_of(self._daemon, what)
        except HTTPException as error:
            return str(error.detail)


_FORECASTS: WeakKeyDictionary[Daemon, Forecasts] = WeakKeyDictionary()


async def show_forecast(daemon: Daemon, query: Parameters) -> View:
    """Show the forecast curve of everything, a site or a host."""
    what = query.text("what")
    forecasts = _FORECASTS.setdefault(daemon, Forecasts(daemon))
    found = await forecasts.get(what)
    values = {
        "what": what,
        "forecast": None if isinstance(found, str) else found,
        "reason": found if isinstance(found, str) else "",
        "charts": [] if isinstance(found, str) else [_freshness(found), _age(found)],
        "sites": [site.name for site in list(daemon.state.sites.values())[:100]],
    }
    return View("forecast.html", "forecast", "Forecast", values)


def _budget_words(budget: float) -> str:
    return f"{number(budget)} ×"


def _series(points: list[ForecastPoint], plain: str, hinted: str) -> list[Series]:
    def made(name: str) -> list[Point]:
        # The places are even: each budget is one step, as budgets are multiples.
        return [Point(float(place), getattr(each, name)) for place, each in enumerate(points)]

    return [
        Series("with hints", "s1", made(hinted)),
        Series("without hints", "s2", made(plain)),
    ]


def _budget_axis(points: list[ForecastPoint]) -> Axis:
    budgets = [each.budget for each in points]

    def words(place: float) -> str:
        return _budget_words(budgets[round(place)])

    ticks = [(float(place), _budget_words(budget)) for place, budget in enumerate(budgets)]
    return Axis("Budget (1 × is today's)", words, ticks=ticks)


def _freshness(found: Forecast) -> Chart:
    lowest = min(each.freshness for each in found.curve)
    return line_chart(
        "Freshness by budget of requests",
        _series(found.curve, "freshness", "freshness_hinted"),
        _budget_axis(found.curve),
        Axis("Freshness", share, low=max(lowest - 0.02, 0.0), high=1.0),
    )


def _age(found: Forecast) -> Chart:
    return line_chart(
        "Mean age of copies by budget of requests",
        _series(found.curve, "age_s", "age_hinted_s"),
        _budget_axis(found.curve),
        Axis("Mean age", duration, low=0.0),
    )
