import threading

import apsw
import pytest
import trio
import trio.testing

from crawld.store.engine import meta
from crawld.store.engine.backup import backup
from crawld.store.engine.connection import open_connection
from crawld.store.engine.database import Database
from crawld.workers import THREADS, AbandonedError, check_wanted

CREATE = apsw.SQLITE_OPEN_CREATE


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


@pytest.fixture
async def connection(tmp_path):
    return await THREADS.connect(str(tmp_path / "x.db"), apsw.SQLITE_OPEN_READWRITE | CREATE)


async def cancel_while_it_runs(connection, call):
    """Call on the connection, and cancel the caller once the call has begun."""
    begun = threading.Event()

    def run(_):
        begun.set()
        call()

    async def cancel():
        await trio.to_thread.run_sync(begun.wait)
        scope.cancel()

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(cancel)
            await connection.run(run)


async def test_a_cancelled_call_ends_at_its_next_check(connection):
    ended = []

    def work():
        try:
            while True:
                check_wanted()
        except AbandonedError:
            ended.append(True)
            raise

    await cancel_while_it_runs(connection, work)
    await connection.run(lambda _: check_wanted())  # the next call is wanted
    assert ended == [True]
    await connection.aclose()


async def test_a_connection_closes_without_a_cancelled_call_that_does_not_end(connection):
    go_on, threads = threading.Event(), []

    def work():
        threads.append(threading.current_thread())
        go_on.wait()

    await cancel_while_it_runs(connection, work)
    with trio.fail_after(30):
        await connection.aclose()
    assert threads[0].is_alive()
    go_on.set()
    await trio.to_thread.run_sync(threads[0].join)


async def test_a_connection_closes_after_the_calls_that_are_wanted(connection):
    begun, go_on, ended = threading.Event(), threading.Event(), []

    def work(_):
        begun.set()
        go_on.wait()
        ended.append("call")

    async def close():
        await connection.aclose()
        ended.append("closed")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run, work)
        await trio.to_thread.run_sync(begun.wait)
        nursery.start_soon(close)
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
    assert ended == ["call", "closed"]


def test_a_check_on_another_thread_does_nothing():
    check_wanted()
