"""What every test shares: Hypothesis profiles, and a process that is left as it was."""

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# A deadline, or how long examples take to draw, would assert how fast the machine is.
settings.register_profile("crawld", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A verdict is about the change that is judged: the same examples each time. New ones are looked
# for wherever else the tests run.
settings.register_profile("ci", settings.get_profile("crawld"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "crawld")


def pytest_make_parametrize_id(val, argname):
    """Name a parameter of binary data by its argument: gzip writes the time into it.

    Test processes refuse to work on tests whose names differ from one process to the other.
    """
    return argname if isinstance(val, bytes) and not val.isascii() else None


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Those that a daemon listens to."""


@pytest.fixture(autouse=True)
def _signals_as_they_were():
    """Give signals back their handlers.

    Of two daemons in one test the first may end first; the second then leaves behind the handler
    of the first, which would fail whatever test runs when a signal comes.
    """
    before = [signal.getsignal(each) for each in SIGNALS]
    yield
    for each, handler in zip(SIGNALS, before, strict=True):
        signal.signal(each, handler)


@pytest.fixture(autouse=True)
def _collector_as_it_was():
    """Undo `gc.freeze()` of a daemon in the test, which would keep all that ever was."""
    before = gc.get_threshold()
    yield
    if gc.get_threshold() != before:
        gc.unfreeze()
        gc.set_threshold(*before)
