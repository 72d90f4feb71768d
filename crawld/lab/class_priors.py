"""What is known of a page without a history: from a Gamma prior, or from the classes of others?

A page that was never visited twice has the change rate of a page drawn from its host. The daemon
describes that distribution by a Gamma prior, fitted to the evidence of the host's pages. Oslo's
rate classes describe it by the share of pages in each class. Both predict whether the page differs
after some time; the score is the mean logarithm of the probability given to what happened, on pages
that neither was fitted to (two halves, each predicts the other).

Source: Oslo thesis, section 4.8 (classes); Cho & Garcia-Molina, TOIT 2003, section 5.3.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.classes import PAGE_CLASSES, RateClasses
from crawld.core.change.prior import DEFAULT_PRIOR, Gamma
from crawld.core.change.record import Records
from crawld.core.change.refit import from_histories, refit
from crawld.core.units import DAY_S
from crawld.lab.histories import Histories

Floats = NDArray[np.float64]

AFTER_DAYS: Final = (1 / 24, 1.0, 10.0, 100.0)
"""Times after the first visit, in days."""

_VISITS: Final = 16
"""Times of a first visit to each page, drawn over the period."""

_LEAST: Final = 1e-6


def compare(
    histories: Histories,
    *,
    start: float,
    end: float,
    seed: int = 0,
    classes: RateClasses = PAGE_CLASSES,
) -> list[dict[str, object]]:
    """Score the priors on pages that exist at the start.

    Args:
        start, end: of the period in which changes are predicted; the past is learnt.

    Returns:
        Rows: prior, after_days, changed (share), log_score (nearer 0 is better).
    """
    random = np.random.default_rng(seed)
    learnt = histories.before(start)
    records = from_histories(learnt.changed_at, learnt.offsets, at=start)
    half = random.permutation(len(histories)) % 2
    found: dict[tuple[str, float], list[Floats]] = {}
    changed: dict[float, list[NDArray[np.bool_]]] = {}
    for side in (0, 1):
        others, own = records[half != side], np.flatnonzero(half == side)
        survivals = _survivals(others, classes)
        for days in AFTER_DAYS:
            seen = _changes_after(histories, own, days * DAY_S, start, end, random)
            changed.setdefault(days, []).append(seen)
            for name, survival in survivals.items():
                quiet = float(np.clip(survival[days], _LEAST, 1.0 - _LEAST))
                scores = np.asarray(np.where(seen, np.log1p(-quiet), np.log(quiet)), np.float64)
                found.setdefault((name, days), []).append(scores)
    return [
        {
            "prior": name,
            "after_days": days,
            "changed": float(np.concatenate(changed[days]).mean()),
            "log_score": float(np.concatenate(scores).mean()),
        }
        for (name, days), scores in found.items()
    ]


def _survivals(records: Records, classes: RateClasses) -> dict[str, dict[float, float]]:
    """Return the probability of no change after each time, by each prior."""
    fitted = refit(records)
    prior = Gamma(float(fitted.priors.shape[0]), float(fitted.priors.exposure_s[0]))
    shares = classes.shares(records)
    means_s = np.array(classes.mean_intervals_s)
    return {
        "default": {days: _gamma_survival(DEFAULT_PRIOR, days) for days in AFTER_DAYS},
        "gamma": {days: _gamma_survival(prior, days) for days in AFTER_DAYS},
        "classes": {days: float(shares @ np.exp(-days * DAY_S / means_s)) for days in AFTER_DAYS},
    }


def _gamma_survival(prior: Gamma, days: float) -> float:
    """Return E[e^(−λt)] of a Gamma rate."""
    return float((prior.exposure_s / (prior.exposure_s + days * DAY_S)) ** prior.shape)


def _changes_after(
    histories: Histories,
    pages: NDArray[np.int64],
    after_s: float,
    start: float,
    end: float,
    random: np.random.Generator,
) -> NDArray[np.bool_]:
    """Return whether pages differ some time after visits at random times."""
    found = []
    for page in pages.tolist():
        times = histories.page(page)
        at = random.uniform(start, max(end - after_s, start + 1.0), _VISITS)
        before, later = np.searchsorted(times, at), np.searchsorted(times, at + after_s)
        found.append(later > before)
    return np.concatenate(found)
