import fcntl
import os

import pytest

from crawld.errors import OperatorError
from crawld.export.atomic_file import atomic_path


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "m.zim"
    with atomic_path(path) as partial:
        partial.write_bytes(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_one_left_goes(tmp_path):
    room = tmp_path / "m.zim.partial"
    (room / "index.tmp").mkdir(parents=True)
    (room / "m.zim").write_bytes(b"half of an older one")
    with atomic_path(tmp_path / "m.zim") as partial:
        assert list(room.iterdir()) == []
        partial.write_bytes(b"whole")
    assert [each.name for each in tmp_path.iterdir()] == ["m.zim"]


def test_nothing_is_left_where_it_fails(tmp_path):
    with pytest.raises(OperatorError, match="cannot be written"), atomic_path(tmp_path / "m"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_one_at_a_time_and_never_over_another_file(tmp_path):
    room = tmp_path / "m.partial"
    room.mkdir()
    held = os.open(room, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(OperatorError, match="another export"), atomic_path(tmp_path / "m"):
        pass
    os.close(held)
    (tmp_path / "m").write_bytes(b"kept")
    with pytest.raises(OperatorError, match="exists"), atomic_path(tmp_path / "m"):
        pass
    assert (tmp_path / "m").read_bytes() == b"kept"


def test_a_link_in_its_place_is_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (tmp_path / "m.partial").symlink_to(elsewhere)
    with pytest.raises(OperatorError, match="cannot be written"), atomic_path(tmp_path / "m"):
        pass
    assert (elsewhere / "kept").exists()
