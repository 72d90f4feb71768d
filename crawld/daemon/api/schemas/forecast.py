"""Responses of the control socket about the freshness that request budgets buy."""

from __future__ import annotations

from pydantic import BaseModel


class ForecastPoint(BaseModel):
    """Freshness and age at one budget.

    `budget` is a multiple of what hosts permit, `delay_s` the delay between requests to a host at
    that budget (null: hosts differ), `requests_per_day` that of all hosts. `age_s` is the mean age
    of all copies, 0 for fresh ones, `stale_age_s` that of the stale ones alone (null: none is).
    """

    budget: float
    delay_s: float | None
    requests_per_day: float
    freshness: float
    age_s: float
    freshness_hinted: float
    age_hinted_s: float
    stale_age_s: float | None = None
    stale_age_hinted_s: float | None = None


class ForecastTarget(BaseModel):
    """The budget that a freshness needs; null: no budget reaches it."""

    freshness: float
    budget: float | None
    delay_s: float | None
    budget_hinted: float | None
    delay_hinted_s: float | None


class ForecastHints(BaseModel):
    """The hints assumed in the second column: learnt from sources, or a default."""

    learnt: bool
    lag_s: float
    missed_share: float
    trust: float


class ForecastAssumptions(BaseModel):
    """What a forecast assumes.

    `changes_per_day`: changes of all pages. It is the rate of their histories and models
    (`history_changes_per_day`), or that of the changes that sources report at present
    (`reported_changes_per_day`; null: there is no source), whichever is higher.
    `hints`: whether sources report changes; if not, "with hints" tells what they would add.
    `poll_share`: share of the requests that polls may take, if there are hints.
    `hosts_backing_off`: hosts that are asked less often now than the forecast assumes, after
    trouble; it assumes the plain delay of each. `hosts_limited`: hosts that get fewer turns than
    their delay permits, because they share a rate ([schedule] max_requests_per_s).
    """

    changes_per_day: float
    history_changes_per_day: float
    reported_changes_per_day: float | None
    hints: bool
    poll_share: float
    hosts_backing_off: int
    hosts_limited: int = 0


class ForecastPresent(BaseModel):
    """How fresh the copies are at present, beside the mean that a forecast tells.

    `known_stale`: copies known to be stale; `catch_up_s`: time to copy them at the present delays.
    """

    freshness: float
    low: float
    high: float
    known_stale: float
    catch_up_s: float


class Forecast(BaseModel):
    """Freshness and age against the budget of requests: means over a long time.

    `sampled` pages stand for all; `exact` of them have an exact history, the others are Poisson
    pages at the rate of their model. `present` is null for a host, and where nothing is known.
    """

    what: str | None
    hosts: int
    pages: int
    sampled: int
    exact: int
    now: ForecastPoint
    curve: list[ForecastPoint]
    target: ForecastTarget | None
    hints: ForecastHints
    assumptions: ForecastAssumptions
    present: ForecastPresent | None = None
