"""The daemon from its start to its end, and what watches it meanwhile."""

import trio

from crawld.daemon.app import run_daemon

from .world import PATIENCE_S


async def test_what_watches_a_daemon_has_ended_before_the_file_closes(mirror):
    looks = 0

    async def watch(daemon):
        nonlocal looks
        while True:  # a view that is never idle: its next look would meet the closed file
            await daemon.database.read(lambda connection: connection.total_changes())
            looks += 1
            daemon.shutdown()

    with trio.fail_after(PATIENCE_S):
        daemon = await run_daemon(mirror.start_of("http://a.test/", once=False), watch)
    assert daemon.phase == "stopping"
    assert looks
