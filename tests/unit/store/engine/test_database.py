import threading

import apsw
import pytest
import trio
import trio.testing

from crawld.errors import ClosedDatabaseError, CorruptDatabaseError, DatabaseInUseError, StoreError
from crawld.store import changed
from crawld.store.engine import meta, migrate
from crawld.store.engine.background import background_reads
from crawld.store.engine.connection import open_connection
from crawld.store.engine.database import CHECKPOINT_BYTES, READERS, Database
from crawld.store.engine.group_commit import SLICE_S, WAITING_CALLS
from crawld.workers import THREADS


@pytest.fixture
async def database(path):
    async with await Database.open(path, batch_max_age_s=0.02) as opened:
        yield opened


def count(connection):
    return connection.execute("SELECT count(*) FROM meta").get


def put(connection, key):
    connection.execute("INSERT INTO meta VALUES (?, 'x')", (key,))
    return key


def put_and_fail(connection, key):
    put(connection, key)
    raise LookupError(key)


async def test_writes_commit_together_and_each_gets_its_result(database, nursery):
    await nursery.start(database.run_writer)
    results = {}

    async def write(number):
        results[number] = await database.write(put, f"key {number}")

    async with trio.open_nursery() as writers:
        for number in range(1000):
            writers.start_soon(write, number)
    assert results == {number: f"key {number}" for number in range(1000)}
    assert await database.read(count) == 1000


async def test_a_failing_call_undoes_only_itself(database, nursery):
    await nursery.start(database.run_writer)
    raised = []

    async def write(number):
        try:
            await database.write(put_and_fail if number % 10 == 3 else put, f"key {number}")
        except LookupError as error:
            raised.append(error.args[0])

    async with trio.open_nursery() as writers:
        for number in range(100):
            writers.start_soon(write, number)
    assert sorted(raised) == sorted(f"key {number}" for number in range(3, 100, 10))
    assert await database.read(count) == 90


async def test_a_constraint_is_raised_to_its_caller(database):
    await database.write(put, "a")
    with pytest.raises(apsw.ConstraintError):
        await database.write(put, "a")
    await database.write(put, "b")
    assert await database.read(count) == 2


async def test_without_a_writer_task_each_write_commits_itself(database):
    assert await database.write(put, "a") == "a"
    assert await database.read(meta.get, "a") == "x"


def note_event(connection):
    changed.note(connection, "event")


async def test_changes_of_tables_are_counted_after_their_commit(database, nursery):
    before, noted = database.changes("event"), trio.Event()

    async def wait():
        await database.wait_changed("event", before)
        noted.set()

    nursery.start_soon(wait)
    await database.write(put, "key")
    await database.read(note_event)  # a reader's connection changes nothing
    await trio.testing.wait_all_tasks_blocked()
    assert database.changes("event") == before
    assert not noted.is_set()
    await database.write(note_event)
    assert database.changes("event") == before + 1
    await noted.wait()
    await database.wait_changed("event", before)
    assert database.changes("version") == 0


async def test_keyword_arguments_are_passed(database):
    await database.write(meta.put, key="a", value="b")
    assert await database.read(meta.get, key="a") == "b"


async def test_a_cancelled_write_is_still_committed(database, nursery):
    await nursery.start(database.run_writer)
    with trio.CancelScope() as scope:
        scope.cancel()
        await database.write(put, "a")
    assert await database.read(count) == 1


async def test_a_cancelled_writer_commits_pending_calls(path):
    async with await Database.open(path, batch_max_age_s=60) as database:
        async with trio.open_nursery() as nursery:
            await nursery.start(database.run_writer)
            for number in range(20):
                nursery.start_soon(database.write, put, str(number))
            await trio.testing.wait_all_tasks_blocked()
            assert await database.read(count) == 0
            nursery.cancel_scope.cancel()
        assert await database.read(count) == 20


async def test_flush_does_not_wait_for_the_batch_to_age(path):
    async with (
        await Database.open(path, batch_max_age_s=600) as database,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(database.run_writer)
        async with trio.open_nursery() as writers:
            writers.start_soon(database.write, put, "a")
            await trio.testing.wait_all_tasks_blocked()
            await database.flush()
        nursery.cancel_scope.cancel()


async def test_more_writes_than_the_queue_holds_are_all_committed(database, nursery):
    await nursery.start(database.run_writer)
    async with trio.open_nursery() as writers:
        for number in range(2 * WAITING_CALLS + 5):
            writers.start_soon(database.write, put, str(number))
    assert await database.read(count) == 2 * WAITING_CALLS + 5


async def test_a_read_sees_one_snapshot_and_does_not_wait_for_the_writer(database):
    def read_write_read(connection):
        before = count(connection)
        trio.from_thread.run(database.write, put, "a", trio_token=token)
        return before, count(connection)

    token = trio.lowlevel.current_trio_token()
    assert await database.read(read_write_read) == (0, 0)
    assert await database.read(count) == 1


async def test_a_cancelled_read_is_interrupted_and_the_reader_stays_usable(database):
    def count_forever(connection):
        return connection.execute(
            "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n"
        ).get

    for _ in range(3):
        with trio.move_on_after(0.05):
            await database.read(count_forever)
    assert await database.read(count) == 0


async def test_a_read_past_its_deadline_is_cancelled(database):
    async def read_repeatedly():
        for number in range(600):
            with trio.move_on_after(number * 1e-6):
                assert await database.read(count) == 0

    async with trio.open_nursery() as readers:
        for _ in range(9):
            readers.start_soon(read_repeatedly)


async def test_a_reader_cannot_write(database):
    with pytest.raises(apsw.ReadOnlyError):
        await database.read(put, "a")
    assert await database.read(count) == 0


async def test_a_look_up_sees_each_commit_and_cannot_write(database):
    assert database.look_up(meta.get, "a") is None
    await database.write(meta.put, "a", "b")
    assert database.look_up(meta.get, "a") == "b"
    with pytest.raises(apsw.ReadOnlyError):
        database.look_up(put, "c")


async def test_a_second_opener_is_refused_and_a_reader_is_not(database, path):
    await database.write(put, "a")
    with pytest.raises(DatabaseInUseError, match="process"):
        await Database.open(path)
    async with await Database.open(path, read_only=True) as reader:
        assert await reader.read(count) == 1
        with pytest.raises(StoreError, match="not open for writing"):
            await reader.write(put, "b")


async def test_a_clean_close_leaves_no_log_and_no_lock(path):
    async with await Database.open(path) as database:
        await database.write(put, "a")
    assert not path.with_name("crawld.db-wal").exists()
    async with await Database.open(path) as database:
        assert await database.read(count) == 1


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
async def test_a_missing_file_is_not_created(path, options):
    with pytest.raises(StoreError, match="no database"):
        await Database.open(path, **options)
    assert list(path.parent.iterdir()) == []


async def test_a_directory_that_takes_no_file_is_an_error():
    with pytest.raises(StoreError, match="lock file"):
        await Database.open(trio.Path("/proc/crawld.db"))


async def test_a_refused_file_leaves_no_lock_behind(path):
    path.write_bytes(b"junk" * 5000)
    for _ in range(2):
        with pytest.raises(CorruptDatabaseError, match="damaged"):
            await Database.open(path)


async def test_a_read_only_directory_can_be_read(path):
    migrate.migrate(path)
    path.parent.chmod(0o555)
    try:
        async with await Database.open(path, read_only=True) as database:
            assert await database.read(count) == 0
    finally:
        path.parent.chmod(0o755)


async def test_the_log_is_copied_back_and_stays_small(database, path):
    def grow(connection, number):
        connection.execute("INSERT INTO meta VALUES (?, ?)", (str(number), "x" * 100_000))

    for number in range(30):
        await database.write(grow, number)
        await database.checkpoint()
    assert path.with_name("crawld.db-wal").stat().st_size < 1_000_000


def spoil(path, at, length=4096):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xa5" * length)


@pytest.fixture
def large(path):
    """A closed file with a few hundred pages of values."""
    migrate.migrate(path)
    connection = open_connection(path)
    connection.execute("BEGIN")
    for number in range(5000):
        connection.execute("INSERT INTO meta VALUES (?, ?)", (f"key {number}", "x" * 300))
    connection.execute("COMMIT")
    connection.close()
    return path


async def test_a_damaged_header_is_refused_with_a_hint(large):
    spoil(large, 0, 100)
    with pytest.raises(CorruptDatabaseError) as caught:
        await Database.open(large)
    assert "crawld restore" in caught.value.hint


async def test_a_damaged_page_is_an_error_in_reads_and_writes(large):
    spoil(large, large.stat().st_size // 2 // 4096 * 4096, 40 * 4096)
    async with await Database.open(large) as database:
        for way in (database.read, database.write):
            with pytest.raises(CorruptDatabaseError) as caught:
                await way(lambda db: db.execute("SELECT sum(length(value)) FROM meta").get)
            assert "crawld restore" in caught.value.hint


async def test_other_tasks_run_between_the_parts_of_one_call(tmp_path, nursery):
    runs = []

    def slow_parts(connection, name):
        for number in range(6):
            began = trio.current_time()
            while trio.current_time() < began + SLICE_S:
                pass
            meta.put(connection, f"{name}{number}", "stored")
            runs.append("part")
            yield
        return name

    async with await Database.open(tmp_path / "p.db") as database:
        await nursery.start(database.run_writer)
        results = []

        async def write():
            results.extend(await database.write_each(slow_parts, ["a", "b"]))

        nursery.start_soon(write)
        while not results:
            runs.append("other")
            await trio.lowlevel.checkpoint()
        assert results == ["a", "b"]
        assert await database.read(meta.get, "b5") == "stored"
        nursery.cancel_scope.cancel()
    # Trio shuffles the order of tasks: two parts may follow each other, three may not.
    assert "part part part" not in " ".join(runs)


async def test_calls_in_parts_beside_a_failing_one_are_committed(database, nursery):
    await nursery.start(database.run_writer)

    def in_parts(connection, key):
        yield
        if key == "bad":
            raise LookupError(key)
        return put(connection, key)

    results = await database.write_each(in_parts, ["a", "bad", "b"])
    assert [str(each) for each in results] == ["a", "bad", "b"]
    assert isinstance(results[1], LookupError)
    assert await database.read(count) == 2


async def test_what_a_call_yields_runs_on_a_thread_before_its_next_part(database, nursery):
    await nursery.start(database.run_writer)
    order = []

    def in_parts(connection, key):
        order.append((key, threading.get_ident()))
        yield lambda: order.append(("apart", threading.get_ident()))
        order.append((key, threading.get_ident()))
        return put(connection, key)

    assert await database.write_each(in_parts, ["a"]) == ["a"]
    loop = threading.get_ident()
    assert [name for name, _ in order] == ["a", "apart", "a"]
    assert [thread == loop for _, thread in order] == [True, False, True]


async def test_a_brief_read_waits_for_no_other_read(database):
    release, begun = threading.Event(), [trio.Event() for _ in range(READERS)]
    token = trio.lowlevel.current_trio_token()

    def hold(connection, event):
        token.run_sync_soon(event.set)
        release.wait()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for event in begun:
                nursery.start_soon(database.read, hold, event)
                await event.wait()
            try:
                assert [await database.read_briefly(count) for _ in range(3)] == [0, 0, 0]
            finally:
                release.set()


class CancelledOpening:
    """The workers of production; a scope is cancelled while a connection opens."""

    run = staticmethod(THREADS.run)

    def __init__(self, *, opened):
        self.scope = None
        self.opened = opened

    async def connect(self, filename, flags):
        connection = await THREADS.connect(filename, flags) if self.opened else None
        if self.scope is not None:
            self.scope.cancel()
        return connection or await THREADS.connect(filename, flags)


@pytest.mark.parametrize("opened", [False, True], ids=["before-it-is-open", "when-it-is-open"])
async def test_a_read_cancelled_while_its_connection_opens_leaves_no_thread(path, opened):
    def threads():
        return {each for each in threading.enumerate() if not each.name.startswith("Trio thread")}

    before = threads()
    workers = CancelledOpening(opened=opened)
    async with await Database.open(path, workers=workers) as database:
        with trio.CancelScope() as workers.scope:
            await database.read_briefly(count)
            raise AssertionError("the read was not cancelled")
    assert threads() == before


async def test_a_closed_database_has_no_brief_reads(path):
    async with await Database.open(path) as database:
        assert await database.read_briefly(count) == 0
    with pytest.raises(ClosedDatabaseError) as caught:
        await database.read_briefly(count)
    assert "start it again" in caught.value.hint


def fill(connection, size_bytes):
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('filler', ?)", ("x" * size_bytes,))


async def test_a_log_is_copied_back_only_when_it_is_long_again(database, path, nursery):
    await nursery.start(database.run_writer)
    await database.write(fill, CHECKPOINT_BYTES)
    await database.shorten_log()
    copied = path.stat().st_mtime_ns
    assert path.stat().st_size > CHECKPOINT_BYTES
    await database.write(put, "small")
    await database.shorten_log()
    assert path.with_name("crawld.db-wal").stat().st_size > CHECKPOINT_BYTES
    assert path.stat().st_mtime_ns == copied


async def test_a_read_of_background_work_begins_while_the_event_loop_is_busy(database):
    """Ten jobs would wait for seconds where each read ends in a later pass than it began in."""
    go_on, begun = threading.Event(), threading.Event()

    async def job(read):
        with background_reads():
            await database.read(lambda _: read())

    await job(lambda: None)  # opens the connection
    async with trio.open_nursery() as jobs:
        jobs.start_soon(job, lambda: go_on.wait(60))
        await trio.testing.wait_all_tasks_blocked()
        jobs.start_soon(job, begun.set)
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
        assert begun.wait(60)  # on the event loop, which does nothing else meanwhile


async def test_reads_of_background_work_leave_a_reader_to_turns(database):
    go_on = threading.Event()
    reading = []

    def scan(_connection):
        reading.append(None)
        go_on.wait(60)

    async def job():
        with background_reads():
            async with trio.open_nursery() as tasks:  # a job may start tasks of its own
                for _ in range(READERS):
                    tasks.start_soon(database.read, scan)

    try:
        async with trio.open_nursery() as tasks:
            tasks.start_soon(job)
            while len(reading) < READERS - 1:
                await trio.lowlevel.checkpoint()
            with trio.fail_after(60):
                assert await database.read(count) == 0
            assert len(reading) == READERS - 1
            go_on.set()
    finally:
        go_on.set()
    assert len(reading) == READERS
