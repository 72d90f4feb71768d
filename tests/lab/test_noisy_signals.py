"""GREEDY-NCIS: its values against simulated signals, and its picks."""

import numpy as np
import pytest

from crawld.lab.noisy_signals import NoisySignalsPolicy, crawl_values

NOW = 1.7e9
DAY = 86_400.0


def simulated(effective_s, rate, signalled, false_rate, periods=40_000):
    """Return w − e^(−αι) ψ of periods that end when the effective time reaches ι."""
    rng = np.random.default_rng(3)
    alpha, gamma = (1.0 - signalled) * rate, signalled * rate + false_rate
    jump_s = -np.log(false_rate / gamma) / alpha
    apart = fresh = 0.0
    for _ in range(periods):
        at, doubt = 0.0, 0.0
        changes = rng.exponential(1.0 / alpha)
        while True:
            wait = rng.exponential(1.0 / gamma)
            if at + wait + doubt >= effective_s:
                at = max(effective_s - doubt, at)
                break
            at, doubt = at + wait, doubt + jump_s
            if rng.random() < signalled * rate / gamma:
                changes = min(changes, at)
        apart, fresh = apart + at, fresh + min(changes, at)
    return (fresh - np.exp(-alpha * effective_s) * apart) / periods


@pytest.mark.parametrize("effective_s", [0.4, 1.5, 4.0])
def test_values_are_those_of_simulated_periods(effective_s):
    value = crawl_values(np.array([effective_s]), np.array([1.0]), 0.6, 0.3)[0]
    assert value == pytest.approx(simulated(effective_s, 1.0, 0.6, 0.3), abs=0.01)


def test_without_signals_it_is_the_poisson_index():
    rate, waits = 2.0, np.array([0.1, 1.0, 5.0])
    expected = (1.0 - np.exp(-rate * waits) * (1.0 + rate * waits)) / rate
    assert crawl_values(waits, np.full(3, rate), 0.0, 0.0) == pytest.approx(expected)


def test_after_a_signal_that_is_never_false_a_visit_is_worth_the_mean_interval():
    policy = NoisySignalsPolicy(np.array([1.0, 4.0]) / DAY, signalled=1.0, false_rate=0.0)
    policy.load([0, 1])
    for page in (0, 1):
        policy.record_visit(page, NOW, None)
    assert policy.values(NOW + DAY) == pytest.approx([0.0, 0.0], abs=1e-6)
    policy.record_hint(1, NOW + 60.0)
    assert policy.values(NOW + DAY) == pytest.approx([0.0, DAY / 4.0], abs=1e-6)
    assert policy.select(NOW + DAY) == 1
    policy.release(1)
    policy.record_hint(0, NOW + 90.0)
    assert policy.select(NOW + DAY) == 0


def test_a_false_signal_is_worth_less_than_a_certain_one():
    rate = np.array([1.0 / DAY])
    values = []
    for false_rate in (0.1, 1.0, 10.0):
        policy = NoisySignalsPolicy(rate, signalled=0.8, false_rate=false_rate / DAY)
        policy.load([0])
        policy.record_visit(0, NOW, None)
        policy.record_hint(0, NOW + 60.0)
        values.append(policy.values(NOW + 600.0)[0])
    assert values == sorted(values, reverse=True)
    assert values[0] > 5.0 * values[2]


def test_the_table_is_within_two_percent():
    rng = np.random.default_rng(1)
    rates = np.exp(rng.normal(-12.0, 1.0, 40))
    policy = NoisySignalsPolicy(rates, signalled=0.8, false_rate=2e-6)
    policy.load(np.arange(40))
    for page in range(40):
        policy.record_visit(page, NOW, None)
    exact = crawl_values(np.full(40, 9 * DAY), rates, 0.8, 2e-6)
    assert policy.values(NOW + 9 * DAY) == pytest.approx(exact, rel=0.04)
