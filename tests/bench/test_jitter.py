"""What `crawld bench jitter` computes of a ledger."""

import pytest

from crawld.bench.jitter import ledger_metrics
from crawld.simweb.ledger import Ledger, LedgerRow

STARTED_AT = 1_800_000_000.0
CLOCK_S = 500_000.0
"""Monotonic time of the simulated web at its start; that of another process differs."""


def ledger_of(*seconds):
    ledger = Ledger()
    for each in seconds:
        clock_s, at = CLOCK_S + each, STARTED_AT + each
        ledger.record(LedgerRow(clock_s, clock_s, at, "a.test", "127.0.0.1", "127.0.0.1", "/", 200))
    return ledger


def test_only_gaps_that_end_after_the_warm_up_count():
    ledger = ledger_of(0.0, 90.0, 105.125, 120.375)
    metrics = ledger_metrics(ledger, 15.0, since=STARTED_AT + 100.0)
    assert metrics == {"early_requests": 0.0, "jitter_ledger_p99_ms": pytest.approx(125.0)}


def test_early_requests_count_during_the_warm_up():
    ledger = ledger_of(0.0, 14.5, 29.5)
    metrics = ledger_metrics(ledger, 15.0, since=STARTED_AT + 100.0)
    assert metrics == {"early_requests": 1.0, "jitter_ledger_p99_ms": 0.0}
