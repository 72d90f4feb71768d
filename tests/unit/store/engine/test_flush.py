"""Flushes beside the gathering writer: the next write is always committed."""

import trio
import trio.testing

from crawld.store.engine import meta
from crawld.store.engine.database import Database


async def flushed_beside(path, prepare):
    """Return what a write after `prepare(database)` stored, None if it hangs."""
    async with await Database.open(path, batch_max_age_s=0.01) as database:
        async with trio.open_nursery() as nursery:
            await nursery.start(database.run_writer)
            for _ in range(50):
                await prepare(database)
                written = trio.Event()

                async def write(written=written):
                    await database.write(meta.put, "key", "value")
                    written.set()

                nursery.start_soon(write)
                with trio.move_on_after(60):
                    await written.wait()
                if not written.is_set():
                    await database.flush()  # a write cannot be cancelled
                    nursery.cancel_scope.cancel()
                    return None
            nursery.cancel_scope.cancel()
        return await database.read(meta.get, "key")


async def test_a_write_after_an_empty_flush_is_committed(path):
    async def nothing(database):
        await trio.testing.wait_all_tasks_blocked()
        await database.flush()

    assert await flushed_beside(path, nothing) == "value"


async def test_a_write_after_a_racing_flush_is_committed(path):
    async def racing(database):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(database.write, meta.put, "other", "value")
            nursery.start_soon(database.flush)

    assert await flushed_beside(path, racing) == "value"
