import os
import subprocess
import sys

import pytest

from crawld.errors import DatabaseInUseError, StoreError
from crawld.store.engine.lock import DatabaseLock, network_filesystem

HOLD = """
import sys
from pathlib import Path
from crawld.store.engine.lock import DatabaseLock
lock = DatabaseLock.acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def hold(path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_with_the_pid_of_the_owner(path):
    with hold(path) as owner:
        with pytest.raises(DatabaseInUseError, match=f"process {owner.pid}"):
            DatabaseLock.acquire(path)
        owner.stdin.close()
    DatabaseLock.acquire(path).release()


def test_a_killed_owner_leaves_the_lock_free(path):
    with hold(path) as owner:
        owner.kill()
    DatabaseLock.acquire(path).release()


def test_a_symbolic_link_is_the_same_database(path):
    link = path.with_name("link.db")
    link.symlink_to(path)
    with (
        DatabaseLock.acquire(path),
        pytest.raises(DatabaseInUseError, match=f"process {os.getpid()}"),
    ):
        DatabaseLock.acquire(link)


def test_release_twice_does_not_close_a_foreign_file(path):
    lock = DatabaseLock.acquire(path)
    lock.release()
    with path.open("w") as other:
        lock.release()
        other.write("still open")


def test_a_missing_directory_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="lock file"):
        DatabaseLock.acquire(tmp_path / "missing" / "crawld.db")


@pytest.mark.parametrize(
    ("kind", "warned"),
    [
        ("nfs4", True),
        ("cifs", True),
        ("fuse.sshfs", True),
        ("9p", True),
        ("ext4", False),
        ("tmpfs", False),
        ("fuse.mergerfs", False),
    ],
)
def test_a_network_file_system_gets_a_warning(tmp_path, kind, warned):
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:5 / /proc rw - proc proc rw\n"
        f"36 35 {os.major(device)}:{os.minor(device)} / /mnt rw,noatime shared:1 - {kind} x rw\n"
    )
    warning = network_filesystem(tmp_path / "sub" / "crawld.db", mounts)
    assert (warning is not None) == warned
    assert not warned or kind in warning


def test_without_a_list_of_mounts_there_is_no_warning(tmp_path):
    assert network_filesystem(tmp_path / "crawld.db", tmp_path / "nothing") is None
