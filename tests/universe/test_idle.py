"""A daemon that has nothing to do sleeps: it wakes for turns, and for jobs now and then."""

from collections import Counter

import trio

from crawld.store.engine.database import Database
from crawld.universe import lives
from crawld.universe import run_universe as runs
from crawld.universe.plan import UniversePlan
from tests.universe.plans import plain_host

PASSES_PER_S = 0.8
"""Passes of the event loop of an idle daemon; half of them are the universe's own delays."""

CALLS_PER_H = {"read": 45, "write": 10}
"""Reads and writes of an idle daemon, those of its visits included: one in a quarter of an hour."""


class Passes(trio.abc.Instrument):
    """Counts the passes of an event loop after its first ten minutes."""

    def __init__(self):
        self.count = 0

    def before_io_wait(self, timeout):
        del timeout
        self.count += trio.current_time() > 600.0


def test_an_idle_daemon_sleeps(tmp_path, monkeypatch):
    passes, right = Passes(), trio.run
    monkeypatch.setattr(
        trio, "run", lambda *facts, **more: right(*facts, instruments=[passes], **more)
    )
    # The auditor asks for the freshness as a dashboard does: it is kept new for ten minutes then.
    monkeypatch.setattr(lives, "LEAST_ASK_S", 1e6)
    result = runs.run_universe(
        UniversePlan(1, 7_800.0 / 86_400.0, 900.0, (plain_host(3),), ()), tmp_path
    )
    assert result.visits > 3
    assert passes.count < 7_200.0 * PASSES_PER_S


def test_an_idle_daemon_leaves_its_file_alone(tmp_path, monkeypatch):
    calls = Counter()
    for name in CALLS_PER_H:
        right = getattr(Database, name)

        def counted(self, fn, *facts, name=name, right=right, **more):
            calls[name] += trio.current_time() > 3_600.0
            return right(self, fn, *facts, **more)

        monkeypatch.setattr(Database, name, counted)
    monkeypatch.setattr(lives, "LEAST_ASK_S", 1e6)
    runs.run_universe(UniversePlan(1, 5.0 / 24.0, 900.0, (plain_host(3),), ()), tmp_path)
    per_hour = {name: calls[name] / 4.0 for name in CALLS_PER_H}
    assert all(per_hour[name] <= CALLS_PER_H[name] for name in CALLS_PER_H), per_hour
