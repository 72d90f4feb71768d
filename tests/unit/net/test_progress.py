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
