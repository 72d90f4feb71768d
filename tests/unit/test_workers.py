import threading

import apsw
import trio

from crawld.store.engine import meta
from crawld.store.engine.backup import backup
from crawld.store.engine.connection import open_connection
from crawld.store.engine.database import Database


class InlineConnection:
    """Runs every call on the event loop."""

    def __init__(self, connection):
        self.connection = connection

    async def run(self, call, *args, **kwargs):
        await trio.lowlevel.checkpoint()
        return call(self.connection, *args, **kwargs)

    async def aclose(self):
        self.connection.close()


class InlineWorkers:
    """Runs every call on the event loop."""

    async def run(self, call, *args, limiter=None, abandon_on_cancel=False):
        await trio.lowlevel.checkpoint()
        return call(*args)

    async def connect(self, filename, flags):
        return InlineConnection(apsw.Connection(filename, flags))


async def test_the_store_starts_no_thread_beside_its_workers(tmp_path, nursery, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a thread beside the workers")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(trio.to_thread, "run_sync", refuse)
    path = tmp_path / "crawld.db"
    async with await Database.open(path, workers=InlineWorkers()) as database:
        await nursery.start(database.run_writer)
        await database.write(meta.put, "key", "value")
        assert await database.read(meta.get, "key") == "value"
        await database.checkpoint()
        await backup(database, tmp_path / "copy.db")
    copy = open_connection(tmp_path / "copy.db", read_only=True)
    assert meta.get(copy, "key") == "value"
    copy.close()
