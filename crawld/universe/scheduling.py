"""Trio's order of tasks, drawn from a seed.

Trio runs the ready tasks of a pass in random order. Its own hook for hypothesis sorts them before
it shuffles with a generator that can be seeded; there is no public name for it.

A signal makes one more task ready: the system writes a byte to a socket of trio, whose task then
looks what happened. The draws after it would depend on when it came.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from trio._core import _run


@contextmanager
def seeded_scheduling(seed: int) -> Iterator[None]:
    """Make the order of tasks of a `trio.run` inside depend on the seed only."""
    was_sorted, state = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate()
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    _run._r.seed(seed)
    try:
        yield
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING = was_sorted  # type: ignore[misc]
        _run._r.setstate(state)


@contextmanager
def signals_wake_no_task() -> Iterator[None]:
    """Let no signal wake a task of the `trio.run` around it; handlers still run.

    A handler may wake trio by its own means (`TrioToken.run_sync_soon`).
    """
    before = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
