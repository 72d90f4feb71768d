"""The time limits of one fetch."""

import trio

from crawld.net.exchange import FetchLimits
from crawld.net.progress import HEADER_READ_BYTES, Progress

LIMITS = FetchLimits(connect_s=10.0, total_s=60.0)


async def waits(seconds):
    """Return whether a fetch may look a name up for so long, and then connect for 9 s."""
    progress = Progress(LIMITS)
    with progress.scope:
        with progress.look_up():
            await trio.sleep(seconds)
        await trio.sleep(9.0)
    return not progress.scope.cancelled_caught


async def test_a_lookup_takes_no_time_of_the_connection(autojump_clock):
    assert await waits(15.0)
    assert not await waits(55.0)


async def test_a_connection_has_its_limit_after_the_lookup(autojump_clock):
    progress = Progress(LIMITS)
    with progress.scope:
        with progress.look_up():
            await trio.sleep(5.0)
        await trio.sleep(11.0)
    assert progress.scope.cancelled_caught


async def test_little_is_read_at_a_time_before_the_header_is_complete():
    progress = Progress(FetchLimits(max_header_bytes=10 * HEADER_READ_BYTES))
    assert progress.read_size(4 * HEADER_READ_BYTES) == HEADER_READ_BYTES
    progress.note_header(200, ())
    assert progress.read_size(4 * HEADER_READ_BYTES) == 4 * HEADER_READ_BYTES


async def came_whole(after_s, then_s):
    """Return whether a response that came whole may be worked on for so long."""
    progress = Progress(FetchLimits(header_s=20.0, stall_s=5.0, total_s=60.0))
    with progress.scope:
        progress.note_sending()
        await trio.sleep(after_s)
        progress.note_header(200, (), is_whole=True)
        await trio.sleep(then_s)
    return not progress.scope.cancelled_caught


async def test_a_response_that_came_whole_is_not_stalled(autojump_clock):
    assert await came_whole(1.0, 15.0)
    # As long as without it, at least: the time of the header does not count.
    assert await came_whole(19.0, 4.0)
    assert not await came_whole(1.0, 21.0)
