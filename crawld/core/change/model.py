"""The change model of one page, used by policies, forecasts and the operator's views.

A `PageModel` is updated in place at each visit, in microseconds, with plain floats. It is stored in
under 200 bytes (`record.py`) and refitted together with all others by a job (`refit.py`).

It combines two kinds of evidence. *Exact*: times of changes are known from revisions, or from a
Last-Modified that has proved correct. *Censored*: a visit saw changed or unchanged; a change then
counts as its expected number of changes, the last of them at its expected time.

Invariants: time never runs backwards (a visit dated before the last one counts as zero time later).
`last_change_at` <= `last_visit_at`. The decayed `counts` refer to `last_change_at`, so an unchanged
visit leaves them as they are; the evidence refers to `last_visit_at`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crawld.core.change import renewal
from crawld.core.change.classes import PAGE_CLASSES, RateClasses
from crawld.core.change.history import CLOCK_TOLERANCE_S, Observation
from crawld.core.change.prior import DEFAULT_PRIOR, Gamma
from crawld.core.change.rate import RateEvidence, expected_changes, posterior
from crawld.core.change.record import MEMORY_S, RECORD_STRUCT, VERSION, WINDOWS_S, upgraded
from crawld.core.units import DAY_S

_NOW_S = 2.0
"""A Last-Modified this close to the visit means that the server sends the current time."""

_TRUST_KEPT, _TRUST_ALL, _TRUST_LEVEL = 3.0, 4.0, 0.7
"""Last-Modified is trusted while (kept + 3) / (kept + broken + 4) is at least 0.7: trusted at
first, distrusted after one error, and trusted again after some correct values."""

_COUNT_LIMIT = 65_535
_EDGES = tuple(renewal.EDGES_S.tolist())
_DECAYS = tuple(1.0 / window_s for window_s in WINDOWS_S)


@dataclass(slots=True)
class PageModel:
    """The change model of one page. All times are Unix seconds.

    Attributes:
        prior: prior of the rate on this host or section, from the last refit.
        first_at: start of observation (first visit or first known change).
        last_visit_at: time up to which the page is known.
        last_change_at: last change, exact or expected; `first_at` if none was seen.
        change_known: whether `last_change_at` is a change and not the start of observation.
        changed_visits: visits that saw a change.
        evidence fields (`exact_changes` … `unchanged_s`): as in `rate.RateEvidence`, decaying with
            `MEMORY_S`.
        counts: expected changes, decayed over 1, 10 and 90 days, at `last_change_at`.
        gaps_s: the last two intervals between changes, newest first; 0 if there is none.
        bins: histogram of the intervals between changes, in the bins of `renewal.EDGES_S`, decaying
            with `MEMORY_S`.
        modified_kept, modified_broken: visits whose Last-Modified was correct, or wrong.
        rate: posterior mean of the change rate, per second, as of the last update.
    """

    prior: Gamma = DEFAULT_PRIOR
    first_at: float = 0.0
    last_visit_at: float = 0.0
    last_change_at: float = 0.0
    change_known: bool = False
    visits: int = 0
    changed_visits: int = 0
    exact_changes: float = 0.0
    exact_exposure_s: float = 0.0
    changed: float = 0.0
    changed_s: float = 0.0
    unchanged_s: float = 0.0
    counts: list[float] = field(default_factory=lambda: [0.0] * len(WINDOWS_S))
    gaps_s: list[float] = field(default_factory=lambda: [0.0, 0.0])
    bins: list[float] = field(default_factory=lambda: [0.0] * renewal.BINS)
    modified_kept: int = 0
    modified_broken: int = 0
    rate: float = -1.0

    def __post_init__(self) -> None:
        if self.rate < 0.0:
            self.rate = self.prior.mean

    # -- reading ---------------------------------------------------------------------------------

    @property
    def change_rate_per_day(self) -> float:
        """Posterior mean of the change rate; never 0, always finite."""
        return self.rate * DAY_S

    @property
    def trusts_last_modified(self) -> bool:
        """Whether the server's Last-Modified is used as the time of the last change."""
        checked = self.modified_kept + self.modified_broken
        return (self.modified_kept + _TRUST_KEPT) / (checked + _TRUST_ALL) >= _TRUST_LEVEL

    @property
    def evidence(self) -> RateEvidence:
        """The evidence about the rate, as of `last_visit_at`."""
        return RateEvidence(
            self.exact_changes,
            self.exact_exposure_s,
            self.changed,
            self.changed_s,
            self.unchanged_s,
        )

    def posterior(self) -> Gamma:
        """Return the posterior of the rate (per second)."""
        return posterior(self.prior, self.evidence, start=self.rate)

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Return the central credible interval of the rate, per day; 0 < level < 1."""
        low, high = self.posterior().interval(level)
        return low * DAY_S, high * DAY_S

    def class_probabilities(self, classes: RateClasses = PAGE_CLASSES) -> dict[float, float]:
        """Return the probability of each class, keyed by its mean interval in days."""
        shares = classes.probabilities(classes.weights(self.evidence))
        return {
            mean_s / DAY_S: share
            for mean_s, share in zip(classes.mean_intervals_s, shares, strict=True)
        }

    def known_age_s(self) -> float:
        """Return how long the page had been unchanged at the last visit, seconds."""
        return max(0.0, self.last_visit_at - self.last_change_at)

    def renewal(self) -> renewal.Renewal:
        """Return the distribution of this page's intervals between changes, seconds."""
        prior = renewal.exponential_mass(np.array([self.rate])) + 1e-3
        return renewal.fit_counts(
            np.array([self.bins], np.float64), np.array([self.known_age_s()]), prior=prior
        )

    def explain(self, now: float, classes: RateClasses = PAGE_CLASSES) -> dict[str, object]:
        """Return the model for display, as plain values; times in seconds or days."""
        low, high = self.interval(0.9)
        days, shares = zip(*self.class_probabilities(classes).items(), strict=True)
        weights = classes.weights(self.evidence)
        known = classes.dominant(weights)
        first, last = classes.credible_range(weights)
        return {
            "visits": self.visits,
            "changed_visits": self.changed_visits,
            "last_visit_at": self.last_visit_at if self.visits else None,
            "last_change_at": self.last_change_at if self.change_known else None,
            "age_s": max(0.0, now - self.last_change_at) if self.change_known else None,
            "change_rate_per_day": self.change_rate_per_day,
            "rate_interval_per_day": [low, high],
            "prior_rate_per_day": self.prior.mean * DAY_S,
            "class_days": None if known is None else days[known],
            "class_interval_days": [days[first], days[last]],
            "class_probabilities": dict(zip(days, shares, strict=True)),
            "recent_gaps_s": [gap for gap in self.gaps_s if gap > 0.0],
            "gap_histogram": list(self.bins),
            "last_modified_trusted": self.trusts_last_modified,
        }

    # -- learning --------------------------------------------------------------------------------

    def update(self, observation: Observation) -> None:
        """Learn from one visit; a clock that jumped back counts as no time passed."""
        if self.visits == 0 and self.first_at == 0.0:
            self._start(observation)
            return
        at = max(observation.at, self.last_visit_at)
        interval_s = max(0.0, min(observation.interval_s, at - self.last_visit_at))
        modified_at = self._trusted_change(observation, at - interval_s)
        self._forget(at - self.last_visit_at)
        if not observation.changed:
            self._learn_unchanged(interval_s)
        elif modified_at is not None:
            self._learn_exact(modified_at, at)
        else:
            self._learn_censored(interval_s, at)
        self.visits += 1
        self.changed_visits += observation.changed
        self.last_visit_at = at
        self.rate = self.posterior().mean

    def observe_changes(self, changed_at: Sequence[float], at: float) -> None:
        """Learn all changes since the last visit from an exact list (revisions of a wiki page).

        Args:
            changed_at: Unix seconds, in any order; those not after `last_change_at`, or after `at`
                (with `CLOCK_TOLERANCE_S` of tolerance), are ignored.
            at: time up to which the list is complete.
        """
        at = max(at, self.last_visit_at)
        limit = at + CLOCK_TOLERANCE_S
        fresh = sorted({min(t, at) for t in changed_at if self.last_change_at < t <= limit})
        if self.visits == 0 and self.first_at == 0.0:
            # Observation starts with the page's creation, which says nothing about its rate.
            self.first_at = self.last_visit_at = self.last_change_at = fresh[0] if fresh else at
            self.change_known = bool(fresh)
            self.counts = [float(bool(fresh))] * len(WINDOWS_S)
            fresh = fresh[1:]
        self._learn_history(fresh, at)
        self.visits += 1
        self.changed_visits += bool(fresh)
        self.last_visit_at = at
        self.rate = self.posterior().mean

    def _learn_history(self, fresh: Sequence[float], at: float) -> None:
        span_s = at - self.last_visit_at
        self._forget(span_s)
        for changed_at in fresh:
            self.exact_changes += math.exp((changed_at - at) / MEMORY_S)
            self._enter_change(changed_at, 0.0, 0.0, now=at)
        self.exact_exposure_s += _decayed_exposure(span_s)

    def _start(self, observation: Observation) -> None:
        at = observation.at
        self.first_at = self.last_visit_at = self.last_change_at = at
        self.visits = 1
        modified_at = observation.last_change_at
        # Seen from a random time, the time back to the last change of a Poisson page is distributed
        # like an interval: the first Last-Modified is one exact observation.
        if modified_at is not None and 0.0 < modified_at < at - _NOW_S:
            self.first_at = modified_at
            self._learn_exact(modified_at, at)
            self.rate = self.posterior().mean

    def _trusted_change(self, observation: Observation, previous_at: float) -> float | None:
        """Return the time of the last change if the server sent it and is trusted."""
        modified_at = observation.last_change_at
        if modified_at is None:
            return None
        inside = modified_at > previous_at
        true = modified_at <= observation.at + CLOCK_TOLERANCE_S and inside == observation.changed
        if true:
            self.modified_kept = min(self.modified_kept + 1, _COUNT_LIMIT)
        else:
            self.modified_broken = min(self.modified_broken + 1, _COUNT_LIMIT)
        if not true or not self.trusts_last_modified:
            return None
        return min(max(modified_at, previous_at, self.last_change_at), observation.at)

    def _forget(self, elapsed_s: float) -> None:
        kept = math.exp(-elapsed_s / MEMORY_S)
        self.exact_changes *= kept
        self.exact_exposure_s *= kept
        self.changed *= kept
        self.changed_s *= kept
        self.unchanged_s *= kept
        self.bins = [count * kept for count in self.bins]

    def _learn_unchanged(self, interval_s: float) -> None:
        self.unchanged_s += _decayed_exposure(interval_s)

    def _learn_exact(self, modified_at: float, at: float) -> None:
        """Learn a change at a known time; changes between it and the previous visit are unknown."""
        back_s = at - modified_at
        hidden_s = max(0.0, modified_at - self.last_visit_at)
        self.exact_changes += math.exp(-back_s / MEMORY_S)
        self.exact_exposure_s += _decayed_exposure(back_s)
        self._enter_change(modified_at, self.rate * hidden_s, hidden_s, now=at)

    def _learn_censored(self, interval_s: float, at: float) -> None:
        """Learn that the page changed in the interval."""
        self.changed += 1.0
        self.changed_s += interval_s
        expected = self.rate * interval_s
        back_s = _expected_back_s(self.rate, interval_s)
        hidden = max(0.0, expected_changes(expected) - 1.0)
        self._enter_change(at - back_s, hidden, interval_s - back_s, now=at)

    def _enter_change(self, at: float, hidden: float, hidden_s: float, *, now: float) -> None:
        """Enter a change, and `hidden` more spread over the `hidden_s` before it.

        Args:
            now: time to which the histogram has decayed, not before `at`.
        """
        gap_s = max(0.0, at - self.last_change_at)
        counts = self.counts
        for index, decay in enumerate(_DECAYS):
            kept = counts[index] * math.exp(-gap_s * decay) + 1.0
            if hidden > 0.0 and hidden_s > 0.0:
                spread = hidden_s * decay
                kept += hidden * -math.expm1(-spread) / spread
            counts[index] = kept
        if self.change_known:
            # With hidden changes in between, the gap consists of this many on average.
            self._enter_gap(gap_s / (1.0 + hidden), math.exp((at - now) / MEMORY_S))
        self.last_change_at = at
        self.change_known = True

    def _enter_gap(self, gap_s: float, weight: float) -> None:
        self.gaps_s = [gap_s, self.gaps_s[0]]
        index = 0
        while index < renewal.BINS - 1 and gap_s >= _EDGES[index + 1]:
            index += 1
        self.bins[index] += weight

    # -- storing ---------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the stored form (`record.RECORD_STRUCT`)."""
        return RECORD_STRUCT.pack(
            VERSION,
            self.change_known,
            self.modified_kept,
            self.modified_broken,
            *self.bins,
            self.visits,
            self.changed_visits,
            self.first_at,
            self.last_visit_at,
            self.last_change_at,
            self.exact_changes,
            self.exact_exposure_s,
            self.changed,
            self.changed_s,
            self.unchanged_s,
            *self.counts,
            *self.gaps_s,
            self.prior.shape,
            self.prior.exposure_s,
            self.rate,
        )

    @classmethod
    def from_bytes(cls, packed: bytes) -> PageModel:
        """Return the model of a stored form, of the current version or the former one.

        Raises:
            ValueError: the length or the version differs.
        """
        packed = upgraded(packed)
        if len(packed) != RECORD_STRUCT.size or packed[0] != VERSION:
            raise ValueError(f"no page model of version {VERSION}: {len(packed)} bytes")
        values = RECORD_STRUCT.unpack(packed)
        head = 4 + renewal.BINS
        tail = head + 10
        gaps = tail + len(WINDOWS_S)
        visits, changed_visits, first_at, last_visit_at, last_change_at = values[head : head + 5]
        exact_changes, exact_exposure_s, changed, changed_s, unchanged_s = values[head + 5 : tail]
        return cls(
            prior=Gamma(values[gaps + 2], values[gaps + 3]),
            first_at=first_at,
            last_visit_at=last_visit_at,
            last_change_at=last_change_at,
            change_known=bool(values[1]),
            visits=visits,
            changed_visits=changed_visits,
            exact_changes=exact_changes,
            exact_exposure_s=exact_exposure_s,
            changed=changed,
            changed_s=changed_s,
            unchanged_s=unchanged_s,
            counts=list(values[tail:gaps]),
            gaps_s=list(values[gaps : gaps + 2]),
            bins=list(values[4:head]),
            modified_kept=values[2],
            modified_broken=values[3],
            rate=values[gaps + 4],
        )


def _decayed_exposure(interval_s: float) -> float:
    """Return the decayed exposure of an interval that ends now; nearly all of a short one."""
    return MEMORY_S * -math.expm1(-interval_s / MEMORY_S)


def _expected_back_s(rate: float, interval_s: float) -> float:
    """Return the expected time back to the last change of an interval that saw one.

    1/rate - t/(e^(rate t) - 1): half the interval for a slow page, 1/rate for a fast one.
    """
    expected = rate * interval_s
    if expected < 1e-4:
        return interval_s * (0.5 - expected / 12.0)
    if expected > 700.0:
        return 1.0 / rate
    return 1.0 / rate - interval_s / math.expm1(expected)
