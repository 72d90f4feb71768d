"""What every test shares: Hypothesis without a stopwatch, no surprises in CI, its own signals."""

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
