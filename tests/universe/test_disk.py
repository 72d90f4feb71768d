"""The simulated disk: what is synced survives a power cut, the rest is kept, dropped or torn."""

import random

import apsw
import pytest

from crawld.universe.disk import SECTOR_BYTES, SimulatedDisk, installed
from crawld.universe.plan import DiskFault

ROWS = 20


class Case:
    """A database in WAL mode on a simulated disk, and what a power cut leaves of it."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "a.db"
        self.now = None
        self.disk = SimulatedDisk(random.Random(1), lambda: self.now)
        self.opened = []

    def open(self):
        connection = apsw.Connection(str(self.path))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.wal_autocheckpoint(0)
        connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
        self.opened.append(connection)
        return connection

    def rows_after_power_cut(self):
        """Return how many rows the file has after a power cut; it must be whole."""
        left = self.folder / "left"
        left.mkdir(exist_ok=True)
        for name in ("a.db", "a.db-wal"):
            (left / name).write_bytes(self.disk.power_cut_image(self.folder / name))
        connection = apsw.Connection(str(left / "a.db"))
        try:
            assert connection.execute("PRAGMA integrity_check").get == "ok"
            return connection.execute("SELECT count(*) FROM t").get
        finally:
            connection.close()


@pytest.fixture
def case(tmp_path):
    made = Case(tmp_path)
    with installed(made.disk):
        yield made
        for connection in made.opened:
            connection.close()


def insert(connection, count):
    for _ in range(count):
        connection.execute("INSERT INTO t VALUES (randomblob(3000))")


def test_a_synced_commit_survives_every_power_cut(case):
    connection = case.open()
    insert(connection, ROWS)
    assert {case.rows_after_power_cut() for _ in range(9)} == {ROWS}
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    insert(connection, ROWS)
    assert {case.rows_after_power_cut() for _ in range(9)} == {2 * ROWS}


def test_what_was_not_synced_may_be_lost_or_kept(case):
    connection = case.open()
    insert(connection, ROWS)
    connection.execute("PRAGMA synchronous = OFF")
    insert(connection, ROWS)
    left = {case.rows_after_power_cut() for _ in range(30)}
    assert min(left) == ROWS
    assert max(left) == 2 * ROWS
    assert len(left) > 2  # a part


def test_an_open_transaction_is_in_no_image(case):
    connection = case.open()
    insert(connection, 1)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA cache_size = 1")  # so that it spills into the log
    insert(connection, ROWS)
    assert {case.rows_after_power_cut() for _ in range(9)} == {1}


def test_connections_share_the_log_as_on_a_real_disk(case):
    one, other = case.open(), case.open()
    insert(one, 3)
    assert other.execute("SELECT count(*) FROM t").get == 3
    assert case.disk.open_files == 4
    one.close()
    other.close()
    assert case.disk.open_files == 0


def test_a_full_disk_refuses_what_grows(case):
    connection = case.open()
    insert(connection, 1)
    case.now = DiskFault.FULL
    with pytest.raises(apsw.FullError):
        insert(connection, 1)
    assert connection.execute("SELECT count(*) FROM t").get == 1
    case.now = None
    insert(connection, 1)
    assert case.rows_after_power_cut() == 2


def test_a_failing_disk_leaves_a_file_that_recovers(case):
    connection, done = case.open(), 0
    case.now = DiskFault.FAILING
    for _ in range(50):
        try:
            insert(connection, 1)
            done += 1
        except apsw.IOError:
            continue
    case.now = None
    assert 0 < done < 50
    assert connection.execute("SELECT count(*) FROM t").get == done
    insert(connection, 1)  # and is synced
    assert case.rows_after_power_cut() == done + 1


def test_torn_writes_are_whole_sectors(case):
    data = bytes(range(256)) * 16
    torn = {len(case.disk.torn(data)) for _ in range(100)}
    assert {0, len(data)} < torn
    assert all(size % SECTOR_BYTES == 0 for size in torn)


def test_a_power_cut_within_any_operation_leaves_all_or_nothing(case):
    connection, left = case.open(), []
    insert(connection, 1)
    for operations in range(1, 40):
        case.disk.after_operations(operations, lambda: left.append(case.rows_after_power_cut()))
        connection.execute("BEGIN IMMEDIATE")
        insert(connection, 3)
        connection.execute("COMMIT")
        if operations % 5 == 0:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        case.disk.forget_operations()
    assert {rows % 3 for rows in left} == {1}
    assert sorted(left) == left
    assert len(left) > 10
