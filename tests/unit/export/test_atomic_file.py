import fcntl
import os

import pytest

from crawld.errors import OperatorError
from crawld.export.atomic_file import atomic_path


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "m.zim"
    with atomic_path(path) as partial:
        partial.write_bytes(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_files_of_a_killed_export_are_deleted(tmp_path):
    directory = tmp_path / "m.zim.partial"
    (directory / "index.tmp").mkdir(parents=True)
    (directory / "m.zim").write_bytes(b"half of an older file")
    with atomic_path(tmp_path / "m.zim") as partial:
        assert list(directory.iterdir()) == []
        partial.write_bytes(b"whole")
    assert [each.name for each in tmp_path.iterdir()] == ["m.zim"]


def test_a_failed_export_leaves_nothing(tmp_path):
    with pytest.raises(OperatorError, match="cannot be written"), atomic_path(tmp_path / "m"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_locked_or_existing_file_is_refused(tmp_path):
    directory = tmp_path / "m.partial"
    directory.mkdir()
    descriptor = os.open(directory, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(OperatorError, match="another export"), atomic_path(tmp_path / "m"):
        pass
    os.close(descriptor)
    (tmp_path / "m").write_bytes(b"kept")
    with pytest.raises(OperatorError, match="exists"), atomic_path(tmp_path / "m"):
        pass
    assert (tmp_path / "m").read_bytes() == b"kept"


def test_a_symbolic_link_is_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (tmp_path / "m.partial").symlink_to(elsewhere)
    with pytest.raises(OperatorError, match="cannot be written"), atomic_path(tmp_path / "m"):
        pass
    assert (elsewhere / "kept").exists()
