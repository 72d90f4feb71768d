"""Freshness from random visits: intervals computed by hand, and their coverage."""

import numpy as np
import pytest

from crawld.core.audit import AuditResult, day_of, poisson_gap_s, wilson_interval


@pytest.mark.parametrize(
    ("yes", "count", "low", "high"),
    [
        # Printed: Newcombe 1998, Statistics in Medicine 17, 857, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_intervals(yes, count, low, high):
    assert wilson_interval(yes, count) == pytest.approx((low, high), abs=5e-5)


def test_day_of_and_poisson_gap():
    assert (day_of(0.0), day_of(86_399.0), day_of(86_400.0)) == (0, 0, 1)
    assert poisson_gap_s(0.0, 0.5) == float("inf")
    assert poisson_gap_s(2.0, 0.0) == 0.0
    gaps = [poisson_gap_s(0.5, chance) for chance in np.random.default_rng(1).random(20_000)]
    assert np.mean(gaps) == pytest.approx(2.0, rel=0.03)


def test_results_add_up():
    samples = [AuditResult(fresh=1, expected=0.5), AuditResult(stale=1, expected=0.25)]
    total = sum(samples, AuditResult(unknown=3))
    assert (total.count, total.unknown) == (2, 3)
    assert (total.freshness, total.expected_freshness) == (0.5, 0.375)
    empty = AuditResult()
    assert (empty.freshness, empty.expected_freshness, empty.interval) == (None, None, (0.0, 1.0))


class Mirror:
    """A mirror of changing pages whose true freshness is known.

    Each page changes by its own Poisson process; the rates differ widely. In each slot one page is
    visited, by a policy that knows the rates (whose visits would be a biased sample) or, for an
    audit, at random.
    """

    def __init__(self, seed, pages=40, slots=2_500, share=0.05):
        self.rng = np.random.default_rng(seed)
        self.slots, self.share = slots, share
        self.rates = self.rng.gamma(0.4, 1.0, pages) / (pages * 2.0)
        self.visited_at = np.zeros(pages)
        self.changed_at = -np.ones(pages)
        self.next_at = self.rng.exponential(1.0 / self.rates)

    def run(self):
        """Return (fresh, audits, true freshness over pages and time)."""
        fresh = count = 0
        held, next_audit = 0.0, poisson_gap_s(self.share, self.rng.random())
        for slot in range(self.slots):
            self._change(slot)
            held += np.mean(self.changed_at < self.visited_at)
            if slot >= next_audit:
                page = self.rng.integers(len(self.rates))
                fresh += self.changed_at[page] < self.visited_at[page]
                count += 1
                next_audit = slot + poisson_gap_s(self.share, self.rng.random())
            else:
                # The page most likely to have changed.
                page = np.argmax(self.rates * (slot - self.visited_at))
            self.visited_at[page] = slot + 0.5
        return int(fresh), count, held / self.slots

    def _change(self, now):
        for page in np.flatnonzero(self.next_at <= now):
            while self.next_at[page] <= now:
                self.changed_at[page] = self.next_at[page]
                self.next_at[page] += self.rng.exponential(1.0 / self.rates[page])


def test_the_interval_has_its_nominal_coverage():
    runs = [Mirror(seed).run() for seed in range(60)]
    covered = [
        low <= truth <= high for yes, n, truth in runs for low, high in [wilson_interval(yes, n)]
    ]
    errors = [yes / n - truth for yes, n, truth in runs]
    # 95 % of 60 are 57 with a standard deviation of 1.7.
    assert 53 <= sum(covered) <= 60
    # No bias: the mean error of 60 runs of some 125 audits has a standard deviation of 0.005.
    assert abs(np.mean(errors)) < 0.015


def test_visits_of_the_policy_are_a_biased_sample():
    biased = []
    for seed in range(5):
        mirror = Mirror(seed, share=1e-9)
        found = []
        for slot in range(mirror.slots):
            mirror._change(slot)
            page = np.argmax(mirror.rates * (slot - mirror.visited_at))
            truth = np.mean(mirror.changed_at < mirror.visited_at)
            found.append((mirror.changed_at[page] < mirror.visited_at[page]) - truth)
            mirror.visited_at[page] = slot + 0.5
        biased.append(np.mean(found))
    assert np.mean(biased) < -0.05
