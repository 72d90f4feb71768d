"""The command of the control socket about what budgets of requests hold (`core/revisit/forecast`).

The laws of pages come from the file: gaps between exact changes where a history is known, the rate
of the change model elsewhere. Each host keeps a budget of its own; budgets are multiples of what
hosts permit now. The sums run on a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, NamedTuple

import numpy as np
from fastapi import APIRouter, Query
from numpy.typing import NDArray
from starlette.exceptions import HTTPException

from crawld.core.change.record import DAY_S, RECORD_DTYPE, VERSION
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
"""Pages looked at, all hosts together: freshness to about a hundredth, in a second or two."""

HOSTS_MOST: Final = 100
"""Hosts looked at; those with the most pages."""

SUPPOSED: Final = HintQuality(60.0)
"""Hints a minute late, where no source was learnt."""

LEAST_CHANGES: Final = 3
"""A page with fewer exact changes is described by its model."""

YEAR_S: Final = 365 * DAY_S
SHORTEST_DELAY_S: Final = 1e-3
_BUDGET_LEAST, _BUDGET_MOST = 1e-6, 1e6


class _Place(NamedTuple):
    """A site on a host: the delay of the host, how many sites share its turns."""

    host_id: int
    site_id: int
    delay_s: float
    sites: int

    @property
    def visits_per_s(self) -> float:
        return 1.0 / (self.delay_s * self.sites)


@dataclass(frozen=True, slots=True)
class _Host:
    """The pages of a site on a host: laws of a sample, how many there are, what asks for them.

    Sites of one host share its turns evenly.
    """

    laws: SurvivalCurves
    pages: int
    place: _Place
    told: HintQuality | None

    def outlook(self, budget: float, told: HintQuality | None) -> FreshnessForecast:
        share = len(self.laws) / self.pages
        return self.laws.forecast(budget * share * self.place.visits_per_s, told)


def forecast_routes(daemon: Daemon) -> APIRouter:
    """Return the route."""
    router = APIRouter()

    @router.get("/forecast")
    async def forecast(
        what: str | None = None,
        target: Annotated[float | None, Query(gt=0.0, lt=1.0)] = None,
    ) -> Forecast:
        """What freshness and age budgets of requests hold; what a target would take."""
        counted = [
            (await daemon.database.read(sample.count, place.host_id, place.site_id), place)
            for place in _places(daemon, what)
        ]
        chosen = sorted((each for each in counted if each[0]), reverse=True)[:HOSTS_MOST]
        if not chosen:
            raise HTTPException(404, f"no page of {what or 'any site'} was visited yet")
        sources = await daemon.database.read(hint_source.list_sources)
        hosts, exact, learnt, now = [], 0, 0, daemon.clock.now()
        limit = max(SAMPLE_PAGES // len(chosen), 1)
        for count, place in chosen:
            rows = await daemon.database.read(sample.sample, *place[:2], limit=limit)
            laws, with_history = await daemon.start.environment.workers.run(_laws, rows, now)
            learnt += sum(_is_learnt(row.record) for row in rows)
            own = [row for row in sources if (row.host_id, row.site_id) == place[:2]]
            hosts.append(_Host(laws, count, place, _told(own)))
            exact += with_history
        if not exact and not learnt:
            raise HTTPException(
                404,
                f"how pages of {what or 'any site'} change is not known yet: none was visited"
                " twice, and none has a history",
            )
        return await daemon.start.environment.workers.run(_forecast, what, hosts, exact, target)

    return router


def _places(daemon: Daemon, what: str | None) -> list[_Place]:
    """Return what is meant: the hosts of a site, a host, or all."""
    site_ids = {active.site_id for active in daemon.state.sites.values() if active.name == what}
    return [
        _Place(
            host.host_id,
            site_id,
            max(host.base_delay_s(), SHORTEST_DELAY_S),
            len(host.pages),
        )
        for host in daemon.state.hosts.values()
        for site_id in host.pages
        if what is None or site_id in site_ids or (not site_ids and host.slot.host == what)
    ]


def _told(sources: Sequence[hint_source.SourceRow]) -> HintQuality | None:
    """Return how the hints of sources come together, as learnt; None where there are none yet."""
    told: HintQuality | None = None
    for row in sources:
        if row.evidence is not None and row.hint_count:
            known = hint_quality(hint.load_reliability(row.evidence))
            lag_s = known.lag_s or SUPPOSED.lag_s
            told = combine_quality(replace(known, lag_s=lag_s), told)
    return told


def _laws(rows: Sequence[PageSample], now: float) -> tuple[SurvivalCurves, int]:
    gaps = [_gaps(row.instants, now) for row in rows]
    rates = [_rate(row.record) for row in rows]
    laws = survival_curves(gaps, rates, [row.importance for row in rows])
    return laws, sum(each is not None for each in gaps)


def _gaps(instants: Sequence[float], now: float) -> NDArray[np.float64] | None:
    """Return the gaps of the last year, or of the changes there are, the open one included."""
    known = np.unique(np.minimum(instants, now))
    recent = known[known >= now - YEAR_S]
    used = recent if len(recent) > LEAST_CHANGES else known
    return np.diff(used, append=now) if len(used) > LEAST_CHANGES else None


def _rate(record: bytes | None) -> float:
    if record is None or not _is_readable(record):
        return 1.0 / YEAR_S
    return max(float(np.frombuffer(record, RECORD_DTYPE)["rate"][0]), 1e-12)


def _is_learnt(record: bytes | None) -> bool:
    """Whether a model has seen a page for some time: until then it says what any page's does."""
    if record is None or not _is_readable(record):
        return False
    [seen] = np.frombuffer(record, RECORD_DTYPE)
    return bool(
        seen["exact_exposure_s"] > 0.0 or seen["unchanged_s"] > 0.0 or np.any(seen["changed"])
    )


def _is_readable(record: bytes) -> bool:
    return len(record) == RECORD_DTYPE.itemsize and record[0] == VERSION


def _forecast(
    what: str | None, hosts: Sequence[_Host], exact: int, target: float | None
) -> Forecast:
    learnt = [host.told for host in hosts if host.told is not None]
    one = learnt[0] if learnt else SUPPOSED
    return Forecast(
        what=what,
        hosts=len(hosts),
        pages=sum(host.pages for host in hosts),
        sampled=sum(len(host.laws) for host in hosts),
        exact=exact,
        now=_point(hosts, 1.0),
        curve=[_point(hosts, budget) for budget in BUDGETS],
        target=None if target is None else _target(hosts, target),
        hints=ForecastHints(
            learnt=bool(learnt), lag_s=one.lag_s, missed_share=one.missed_share, trust=one.trust
        ),
    )


def _held(hosts: Sequence[_Host], budget: float, *, hinted: bool) -> tuple[float, float]:
    """Return freshness and mean age of all pages."""
    outlooks = [host.outlook(budget, (host.told or SUPPOSED) if hinted else None) for host in hosts]
    # A page weighs as it is important, a host as its pages do together.
    weights = [host.pages * float(host.laws.weight.mean()) for host in hosts]
    total = max(sum(weights), 1e-12)
    pairs = list(zip(weights, outlooks, strict=True))
    return (
        sum(weight * one.freshness for weight, one in pairs) / total,
        sum(weight * one.age_s for weight, one in pairs) / total,
    )


def _delay_s(hosts: Sequence[_Host], budget: float | None) -> float | None:
    delays = {host.place.delay_s for host in hosts}
    return delays.pop() / budget if budget is not None and len(delays) == 1 else None


def _point(hosts: Sequence[_Host], budget: float) -> ForecastPoint:
    freshness, age_s = _held(hosts, budget, hinted=False)
    hinted, hinted_age_s = _held(hosts, budget, hinted=True)
    # A hint may be ignored: what is held without it is held with it.
    return ForecastPoint(
        budget=budget,
        delay_s=_delay_s(hosts, budget),
        requests_per_day=sum(budget * DAY_S * host.place.visits_per_s for host in hosts),
        freshness=freshness,
        age_s=age_s,
        freshness_hinted=max(hinted, freshness),
        age_hinted_s=hinted_age_s if hinted > freshness else age_s,
    )


def _target(hosts: Sequence[_Host], freshness: float) -> ForecastTarget:
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


def _budget(hosts: Sequence[_Host], freshness: float, *, hinted: bool) -> float | None:
    """Return the least multiple of today's budgets that holds a freshness."""
    return least_budget(
        lambda budget: _held(hosts, budget, hinted=hinted)[0],
        freshness,
        least=_BUDGET_LEAST,
        most=_BUDGET_MOST,
        precision=5e-3,
    )
