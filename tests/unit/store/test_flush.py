import trio

from crawld.store import meta
from crawld.store.database import Database


async def test_a_flush_between_a_write_and_its_gathering_stops_nothing(path):
    """Whoever is scheduled first, the writer or somebody's flush, the next write is committed."""
    async with await Database.open(path, batch_max_age_s=0.01) as database:
        async with trio.open_nursery() as nursery:
            await nursery.start(database.run_writer)
            with trio.fail_after(20):
                for number in range(100):
                    async with trio.open_nursery() as racing:
                        racing.start_soon(database.write, meta.put, "first", str(number))
                        racing.start_soon(database.flush)
                    await database.write(meta.put, "second", str(number))
            nursery.cancel_scope.cancel()
        assert await database.read(meta.get, "second") == "99"
