"""Connections in memory end and break as those of TCP do."""

import pytest
import trio
from trio.testing import MockClock

from crawld.universe.memory_stream import connection_pair

LATENCY_S = 2.0


@pytest.fixture
def mock_clock():
    return MockClock(autojump_threshold=0.0)


async def test_bytes_arrive_in_order_after_the_latency(mock_clock):
    ours, theirs = connection_pair(LATENCY_S)
    await ours.send_all(b"one ")
    await ours.send_all(b"two")
    assert not theirs.is_readable()
    assert await theirs.receive_some(2) == b"on"
    assert trio.current_time() == LATENCY_S
    assert theirs.is_readable()
    assert await theirs.receive_some() == b"e "
    assert await theirs.receive_some() == b"two"
    assert not theirs.is_readable()


async def test_what_was_sent_before_the_end_is_received(mock_clock):
    ours, theirs = connection_pair(LATENCY_S)
    await ours.send_all(b"last")
    await ours.aclose()
    assert await theirs.receive_some() == b"last"
    assert await theirs.receive_some() == b""
    assert await theirs.receive_some() == b""
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"more")
    with pytest.raises(trio.BrokenResourceError):
        await theirs.send_all(b"answer")


async def test_a_reset_breaks_both_directions_when_it_arrives(mock_clock):
    ours, theirs = connection_pair(LATENCY_S)
    theirs.reset()
    await ours.send_all(b"not yet known")
    with pytest.raises(trio.BrokenResourceError):
        await ours.receive_some()
    assert trio.current_time() == LATENCY_S
    with pytest.raises(trio.BrokenResourceError):
        await ours.send_all(b"more")


async def test_closing_wakes_its_own_reader(mock_clock, nursery):
    ours, _ = connection_pair(LATENCY_S)
    ended = trio.Event()

    async def read():
        with pytest.raises(trio.ClosedResourceError):
            await ours.receive_some()
        ended.set()

    nursery.start_soon(read)
    await trio.testing.wait_all_tasks_blocked()
    await ours.aclose()
    with trio.fail_after(1.0):
        await ended.wait()
