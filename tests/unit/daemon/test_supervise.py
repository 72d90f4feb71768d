"""Restart of background tasks after a crash."""

import pytest
import trio
import trio.testing

from crawld.daemon.supervise import RESTART_S, supervise
from crawld.errors import InvalidUrlError, StoreError


@pytest.fixture
def autojump_clock():
    return trio.testing.MockClock(autojump_threshold=0)


def failing_with(*errors):
    """Return a task that raises these errors in turn and then ends, and its start times."""
    left, starts = list(errors), []

    async def task():
        starts.append(trio.current_time())
        if left:
            raise left.pop(0)

    return task, starts


async def test_a_crashed_task_restarts_after_a_pause(autojump_clock):
    group = ExceptionGroup("subtasks failed", [ValueError("another bug")])
    task, starts = failing_with(KeyError("a bug"), group, InvalidUrlError("a third bug"))
    await supervise("policy_loader", task)
    assert [at - starts[0] for at in starts] == [number * RESTART_S for number in range(4)]


CLOSED = StoreError("closed")


@pytest.mark.parametrize("error", [CLOSED, ExceptionGroup("subtasks failed", [CLOSED])])
async def test_a_store_error_is_raised(autojump_clock, error):
    task, starts = failing_with(error)
    with pytest.raises((StoreError, ExceptionGroup)) as raised:
        await supervise("hint_poller", task)
    assert raised.value is error
    assert len(starts) == 1


async def test_cancellation_ends_the_task(autojump_clock):
    with trio.move_on_after(5 * RESTART_S) as scope:
        await supervise("policy_loader", trio.sleep_forever)
    assert scope.cancelled_caught
