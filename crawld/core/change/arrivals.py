"""How often a source reports that a fresh copy became stale: counts and exposure that decay.

The rate of the last minutes predicts the changes that no poll has reported yet. Edits come in
bursts, so recent evidence weighs most; the rate of the last day is the prior of it, so that a quiet
source with a short memory is not taken for an active one. Evidence that makes what was reported
just now improbable is from before a burst: as far as that is likely, it is forgotten.

Source: Gamma-Poisson updates with exponential forgetting; change points by Bayes' rule with one run
length (Adams & MacKay 2007).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import exp, expm1, lgamma, log
from typing import Any, Final

from crawld.core.units import DAY_S

RECENT_S: Final = 300.0
LONG_S: Final = DAY_S
"""Time constants of the two memories."""

PRIOR_S: Final = 20.0
"""Exposure that the long-run rate is worth beside that of the last minutes."""

CHANGE_S: Final = 1_800.0
"""Mean time between two bursts, if nothing is known."""

MAX_LOG_ODDS: Final = 50.0

_PRIOR_COUNT = 0.5

# Rates that a new burst may have: any order of magnitude about a change per ten seconds.
_NEW_SHAPE, _NEW_S = 0.3, 3.0


@dataclass(slots=True)
class Arrivals:
    """Events of a Poisson process whose rate changes.

    Attributes:
        recent, recent_s: events and exposure, decayed with `RECENT_S`.
        long, long_s: the same, decayed with `LONG_S`.
        span_s: mean span between two reports, by the same memory; within it a copy becomes stale
            once, however often its page changes.
        untimed: events of a span whose end is not known yet.
    """

    recent: float = 0.0
    recent_s: float = 0.0
    long: float = 0.0
    long_s: float = 0.0
    span_s: float = 0.0
    untimed: float = 0.0

    def add(self, count: float, span_s: float) -> None:
        """Add events of a span of time, at any times in it, and decay the old evidence.

        Args:
            span_s: 0: more events of the same span follow; all count from its end on.
        """
        count, self.untimed = self.untimed + count, 0.0
        if span_s <= 0.0:
            self.untimed = count
            return
        if self.is_known:
            kept = 1.0 - self._change_probability(count, span_s)
            self.recent, self.recent_s = kept * self.recent, kept * self.recent_s
        recent, long = exp(-span_s / RECENT_S), exp(-span_s / LONG_S)
        recent_s, long_s = RECENT_S * -expm1(-span_s / RECENT_S), LONG_S * -expm1(-span_s / LONG_S)
        # Events of a long span have decayed as its exposure has.
        self.recent = self.recent * recent + count * recent_s / span_s
        self.recent_s = self.recent_s * recent + recent_s
        self.long = self.long * long + count * long_s / span_s
        self.long_s = self.long_s * long + long_s
        self.span_s += (span_s - self.span_s) * long_s / self.long_s

    @property
    def is_known(self) -> bool:
        """Whether anything was observed."""
        return self.long_s > 0.0

    def posterior(self) -> tuple[float, float]:
        """Return shape and exposure (s) of the Gamma distribution of the present rate.

        >>> calm, busy = Arrivals(), Arrivals()
        >>> for _ in range(100):
        ...     calm.add(0.0, 60.0); busy.add(30.0, 60.0)
        >>> shape, exposure_s = busy.posterior()
        >>> round(shape / exposure_s, 2), calm.posterior()[0] < 0.01
        (0.55, True)
        """
        long = (self.long + _PRIOR_COUNT) / (self.long_s + PRIOR_S)
        return self.recent + PRIOR_S * long, self.recent_s + PRIOR_S

    def posterior_of_day(self) -> tuple[float, float]:
        """Return the same of the mean rate of the last day."""
        return self.long + _PRIOR_COUNT, self.long_s + PRIOR_S

    def _change_probability(self, count: float, span_s: float) -> float:
        """Return how likely the rate has changed, by the events of a span of time."""
        before = min(1.0 - exp(-span_s / CHANGE_S), 0.5)
        same = _log_predictive(count, span_s, *self.posterior())
        other = _log_predictive(count, span_s, _NEW_SHAPE, _NEW_S)
        odds = same - other + log((1.0 - before) / before)
        return 1.0 / (1.0 + exp(min(odds, MAX_LOG_ODDS)))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Arrivals:
        """Return the value of `as_dict`; KeyError, TypeError or ValueError for other values."""
        names = ("recent", "recent_s", "long", "long_s")
        known = {name: float(values[name]) for name in names}
        later = {name: float(values.get(name, 0.0)) for name in ("span_s", "untimed")}
        return cls(**known, **later)


def _log_predictive(count: float, span_s: float, shape: float, exposure_s: float) -> float:
    """Return the log probability of a number of events, up to a constant of the number."""
    total_s = exposure_s + span_s
    known = lgamma(shape + count) - lgamma(shape)
    return known + shape * log(exposure_s / total_s) + count * log(span_s / total_s)
