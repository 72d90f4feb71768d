"""Bias and error of the change rate estimators on known histories.

Every page is visited over a window at irregular intervals. Each estimator gets the results of these
visits (changed or unchanged; with Last-Modified the last change; or all changes). It is compared
with the truth: the rate that generated a synthetic page or, for a recorded page, its change rate in
the same window, or in the next one of the same length (prediction).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from crawld.core.change import rate
from crawld.core.change.history import VisitSample, sample_visits
from crawld.core.change.model import PageModel
from crawld.core.change.prior import fit_prior
from crawld.core.change.record import MEMORY_S, records_of
from crawld.core.change.refit import refit
from crawld.core.units import DAY_S
from crawld.errors import OperatorError
from crawld.lab.histories import FloatArray, Histories, IntArray, read_histories
from crawld.lab.plugged import plugins_of, refuse_failed
from crawld.lab.synthetic import KINDS, synthetic
from crawld.plugins import Estimator

Truth = Literal["rate", "window", "next"]

_JITTER = 0.5
"""Visit intervals vary by this share around their mean, uniformly."""


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """Errors of one estimator.

    Attributes:
        truth: kind of truth: `rate`, `window` or `next`.
        unbounded: pages without a finite estimate, excluded from the figures.
        mean_true_per_day: mean true rate of the pages compared.
        bias_per_day: mean of estimate - truth.
        rmse_per_day: root of the mean squared difference.
        log_rmse: the same of ln(rate x window + 1), where errors on slow pages weigh as much.
    """

    estimator: str
    truth: Truth
    pages: int
    unbounded: int
    mean_true_per_day: float
    bias_per_day: float
    rmse_per_day: float
    log_rmse: float


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One page and a series of visits: the input of the estimators.

    Attributes:
        seen: result of each visit.
        changed_at: all changes inside the window, for the estimators that use them.
        start: first visit.
        end: last visit.
    """

    seen: VisitSample
    changed_at: FloatArray
    start: float
    end: float

    @property
    def last_modified_exposure_s(self) -> float:
        """Sum over visits of the time back to the last change, at most the interval."""
        back = np.where(self.seen.changed, self.seen.at - self.seen.last_change_at, np.inf)
        return float(np.minimum(back, self.seen.interval_s).sum())


def _changed(case: Case) -> int:
    return int(case.seen.changed.sum())


def _bias_reduced(case: Case) -> float:
    interval_s = float(case.seen.interval_s.mean())
    return float(rate.bias_reduced(_changed(case), case.seen.at.size, interval_s))


def _irregular_mle(case: Case) -> float:
    seen = case.seen
    return rate.irregular_mle(seen.interval_s[seen.changed], seen.interval_s[~seen.changed])


def _last_modified_reduced(case: Case) -> float:
    exposure_s = case.last_modified_exposure_s
    return float(rate.last_modified_bias_reduced(_changed(case), case.seen.at.size, exposure_s))


def _exact_decayed(case: Case) -> float:
    return rate.exact_decayed(
        case.changed_at, observed_from=case.start, at=case.end, memory_s=MEMORY_S
    )


PAGE_ESTIMATORS: dict[str, Callable[[Case], float]] = {
    "naive": lambda case: float(rate.naive(_changed(case), case.end - case.start)),
    "bias_reduced": _bias_reduced,
    "irregular_mle": _irregular_mle,
    "last_modified_mle": lambda c: float(
        rate.last_modified_mle(_changed(c), c.last_modified_exposure_s)
    ),
    "last_modified_bias_reduced": _last_modified_reduced,
    "exact": lambda case: case.changed_at.size / (case.end - case.start),
    "exact_decayed": _exact_decayed,
}
"""Estimators of a single page; per second."""


def compare(
    histories: Histories,
    *,
    visit_interval_s: float,
    seed: int,
    start: float | None = None,
    duration_s: float = 365 * DAY_S,
    truth: Truth = "window",
    true_rates: FloatArray | None = None,
    added: Mapping[str, Estimator] = MappingProxyType({}),
) -> list[EstimateRow]:
    """Compare the estimators on the pages created before the window.

    Args:
        visit_interval_s: mean time between visits to a page, > 0, at most a third of the window.
        start: start of the window, Unix seconds; default: the latest possible.
        truth: `rate` needs `true_rates`; `window` and `next` use the histories.
        true_rates: true rate of each page, per second.
        added: estimators of plug-ins; they get the change model after all visits.

    Returns:
        One row per estimator, in a fixed order.

    Raises:
        OperatorError: no page is old enough, or the visits do not fit the window.
    """
    if not 0.0 < visit_interval_s <= duration_s / 3.0:
        raise OperatorError(
            f"visits every {visit_interval_s:g} s do not fit a window of {duration_s:g} s",
            hint="Choose an interval of at most a third of the window.",
        )
    if truth == "rate" and true_rates is None:
        raise OperatorError("true rates are known only for synthetic pages")
    spans = 2.0 if truth == "next" else 1.0
    latest = float(histories.changed_at.max(initial=0.0)) - spans * duration_s
    start = latest if start is None else start
    chosen = np.flatnonzero(histories.born_at() <= start)
    if chosen.size == 0:
        raise OperatorError(
            "no page was born before the window",
            hint="Choose an earlier start or a shorter window.",
        )
    cases = _cases(
        histories, chosen, start, duration_s, visit_interval_s=visit_interval_s, seed=seed
    )
    if truth == "rate" and true_rates is not None:
        true = true_rates[chosen]
    else:
        begin = start + duration_s if truth == "next" else start
        true = histories.changes_in(begin, begin + duration_s)[chosen] / duration_s
    return [
        _row(name, estimates, true, truth=truth, duration_s=duration_s)
        for name, estimates in (_all_estimates(cases) | _added_estimates(cases, added)).items()
    ]


def _cases(
    histories: Histories,
    chosen: IntArray,
    start: float,
    duration_s: float,
    *,
    visit_interval_s: float,
    seed: int,
) -> list[Case]:
    rng = np.random.default_rng(seed)
    visits = int(duration_s / visit_interval_s) + 2
    cases = []
    for page in chosen.tolist():
        steps = visit_interval_s * rng.uniform(1.0 - _JITTER, 1.0 + _JITTER, visits)
        steps[0] = visit_interval_s * rng.random()
        at = start + np.cumsum(steps)
        at = at[at <= start + duration_s]
        changed_at = histories.page(page)
        inside = changed_at[(changed_at > at[0]) & (changed_at <= at[-1])]
        cases.append(Case(sample_visits(changed_at, at), inside, float(at[0]), float(at[-1])))
    return cases


def _all_estimates(cases: list[Case]) -> dict[str, FloatArray]:
    estimates = {
        name: np.array([estimator(case) for case in cases])
        for name, estimator in PAGE_ESTIMATORS.items()
    }
    estimates["exact_shrunk"] = _exact_shrunk(cases)
    estimates["model"] = _models(cases, _learn_visits)
    estimates["model_last_modified"] = _models(
        cases, lambda model, case: _learn_visits(model, case, with_last_change=True)
    )
    estimates["model_exact"] = _models(
        cases, lambda model, case: model.observe_changes(case.changed_at.tolist(), case.end)
    )
    return estimates


def _added_estimates(cases: list[Case], added: Mapping[str, Estimator]) -> dict[str, FloatArray]:
    models = [_learnt(case, _learn_visits) for case in cases] if added else []
    return {name: np.array([rate(each) for each in models]) for name, rate in added.items()}


def _exact_shrunk(cases: list[Case]) -> FloatArray:
    changes = np.array([case.changed_at.size for case in cases], np.float64)
    exposure_s = np.array([case.end - case.start for case in cases])
    prior = fit_prior(changes, exposure_s)[0]
    return (prior.shape + changes) / (prior.exposure_s + exposure_s)


def _models(cases: list[Case], learn: Callable[[PageModel, Case], None]) -> FloatArray:
    """Let a page model learn each case, as the daemon does, and run the refit job at the end."""
    packed = [_learnt(case, learn).to_bytes() for case in cases]
    return refit(records_of(packed)).rate_per_day / DAY_S


def _learnt(case: Case, learn: Callable[[PageModel, Case], None]) -> PageModel:
    model = PageModel(first_at=case.start, last_visit_at=case.start, last_change_at=case.start)
    learn(model, case)
    return model


def _learn_visits(model: PageModel, case: Case, *, with_last_change: bool = False) -> None:
    for observation in case.seen.observations(with_last_change=with_last_change):
        model.update(observation)


def _row(
    name: str, estimates: FloatArray, true: FloatArray, *, truth: Truth, duration_s: float
) -> EstimateRow:
    finite = np.isfinite(estimates)
    error = (estimates[finite] - true[finite]) * DAY_S
    ratio = np.log1p(estimates[finite] * duration_s) - np.log1p(true[finite] * duration_s)
    return EstimateRow(
        name,
        truth,
        int(finite.sum()),
        int((~finite).sum()),
        float(true[finite].mean()) * DAY_S,
        float(error.mean()),
        math.sqrt(float(np.mean(error**2))),
        math.sqrt(float(np.mean(ratio**2))),
    )


def run_estimate(
    source: Path | str,
    *,
    visit_interval_s: float = DAY_S,
    seed: int = 0,
    start: float | None = None,
    duration_s: float = 365 * DAY_S,
    truth: Truth = "window",
    pages: int = 500,
    config: Path | None = None,
) -> list[dict[str, str | int | float]]:
    """Compare the estimators on a history file or on synthetic pages.

    Args:
        source: path of a history file, or `poisson`, `bursty`, `periodic`.
        visit_interval_s: mean time between visits to a page.
        start: start of the window, Unix seconds; files only.
        truth: `window` or `next` for files; synthetic pages are compared with their true rate.
        config: a config whose plug-ins supply estimators; None: none do.

    Returns:
        One dictionary per estimator, with the fields of `EstimateRow`.

    Raises:
        OperatorError: as `compare`, or the file cannot be read.
    """
    rates: FloatArray | None = None
    if str(source) in KINDS:
        rng = np.random.default_rng(seed)
        histories, rates = synthetic(str(source), pages=pages, start=0.0, end=duration_s, rng=rng)
        start, truth = 0.0, "rate"
    else:
        histories = read_histories(source)
    rows = compare(
        histories,
        visit_interval_s=visit_interval_s,
        seed=seed,
        start=start,
        duration_s=duration_s,
        truth=truth,
        true_rates=rates,
        added=plugins_of(config).supplied.estimators,
    )
    refuse_failed(plugins_of(config))
    return [asdict(row) for row in rows]
