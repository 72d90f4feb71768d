"""Settings of all tests: Hypothesis profiles, parameter names, and process state restored."""

import gc
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

# A deadline, or a limit on the time to draw examples, would test the speed of the machine.
settings.register_profile("crawld", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI runs the same examples each time, so that a failure comes from the change under test. Other
# runs look for new examples.
settings.register_profile("ci", settings.get_profile("crawld"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "crawld")


def pytest_make_parametrize_id(val, argname):
    """Name binary parameters by their argument.

    Compressed data can hold the time, and the processes of a parallel run need equal test names.
    """
    return argname if isinstance(val, bytes) and not val.isascii() else None


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that a daemon handles."""


@pytest.fixture(autouse=True)
def _restore_signal_handlers():
    """Restore the signal handlers after the test.

    Of two daemons in one test the first may end first; the second then restores the handler of the
    first, and a later signal would fail the test that runs then.
    """
    before = [signal.getsignal(each) for each in SIGNALS]
    yield
    for each, handler in zip(SIGNALS, before, strict=True):
        signal.signal(each, handler)


@pytest.fixture(autouse=True)
def _free_daemons():
    """Free the memory of a daemon that ran in the test, about 2 MB.

    It froze the objects of the process, and caches of FastAPI hold its routes.
    """
    before = gc.get_threshold()
    yield
    if gc.get_threshold() != before:
        gc.unfreeze()
        gc.set_threshold(*before)
        models = sys.modules.get("fastapi.dependencies.models")
        for cached in vars(models).values() if models else ():
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()
