"""Hooks that hold the event loop are ended, also beside the freeze watch of the daemon."""

import faulthandler
import signal
import time
from contextlib import contextmanager
from time import perf_counter

import pytest

from crawld.plugin_host.loop_guard import LOOK_S, LoopGuard
from crawld.plugin_host.plugin import FAILED, Hook, Plugin


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


def swallow():
    """Go on whatever happens."""
    for _ in range(2):
        try:  # noqa: SIM105 (as people write it)
            time.sleep(10.0)
        except:  # noqa: E722
            pass


@pytest.mark.parametrize("function", [sleep_long, compute_long, swallow])
def test_a_hook_that_takes_too_long_is_ended_and_its_plug_in_disabled(tmp_path, function):
    plugin = Plugin("slow", "file")
    guard = plugin.guard = LoopGuard(limit_s=0.01)
    hook = Hook(plugin, "weigh_page", function)
    began_at = perf_counter()
    with guarded(guard, tmp_path):
        assert hook.call("https://a.test/") is FAILED
    assert perf_counter() - began_at < 10.0  # the hook alone would take longer
    assert "weigh_page: did not end within" in plugin.disabled
    assert plugin.failures_in_all == 1
    assert guard.running is None


def test_a_hook_that_ends_in_time_leaves_the_next_alone(tmp_path):
    plugin = Plugin("quick", "file")
    guard = plugin.guard = LoopGuard()
    with guarded(guard, tmp_path):
        assert Hook(plugin, "weigh_page", lambda: 2.0).call("") == 2.0
    assert not plugin.disabled


def test_what_is_no_hook_is_left_alone(tmp_path):
    until = perf_counter() + 2.5 * LOOK_S
    with guarded(LoopGuard(limit_s=0.0), tmp_path):
        while perf_counter() < until:
            pass
