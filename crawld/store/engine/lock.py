"""One writing process per database: an advisory lock, and a check of the file system.

The lock is `flock` on `<database>.lock`, which holds the pid of the owner. The kernel releases it
with the process, so that `kill -9` leaves nothing to clean up. The file itself stays, because
removing a lock file races with the next opener. SQLite's own locks cannot do this: they are free
between transactions.

Network file systems support neither these locks nor SQLite's shared memory reliably;
`network_filesystem` detects them, for a warning.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final, Self

from crawld.errors import DatabaseInUseError, StoreError

NETWORK_TYPES: Final = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "smb2",
        "smb3",
        "smbfs",
        "virtiofs",
        "fuse.ceph",
        "fuse.davfs2",
        "fuse.glusterfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.smbnetfs",
        "fuse.sshfs",
    }
)
"""File system types in /proc/self/mountinfo that other machines may write to."""


class DatabaseLock:
    """The exclusive right to write to one database; a context manager, ended by `release`."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    @classmethod
    def acquire(cls, database: Path) -> Self:
        """Take the lock, or raise an error that names its owner.

        Args:
            database: the database file; symbolic links are followed, so that two names of one
                file share the lock.

        Raises:
            DatabaseInUseError: another process holds it.
            StoreError: the lock file cannot be made.
        """
        path = lock_path(database)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(
                f"cannot create the lock file {path}: {error.strerror}",
                hint="the directory of the database must exist and be writable",
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise _in_use(database) from error
        _write_pid(fd)
        return cls(path, fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def lock_path(database: Path) -> Path:
    """Return the lock file of a database."""
    real = database.resolve()
    return real.with_name(real.name + ".lock")


def _write_pid(fd: int) -> None:
    """Write the owner's pid; on a full disk only the pid is missing, the lock holds."""
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        return


def owner_pid(database: Path) -> int | None:
    """Return the pid written in the lock file, None if there is none to read."""
    try:
        return int(lock_path(database).read_text().strip())
    except (OSError, ValueError):
        return None


def _in_use(database: Path) -> DatabaseInUseError:
    pid = owner_pid(database)
    owner = f"process {pid}" if pid else "another process"
    return DatabaseInUseError(
        f"{database} is in use by {owner}",
        hint="control the running daemon with crawlctl, or stop it: crawlctl shutdown",
    )


def network_filesystem(
    database: Path, mountinfo: Path = Path("/proc/self/mountinfo")
) -> str | None:
    """Return a warning if the database is on a network file system, else None.

    Args:
        database: the database file; it, or the nearest directory above it, exists.
        mountinfo: the kernel's list of mounts, in the format of proc(5).
    """
    place = database.resolve()
    while not place.exists():
        place = place.parent
    device = place.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    kind = _filesystem_type(mountinfo, wanted)
    if kind not in NETWORK_TYPES:
        return None
    return (
        f"{database} is on a network file system ({kind}): locks and shared memory are not "
        "reliable there; keep the database on a local disk"
    )


def _filesystem_type(mountinfo: Path, device: str) -> str:
    """Return the type of the first mount of a device (`major:minor`), empty if unknown."""
    try:
        lines = mountinfo.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) > 2 and fields[2] == device and after:
            return after.split()[0]
    return ""
