"""Forecast endpoint: freshness per request budget (`core/revisit/forecast`).

The survival curves of pages come from the self-exciting model of their site and the rates of their
change models, drawn to the gaps between exact changes where a history is known. If sources report
more changes at present than these expect, all rates are raised to that. Each host has its own
budget, what its delay and the rates it shares permit without a back-off; budgets are multiples of
that. The computation runs in a thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, NamedTuple

import numpy as np
from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException

from crawld.core.change.hawkes import Hawkes
from crawld.core.change.record import RECORD_DTYPE, is_current
from crawld.core.revisit.forecast import (
    MIN_CHANGES,
    FreshnessForecast,
    HintQuality,
    SurvivalCurves,
    gaps_of_last_year,
    least_budget,
    survival_curves,
)
from crawld.core.revisit.freshness_now import FreshnessNow
from crawld.core.revisit.polling import combine_quality, hint_quality
from crawld.core.units import DAY_S, YEAR_S
from crawld.daemon.api.parameters import Served
from crawld.daemon.api.schemas.forecast import (
    Forecast,
    ForecastAssumptions,
    ForecastHints,
    ForecastPoint,
    ForecastPresent,
    ForecastTarget,
)
from crawld.daemon.daemon import Daemon
from crawld.daemon.site_models import read_site_model
from crawld.store.changes import hint, hint_source, sample
from crawld.store.changes.sample import PageSample

BUDGETS: Final = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)

SAMPLE_PAGES: Final = 800
"""Sampled pages over all hosts: freshness to about 0.01, in a second or two."""

MAX_HOSTS: Final = 100
"""The most hosts in a forecast: those with the most pages."""

DEFAULT_HINTS: Final = HintQuality(60.0)
"""Assumed where no source has a record yet: hints one minute late."""

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

    def forecast(
        self, budget: float, hints: HintQuality | None, poll_share: float
    ) -> FreshnessForecast:
        share = len(self.curves) / self.pages
        visits_per_s = budget * share * self.place.visits_per_s
        if hints is None:
            return self.curves.forecast(visits_per_s)
        return self.curves.forecast(visits_per_s * (1.0 - poll_share), hints)


class _Pages(NamedTuple):
    """A place, how many pages it has, a sample of them, and what their sources and site learnt."""

    place: _SiteOnHost
    pages: int
    rows: list[PageSample]
    sources: list[hint_source.SourceRow]
    model: Hawkes


class _Changes(NamedTuple):
    """Changes per second of all pages of a host: by histories and models, and as reported."""

    history: float
    reported: float | None

    @property
    def factor(self) -> float:
        """How much oftener pages change than their histories and models say, >= 1."""
        return max((self.reported or 0.0) / self.history, 1.0) if self.history else 1.0


def add_forecast_routes(router: APIRouter) -> None:
    """Add the route."""

    @router.get("/forecast")
    async def forecast(
        daemon: Served,
        what: str | None = None,
        target: Annotated[float | None, Query(gt=0.0, lt=1.0)] = None,
    ) -> Forecast:
        """Freshness and age per request budget, and the budget that a target needs."""
        return await forecast_of(daemon, what, target)


async def forecast_of(daemon: Daemon, what: str | None, target: float | None = None) -> Forecast:
    """Return freshness and age per request budget, of a site, a host or everything.

    Respond 404 while nothing is known of how pages change.
    """
    counted = [
        (await daemon.database.read(sample.count, place.host_id, place.site_id), place)
        for place in _sites_on_hosts(daemon, what)
    ]
    chosen = sorted((each for each in counted if each[0]), reverse=True)[:MAX_HOSTS]
    if not chosen:
        raise HTTPException(404, f"no page of {what or 'any site'} was visited yet")
    sources = await daemon.database.read(hint_source.list_sources)
    limit = max(SAMPLE_PAGES // len(chosen), 1)
    found = []
    for count, place in chosen:
        rows = await daemon.database.read(sample.sample, *place[:2], limit=limit)
        own = [
            row for row in sources if row.host_id == place.host_id and place.site_id in row.site_ids
        ]
        site = await read_site_model(daemon.database, place.site_id)
        found.append(_Pages(place, count, rows, own, site.hawkes))
    run = daemon.start.environment.workers.run
    found_forecast = await run(
        _forecast,
        what,
        found,
        daemon.clock.now(),
        target,
        _poll_share(daemon),
        abandon_on_cancel=True,
    )
    if found_forecast is None:
        raise HTTPException(
            404,
            f"how pages of {what or 'any site'} change is not known yet: none was visited"
            " twice, and none has a history",
        )
    found_forecast.assumptions.hosts_backing_off = _backing_off(daemon, found)
    found_forecast.assumptions.hosts_limited = _limited(daemon, found)
    found_forecast.present = await _present(daemon, what, found)
    return found_forecast


def _sites_on_hosts(daemon: Daemon, what: str | None) -> list[_SiteOnHost]:
    """Return the hosts of a site, a host, or all hosts."""
    site_ids = {active.site_id for active in daemon.state.sites.values() if active.name == what}
    return [
        _SiteOnHost(
            host.host_id,
            site_id,
            daemon.state.rates.usual_turn_every_s(host),
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


def _poll_share(daemon: Daemon) -> float:
    return daemon.config.jobs.poll_share


def _backing_off(daemon: Daemon, found: Sequence[_Pages]) -> int:
    """Return how many hosts are asked less often now than without trouble."""
    host_ids = {each.place.host_id for each in found}
    return sum(
        host.delay_s() > host.base_delay_s()
        for host in daemon.state.hosts.values()
        if host.host_id in host_ids
    )


def _limited(daemon: Daemon, found: Sequence[_Pages]) -> int:
    """Return how many hosts have fewer turns than their delay permits, by a shared rate."""
    host_ids = {each.place.host_id for each in found}
    return sum(
        daemon.state.rates.spacing_s(host.slot) > host.base_delay_s()
        for host in daemon.state.hosts.values()
        if host.host_id in host_ids
    )


async def _present(
    daemon: Daemon, what: str | None, found: Sequence[_Pages]
) -> ForecastPresent | None:
    """Return the present freshness of the sites; None for a host, and where it is not known."""
    known = {each.site_id: each for each in await daemon.background.present_freshness.get()}
    names = {site.name for site in daemon.state.sites.values()}
    sites = [known[key] for key in {each.place.site_id for each in found} & known.keys()]
    if not sites or (what is not None and what not in names):
        return None
    copies = sum(each.copies for each in sites)
    stale = {each.site_id: each.now.reported + each.now.fan_out for each in sites}
    speeds: dict[int, float] = defaultdict(float)
    for each in found:
        speeds[each.place.site_id] += each.place.visits_per_s

    def mean(share: Callable[[FreshnessNow], float]) -> float:
        return sum(each.copies * share(each.now) for each in sites) / copies

    return ForecastPresent(
        freshness=mean(lambda now: now.freshness),
        low=mean(lambda now: now.low),
        high=mean(lambda now: now.high),
        known_stale=sum(stale.values()),
        catch_up_s=max(stale[key] / speeds[key] for key in stale),
    )


def _changes_of(found: Sequence[_Pages]) -> dict[int, _Changes]:
    """Return how often the pages of each host change, by histories and as sources report."""
    history: dict[int, float] = defaultdict(float)
    reported: dict[int, float | None] = defaultdict(lambda: None)
    for each in found:
        host_id = each.place.host_id
        rates = [_mean_rate(row) for row in each.rows]
        history[host_id] += each.pages * sum(rates) / max(len(rates), 1)
        for row in each.sources:
            arrivals = hint.load_reliability(row.evidence).arrivals
            if row.kind == hint.FAN_OUT or row.told_until is None or not arrivals.is_known:
                continue
            shape, exposure_s = arrivals.posterior()
            reported[host_id] = max(reported[host_id] or 0.0, shape / exposure_s)
    return {host_id: _Changes(rate, reported[host_id]) for host_id, rate in history.items()}


def _mean_rate(row: PageSample) -> float:
    times = row.change_times
    if len(times) > MIN_CHANGES and times[-1] > times[0]:
        return (len(times) - 1) / (times[-1] - times[0])
    return _rate(row.record)


def _curves_of(
    rows: Sequence[PageSample], model: Hawkes, now: float, factor: float
) -> tuple[SurvivalCurves, int]:
    gaps = [gaps_of_last_year(row.change_times, now) for row in rows]
    rates = [factor * _rate(row.record) for row in rows]
    shortened = [None if each is None else each / factor for each in gaps]
    weights = [row.importance for row in rows]
    curves = survival_curves(rates, weights, model=model, gaps_s=shortened)
    return curves, sum(each is not None for each in gaps)


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
    what: str | None,
    found: Sequence[_Pages],
    now: float,
    target: float | None,
    poll_share: float,
) -> Forecast | None:
    """Return a forecast, None if nothing is known of how pages change; runs in a thread."""
    changes = _changes_of(found)
    hosts, exact, learnt = [], 0, 0
    for each in found:
        factor = changes[each.place.host_id].factor
        curves, with_history = _curves_of(each.rows, each.model, now, factor)
        exact += with_history
        learnt += sum(_is_learnt(row.record) for row in each.rows)
        hosts.append(_PageSet(curves, each.pages, each.place, _combined_hints(each.sources)))
    if not exact and not learnt:
        return None
    with_hints = [host.hints for host in hosts if host.hints is not None]
    one = with_hints[0] if with_hints else DEFAULT_HINTS
    told = [each.reported for each in changes.values() if each.reported is not None]
    outcomes = _Outcomes(hosts, poll_share)
    return Forecast(
        what=what,
        hosts=len(hosts),
        pages=sum(host.pages for host in hosts),
        sampled=sum(len(host.curves) for host in hosts),
        exact=exact,
        now=outcomes.point(1.0),
        curve=[outcomes.point(budget) for budget in BUDGETS],
        target=None if target is None else outcomes.target(target),
        hints=ForecastHints(
            learnt=bool(with_hints), lag_s=one.lag_s, missed_share=one.missed_share, trust=one.trust
        ),
        assumptions=ForecastAssumptions(
            changes_per_day=DAY_S * sum(each.history * each.factor for each in changes.values()),
            history_changes_per_day=DAY_S * sum(each.history for each in changes.values()),
            reported_changes_per_day=DAY_S * sum(told) if told else None,
            hints=any(row.told_until is not None for each in found for row in each.sources),
            poll_share=poll_share,
            hosts_backing_off=0,
        ),
    )


class _Outcomes:
    """What budgets buy at some hosts."""

    def __init__(self, hosts: Sequence[_PageSet], poll_share: float) -> None:
        self._hosts = hosts
        self._poll_share = poll_share

    def _outcome(self, budget: float, *, hinted: bool) -> tuple[float, float]:
        """Return freshness and mean age (s) of all pages at a budget."""
        forecasts = [
            host.forecast(
                budget, (host.hints or DEFAULT_HINTS) if hinted else None, self._poll_share
            )
            for host in self._hosts
        ]
        # Pages are weighted by importance, hosts by the sum over their pages.
        weights = [host.pages * float(host.curves.weight.mean()) for host in self._hosts]
        total = max(sum(weights), 1e-12)
        pairs = list(zip(weights, forecasts, strict=True))
        return (
            sum(weight * one.freshness for weight, one in pairs) / total,
            sum(weight * one.age_s for weight, one in pairs) / total,
        )

    def _delay_s(self, budget: float | None) -> float | None:
        delays = {host.place.delay_s for host in self._hosts}
        return delays.pop() / budget if budget is not None and len(delays) == 1 else None

    def point(self, budget: float) -> ForecastPoint:
        """Return freshness and age at a budget."""
        freshness, age_s = self._outcome(budget, hinted=False)
        hinted, hinted_age_s = self._outcome(budget, hinted=True)
        # A hint may be ignored, so that hints never make the forecast worse.
        if hinted <= freshness:
            hinted, hinted_age_s = freshness, age_s
        return ForecastPoint(
            budget=budget,
            delay_s=self._delay_s(budget),
            requests_per_day=sum(budget * DAY_S * host.place.visits_per_s for host in self._hosts),
            freshness=freshness,
            age_s=age_s,
            freshness_hinted=hinted,
            age_hinted_s=hinted_age_s,
            stale_age_s=_stale_age_s(freshness, age_s),
            stale_age_hinted_s=_stale_age_s(hinted, hinted_age_s),
        )

    def target(self, freshness: float) -> ForecastTarget:
        """Return the least budgets that reach a freshness."""
        plain, hinted = (self._budget(freshness, hinted=hinted) for hinted in (False, True))
        if plain is not None and (hinted is None or hinted > plain):
            hinted = plain
        return ForecastTarget(
            freshness=freshness,
            budget=plain,
            delay_s=self._delay_s(plain),
            budget_hinted=hinted,
            delay_hinted_s=self._delay_s(hinted),
        )

    def _budget(self, freshness: float, *, hinted: bool) -> float | None:
        """Return the least multiple of today's budgets that reaches it; None: none does."""
        return least_budget(
            lambda budget: self._outcome(budget, hinted=hinted)[0],
            freshness,
            least=_BUDGET_LEAST,
            most=_BUDGET_MOST,
            precision=5e-3,
        )


def _stale_age_s(freshness: float, age_s: float) -> float | None:
    """Return the mean age of the stale copies from that of all copies."""
    return age_s / (1.0 - freshness) if freshness < 1.0 else None
