"""Responses of the control socket about the freshness that request budgets buy."""

from __future__ import annotations

from pydantic import BaseModel


class ForecastPoint(BaseModel):
    """Freshness and age at one budget.

    `budget` is a multiple of what hosts permit now, `delay_s` the delay between requests to a host
    at that budget (null: hosts differ), `requests_per_day` that of all hosts.
    """

    budget: float
    delay_s: float | None
    requests_per_day: float
    freshness: float
    age_s: float
    freshness_hinted: float
    age_hinted_s: float


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


class Forecast(BaseModel):
    """Freshness and age against the budget of requests.

    `sampled` pages stand for all; `exact` of them have an exact history, the others are Poisson
    pages at the rate of their model.
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
