"""Evidence of stalls: the timer of one thread, and the file it makes a handler write."""

import faulthandler
import signal

import pytest

from crawld.daemon.freeze_watch import Evidence
from crawld.thread_timer import ThreadTimer
from crawld.workers import start_sleeper
from tests.daemon.harness import until


@pytest.fixture
def path(tmp_path):
    return tmp_path / "crawld.db-stacks"


@pytest.fixture
def timer(path):
    """A timer whose signal makes a sleeping thread write its stack, and the file."""
    made = ThreadTimer(signal.SIGUSR2, start_sleeper())
    evidence = Evidence(path)
    faulthandler.register(signal.SIGUSR2, evidence, all_threads=False)
    yield made, evidence
    made.set(0.0)
    faulthandler.unregister(signal.SIGUSR2)


async def test_the_signal_goes_to_the_sleeping_thread(timer, path):
    alarm, _ = timer
    alarm.set(0.01)
    await until(lambda: b"in sleep" in path.read_bytes())


async def test_a_timer_that_is_set_again_does_not_fire(timer, path):
    alarm, evidence = timer
    alarm.set(1000.0)
    alarm.set(0.0)
    assert path.read_bytes() == b""
    alarm.set(0.01)
    await until(lambda: path.read_bytes().endswith(b"in _bootstrap\n"))
    evidence.take_back()
    assert path.read_bytes() == b""


def test_there_is_no_timer_for_a_missing_thread():
    with pytest.raises(OSError, match="Invalid argument"):
        ThreadTimer(signal.SIGUSR2, 2**30)


def test_evidence_of_the_last_process_stays_until_it_is_dealt_with(path):
    path.write_text("Stack")
    evidence = Evidence(path)
    assert evidence.left == "Stack"
    evidence.take_back()  # a stall of the start
    evidence.close()
    assert Evidence(path).left == "Stack"
    evidence = Evidence(path)
    evidence.begin()
    assert path.read_text() == evidence.left == ""
    evidence.close()
    assert not path.exists()


def test_without_a_folder_there_is_no_evidence(tmp_path):
    evidence = Evidence(tmp_path / "missing" / "stacks")
    assert evidence.left == ""
    evidence.begin()
    evidence.close()
