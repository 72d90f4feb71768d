"""A full disk or a read-only file: the batch waits and nothing is lost."""

import subprocess
import sys
from contextlib import closing

import apsw
import pytest
import trio

from crawld.errors import StoreError
from crawld.store.engine import connection
from crawld.store.engine.database import Database


def put(db, key):
    db.execute("INSERT INTO meta VALUES (?, ?)", (key, "x" * 3000))
    return key


def count(db):
    return db.execute("SELECT count(*) FROM meta").get


def fill(connection):
    connection.execute("PRAGMA incremental_vacuum").fetchall()  # migrations leave free pages
    pages = connection.execute("PRAGMA page_count").get
    connection.execute(f"PRAGMA max_page_count = {pages}")


def make_room(connection):
    connection.execute("PRAGMA max_page_count = 1000000")


def forbid(connection):
    connection.execute("PRAGMA query_only = ON")


def permit(connection):
    connection.execute("PRAGMA query_only = OFF")


@pytest.mark.parametrize(
    ("stall", "recover", "text"),
    [(fill, make_room, "free some disk space"), (forbid, permit, "writable")],
)
async def test_writes_wait_while_nothing_can_be_written(path, nursery, stall, recover, text):
    async with await Database.open(path, batch_max_age_s=0.01, stall_retry_s=0.01) as database:
        await nursery.start(database.run_writer)
        await database.on_writer(stall)
        assert database.stalled is None
        done = []

        async def write(number):
            done.append(await database.write(put, f"key {number}"))

        async with trio.open_nursery() as writers:
            for number in range(50):
                writers.start_soon(write, number)
            await database.wait_stalled()
            assert text in database.stalled
            assert str(path) in database.stalled
            assert done == []
            assert await database.read(count) == 0
            await database.on_writer(recover)
        await database.wait_flowing()
        assert database.stalled is None
        assert await database.read(count) == len(done) == 50


async def test_writes_wait_while_another_program_writes(path, nursery, monkeypatch):
    monkeypatch.setattr(connection, "BUSY_MS", 0)
    async with await Database.open(path, batch_max_age_s=0.01, stall_retry_s=0.01) as database:
        await nursery.start(database.run_writer)
        with closing(apsw.Connection(str(path))) as other:
            other.execute("BEGIN IMMEDIATE")
            put(other, "its key")
            done = []

            async def write(number):
                done.append(await database.write(put, f"key {number}"))

            async with trio.open_nursery() as writers:
                for number in range(5):
                    writers.start_soon(write, number)
                await database.wait_stalled()
                assert "close the other program" in database.stalled
                assert done == []
                other.execute("COMMIT")
        await database.wait_flowing()
        assert await database.read(count) == len(done) + 1 == 6


async def test_a_close_while_stalled_raises_in_every_caller(path):
    async with trio.open_nursery() as nursery:
        database = await Database.open(path, batch_max_age_s=0.01, stall_retry_s=600)
        await nursery.start(database.run_writer)
        await database.write(put, "kept")
        await database.on_writer(fill)
        refused = []

        async def write(number):
            with pytest.raises(StoreError) as caught:
                await database.write(put, f"key {number}")
            refused.append(caught.value)

        async with trio.open_nursery() as writers:
            for number in range(5):
                writers.start_soon(write, number)
            await database.wait_stalled()
            writers.start_soon(write, 5)
            await trio.testing.wait_all_tasks_blocked()
            await database.aclose()
        assert len(refused) == 6
        assert all("free some disk space" in error.message for error in refused)
        nursery.cancel_scope.cancel()
    async with await Database.open(path) as database:
        assert await database.read(count) == 1


LIMITED = """
import resource, sys
from pathlib import Path
import trio
from crawld.store.engine.database import Database

def put(db, key):
    db.execute("INSERT INTO meta VALUES (?, ?)", (str(key), "x" * 20_000))

async def main():
    database = await Database.open(Path(sys.argv[1]), batch_max_age_s=0.01, stall_retry_s=0.01)
    async with trio.open_nursery() as nursery:
        await nursery.start(database.run_writer)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
        async with trio.open_nursery() as writers:
            for key in range(100):
                writers.start_soon(database.write, put, key)
            await database.wait_stalled()
            print(database.stalled, flush=True)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        print(await database.read(lambda db: db.execute("SELECT count(*) FROM meta").get))
        nursery.cancel_scope.cancel()
    await database.aclose()

trio.run(main)
"""


def test_writes_continue_once_the_file_may_grow(path):
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, timeout=60
    )
    assert ended.stderr == ""
    stalled, counted = ended.stdout.splitlines()
    assert "nothing can be written" in stalled
    assert counted == "100"
