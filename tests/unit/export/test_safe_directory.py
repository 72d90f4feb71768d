from contextlib import closing

import pytest

from crawld.errors import OperatorError
from crawld.export.safe_directory import SafeDirectory


def test_files_are_written_and_replaced(tmp_path):
    with closing(SafeDirectory(tmp_path / "out")) as directory:
        directory.write("a/b/c.html", b"one")
        directory.write("a/b/c.html", b"two")
    assert (tmp_path / "out/a/b/c.html").read_bytes() == b"two"
    assert [path.name for path in (tmp_path / "out/a/b").iterdir()] == ["c.html"]


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x", "a//x", "", ".", "a/\0"])
def test_a_path_that_leaves_the_directory_is_a_bug(tmp_path, path):
    with (
        closing(SafeDirectory(tmp_path / "out")) as directory,
        pytest.raises(ValueError, match="not a path"),
    ):
        directory.write(path, b"")


def test_no_symbolic_link_is_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/dir").symlink_to(outside)
    (tmp_path / "out/file.html").symlink_to(outside / "kept")
    with closing(SafeDirectory(tmp_path / "out")) as directory:
        with pytest.raises(OperatorError, match="cannot be written"):
            directory.write("dir/x.html", b"x")
        directory.write("file.html", b"new")
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text() == "kept"
    assert not (tmp_path / "out/file.html").is_symlink()


def test_without_its_temporary_directory_nothing_is_written(tmp_path):
    with closing(SafeDirectory(tmp_path)) as directory:
        directory.use_temp(".state/temp")
        directory.write("a/x.html", b"1")
        (tmp_path / ".state/temp").rmdir()
        with pytest.raises(OperatorError, match="cannot be written"):
            directory.write("a/x.html", b"2")
    assert (tmp_path / "a/x.html").read_bytes() == b"1"


def test_more_directories_than_descriptors(tmp_path):
    with closing(SafeDirectory(tmp_path)) as directory:
        for number in range(600):
            directory.write(f"{number}/x.html", b"")
        directory.write("0/y.html", b"")
    assert len(list(tmp_path.glob("*/*.html"))) == 601


def test_a_file_as_root_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match="not a writable directory"):
        SafeDirectory(tmp_path / "file")
