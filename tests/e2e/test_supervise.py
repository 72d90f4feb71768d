"""`crawld run --supervise` keeps a daemon running, and ends with it."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.daemon_config import write_config


@pytest.fixture
def supervised(crawld):
    """Start a supervised daemon without a site; return its first process id."""
    crawld.start("run", "-c", write_config(crawld), "--supervise")
    return crawld.get("/status")["pid"]


def wait_until_gone(crawld, pid):
    while Path(f"/proc/{pid}").exists():
        crawld.process.exits_within(0.05)


def test_a_killed_daemon_is_started_again(crawld, supervised):
    os.kill(supervised, signal.SIGKILL)
    second = crawld.wait_until(lambda status: status["pid"] != supervised)["pid"]
    assert second != crawld.process.pid
    os.kill(second, signal.SIGABRT)
    third = crawld.wait_until(lambda status: status["pid"] not in (supervised, second))["pid"]
    assert crawld.terminate() == 0
    assert not Path(f"/proc/{third}").exists()
    log = crawld.output()
    assert "the daemon ended (signal SIGKILL); restart in 1 s" in log
    assert "the daemon ended (signal SIGABRT); restart in 2 s" in log


def test_signals_are_passed_on_and_a_clean_end_ends_both(crawld, supervised):
    crawld.process.send(signal.SIGHUP)
    while "reloaded" not in crawld.output():
        assert not crawld.process.exits_within(0.05)
    crawld.process.send(signal.SIGINT)
    assert crawld.wait() == 0


def test_a_daemon_that_is_shut_down_is_not_started_again(crawld, supervised):
    assert crawld.crawlctl("shutdown").returncode == 0
    assert crawld.wait() == 0


def test_an_invalid_config_is_not_tried_again(crawld):
    config = write_config(crawld, daemon={"nonsense": 1})
    assert crawld.crawld("run", "-c", config, "--supervise").returncode == 2


def test_the_daemon_ends_with_its_parent(crawld, supervised):
    crawld.process.send(signal.SIGKILL)
    wait_until_gone(crawld, supervised)
    assert "stopped" in crawld.output()


def test_a_parent_that_waits_for_the_restart_can_be_ended(crawld, supervised):
    os.kill(supervised, signal.SIGKILL)
    while "restart in" not in crawld.output():
        assert not crawld.process.exits_within(0.05)
    assert crawld.terminate() == 0
