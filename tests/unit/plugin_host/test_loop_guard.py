"""Hooks that hold the event loop are ended, also beside the freeze watch of the daemon."""

import faulthandler
import signal
import time
from contextlib import contextmanager
from time import perf_counter

import pytest

from crawld.plugin_host.loop_guard import LOOK_S, HookTimeoutError, LoopGuard


@contextmanager
def guarded(guard, tmp_path):
    """Install a guard as in a daemon, whose freeze watch takes SIGALRM for itself afterwards."""
    with (tmp_path / "stacks").open("w+") as evidence, guard.installed():
        faulthandler.register(signal.SIGALRM, evidence)
        yield
        faulthandler.unregister(signal.SIGALRM)
        evidence.seek(0)
        assert not evidence.read()


def sleep_long():
    time.sleep(10.0)


def compute_long():
    until = perf_counter() + 10.0
    while perf_counter() < until:
        pass


@pytest.mark.parametrize("hook", [sleep_long, compute_long])
def test_a_hook_that_takes_too_long_is_ended(tmp_path, hook):
    guard = LoopGuard(limit_s=0.01)
    with guarded(guard, tmp_path):
        guard.begin("plug-in slow (weigh_page)", perf_counter())
        with pytest.raises(HookTimeoutError):
            hook()
    assert guard.running is None


def test_what_is_no_hook_is_left_alone(tmp_path):
    until = perf_counter() + 2.5 * LOOK_S
    with guarded(LoopGuard(limit_s=0.0), tmp_path):
        while perf_counter() < until:
            pass
