"""Forecast endpoint: freshness per request budget (`core/revisit/forecast`).

The survival curves of pages come from the file: gaps between exact changes where a history is
known, the rate of the change model elsewhere. Each host has its own budget; budgets are multiples
of what hosts permit now. The computation runs in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, NamedTuple

import numpy as np
from fastapi import APIRouter, Query
from numpy.typing import NDArray
from starlette.exceptions import HTTPException

from crawld.core.change.record import DAY_S, RECORD_DTYPE, is_current
from crawld.core.revisit.forecast import (
    FreshnessForecast,
    HintQuality,
    SurvivalCurves,
    least_budget,
    survival_curves,
)
from crawld.core.revisit.polling import combine_quality, hint_quality
from crawld.daemon.api.schemas.forecast import (
    Forecast,
    ForecastHints,
    ForecastPoint,
    ForecastTarget,
)
from crawld.daemon.daemon import Daemon
from crawld.store.changes import hint, hint_source, sample
from crawld.store.changes.sample import PageSample

BUDGETS: Final = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)

SAMPLE_PAGES: Final = 800
"""Sampled pages over all hosts: freshness to about 0.01, in a second or two."""

MAX_HOSTS: Final = 100
"""The most hosts in a forecast: those with the most pages."""

DEFAULT_HINTS: Final = HintQuality(60.0)
"""Assumed where no source has a record yet: hints one minute late."""

MIN_CHANGES: Final = 3
"""A page with no more exact changes is described by its change model."""

YEAR_S: Final = 365 * DAY_S
SHORTEST_DELAY_S: Final = 1e-3
_BUDGET_LEAST, _BUDGET_MOST = 1e-6, 1e6


class _SiteOnHost(NamedTuple):
    """A site on a host, the delay of the host, and how many sites share its turns."""

    host_id: int
    site_id: int
    delay_s: float
    sites: int

    @property
    def visits_per_s(self) -> float:
        return 1.0 / (self.delay_s * self.sites)


@dataclass(frozen=True, slots=True)
class _PageSet:
    """The pages of a site on a host: a sample of them, their number, and their hints.

    Sites of one host share its turns evenly.
    """

    curves: SurvivalCurves
    pages: int
    place: _SiteOnHost
    hints: HintQuality | None

    def forecast(self, budget: float, hints: HintQuality | None) -> FreshnessForecast:
        share = len(self.curves) / self.pages
        return self.curves.forecast(budget * share * self.place.visits_per_s, hints)


def forecast_routes(daemon: Daemon) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    @router.get("/forecast")
    async def forecast(
        what: str | None = None,
        target: Annotated[float | None, Query(gt=0.0, lt=1.0)] = None,
    ) -> Forecast:
        """Freshness and age per request budget, and the budget that a target needs."""
        counted = [
            (await daemon.database.read(sample.count, place.host_id, place.site_id), place)
            for place in _sites_on_hosts(daemon, what)
        ]
        chosen = sorted((each for each in counted if each[0]), reverse=True)[:MAX_HOSTS]
        if not chosen:
            raise HTTPException(404, f"no page of {what or 'any site'} was visited yet")
        sources = await daemon.database.read(hint_source.list_sources)
        hosts, exact, learnt, now = [], 0, 0, daemon.clock.now()
        limit = max(SAMPLE_PAGES // len(chosen), 1)
        for count, place in chosen:
            rows = await daemon.database.read(sample.sample, *place[:2], limit=limit)
            curves, with_history = await daemon.start.environment.workers.run(_curves_of, rows, now)
            learnt += sum(_is_learnt(row.record) for row in rows)
            own = [
                row
                for row in sources
                if row.host_id == place.host_id and place.site_id in row.site_ids
            ]
            hosts.append(_PageSet(curves, count, place, _combined_hints(own)))
            exact += with_history
        if not exact and not learnt:
            raise HTTPException(
                404,
                f"how pages of {what or 'any site'} change is not known yet: none was visited"
                " twice, and none has a history",
            )
        return await daemon.start.environment.workers.run(_forecast, what, hosts, exact, target)

    return router


def _sites_on_hosts(daemon: Daemon, what: str | None) -> list[_SiteOnHost]:
    """Return the hosts of a site, a host, or all hosts."""
    site_ids = {active.site_id for active in daemon.state.sites.values() if active.name == what}
    return [
        _SiteOnHost(
            host.host_id,
            site_id,
            max(host.base_delay_s(), SHORTEST_DELAY_S),
            len(host.pages),
        )
        for host in daemon.state.hosts.values()
        for site_id in host.pages
        if what is None or site_id in site_ids or (not site_ids and host.slot.host == what)
    ]


def _combined_hints(sources: Sequence[hint_source.SourceRow]) -> HintQuality | None:
    """Return the combined quality of hint sources, as learnt; None: nothing learnt yet."""
    quality: HintQuality | None = None
    for row in sources:
        if row.evidence is not None and row.hint_count:
            known = hint_quality(hint.load_reliability(row.evidence))
            lag_s = known.lag_s or DEFAULT_HINTS.lag_s
            quality = combine_quality(replace(known, lag_s=lag_s), quality)
    return quality


def _curves_of(rows: Sequence[PageSample], now: float) -> tuple[SurvivalCurves, int]:
    gaps = [_gaps(row.change_times, now) for row in rows]
    rates = [_rate(row.record) for row in rows]
    curves = survival_curves(gaps, rates, [row.importance for row in rows])
    return curves, sum(each is not None for each in gaps)


def _gaps(times: Sequence[float], now: float) -> NDArray[np.float64] | None:
    """Return the gaps of the last year, or of all changes if too few, including the open one."""
    known = np.unique(np.minimum(times, now))
    recent = known[known >= now - YEAR_S]
    used = recent if len(recent) > MIN_CHANGES else known
    return np.diff(used, append=now) if len(used) > MIN_CHANGES else None


def _rate(record: bytes | None) -> float:
    if record is None or not is_current(record):
        return 1.0 / YEAR_S
    return max(float(np.frombuffer(record, RECORD_DTYPE)["rate"][0]), 1e-12)


def _is_learnt(record: bytes | None) -> bool:
    """Whether a model has observed its page for some time; before, it equals the prior."""
    if record is None or not is_current(record):
        return False
    [seen] = np.frombuffer(record, RECORD_DTYPE)
    return bool(
        seen["exact_exposure_s"] > 0.0 or seen["unchanged_s"] > 0.0 or np.any(seen["changed"])
    )


def _forecast(
    what: str | None, hosts: Sequence[_PageSet], exact: int, target: float | None
) -> Forecast:
    learnt = [host.hints for host in hosts if host.hints is not None]
    one = learnt[0] if learnt else DEFAULT_HINTS
    return Forecast(
        what=what,
        hosts=len(hosts),
        pages=sum(host.pages for host in hosts),
        sampled=sum(len(host.curves) for host in hosts),
        exact=exact,
        now=_point(hosts, 1.0),
        curve=[_point(hosts, budget) for budget in BUDGETS],
        target=None if target is None else _target(hosts, target),
        hints=ForecastHints(
            learnt=bool(learnt), lag_s=one.lag_s, missed_share=one.missed_share, trust=one.trust
        ),
    )


def _outcome(hosts: Sequence[_PageSet], budget: float, *, hinted: bool) -> tuple[float, float]:
    """Return freshness and mean age (s) of all pages at a budget."""
    forecasts = [
        host.forecast(budget, (host.hints or DEFAULT_HINTS) if hinted else None) for host in hosts
    ]
    # Pages are weighted by importance, hosts by the sum over their pages.
    weights = [host.pages * float(host.curves.weight.mean()) for host in hosts]
    total = max(sum(weights), 1e-12)
    pairs = list(zip(weights, forecasts, strict=True))
    return (
        sum(weight * one.freshness for weight, one in pairs) / total,
        sum(weight * one.age_s for weight, one in pairs) / total,
    )


def _delay_s(hosts: Sequence[_PageSet], budget: float | None) -> float | None:
    delays = {host.place.delay_s for host in hosts}
    return delays.pop() / budget if budget is not None and len(delays) == 1 else None


def _point(hosts: Sequence[_PageSet], budget: float) -> ForecastPoint:
    freshness, age_s = _outcome(hosts, budget, hinted=False)
    hinted, hinted_age_s = _outcome(hosts, budget, hinted=True)
    # A hint may be ignored, so that hints never make the forecast worse.
    return ForecastPoint(
        budget=budget,
        delay_s=_delay_s(hosts, budget),
        requests_per_day=sum(budget * DAY_S * host.place.visits_per_s for host in hosts),
        freshness=freshness,
        age_s=age_s,
        freshness_hinted=max(hinted, freshness),
        age_hinted_s=hinted_age_s if hinted > freshness else age_s,
    )


def _target(hosts: Sequence[_PageSet], freshness: float) -> ForecastTarget:
    plain, hinted = (_budget(hosts, freshness, hinted=hinted) for hinted in (False, True))
    if plain is not None and (hinted is None or hinted > plain):
        hinted = plain
    return ForecastTarget(
        freshness=freshness,
        budget=plain,
        delay_s=_delay_s(hosts, plain),
        budget_hinted=hinted,
        delay_hinted_s=_delay_s(hosts, hinted),
    )


def _budget(hosts: Sequence[_PageSet], freshness: float, *, hinted: bool) -> float | None:
    """Return the least multiple of today's budgets that reaches a freshness; None: none does."""
    return least_budget(
        lambda budget: _outcome(hosts, budget, hinted=hinted)[0],
        freshness,
        least=_BUDGET_LEAST,
        most=_BUDGET_MOST,
        precision=5e-3,
    )
