"""Marks outlive the process that wrote them, and a file that is not whole has none."""

import os
import signal
import subprocess
import sys

import pytest

from crawld.marks import NO_MARKS, SLOT_BYTES, SLOTS, MarksFile, Step, marks_path

URL = "https://a.test/page?x=1"


@pytest.fixture
def path(tmp_path):
    return marks_path(tmp_path / "crawld.db")


def opened(path, version=7):
    marks = MarksFile.open(path)
    marks.begin(version)
    return marks


def left_by(path, *urls):
    """Leave marks as a killed process does, and return them as the next one reads them."""
    marks = opened(path)
    for url in urls:
        marks.under(url).__enter__()
    return MarksFile.open(path).left


CHILD = """
import sys
from pathlib import Path
from crawld.marks import MarksFile, Step
marks = MarksFile.open(Path(sys.argv[1]))
marks.begin(7)
with marks.under("https://a.test/before"):
    pass
with marks.under("https://a.test/whole"), marks.under("https://a.test/coded", Step.DECODING):
    for _ in range(5):
        marks.beat()
    print("under way", flush=True)
    sys.stdin.read()
"""


def test_marks_of_a_killed_process_are_read_by_the_next(path):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout.readline() == b"under way\n"
        child.send_signal(signal.SIGKILL)
    left = MarksFile.open(path).left
    assert {(each.url, each.step) for each in left} == {
        ("https://a.test/whole", Step.ANALYSIS),
        ("https://a.test/coded", Step.DECODING),
    }
    assert {(each.analyser_version, each.beats) for each in left} == {(7, 5)}


def test_a_step_that_ended_leaves_no_mark_even_if_it_failed(path):
    marks = opened(path)
    with pytest.raises(ValueError, match="bad page"), marks.under(URL):
        raise ValueError("bad page")
    assert MarksFile.open(path).left == ()


def test_a_mark_says_for_how_many_beats_it_stood(path):
    marks = opened(path)
    marks.beat()
    marks.under("https://a.test/old").__enter__()
    marks.beat()
    marks.beat()
    marks.under("https://a.test/new").__enter__()
    left = MarksFile.open(path).left
    assert {each.url: each.beats for each in left} == {
        "https://a.test/old": 2,
        "https://a.test/new": 0,
    }


def test_marks_stay_until_the_next_process_has_dealt_with_them(path):
    assert [each.url for each in left_by(path, URL)] == [URL]
    MarksFile.open(path).close()  # ended before it had
    again = MarksFile.open(path)
    assert [each.url for each in again.left] == [URL]
    again.begin(8)
    assert again.left == MarksFile.open(path).left == ()


def test_a_clean_end_leaves_no_file(path):
    opened(path).close()
    assert not path.exists()


def test_slots_are_used_again_and_run_out_without_harm(path):
    marks = opened(path)
    for number in range(3 * SLOTS):
        with marks.under(f"https://a.test/{number}"):
            assert len(MarksFile.open(path).left) == 1
    contexts = [marks.under(f"https://a.test/{number}") for number in range(SLOTS + 2)]
    for context in contexts:
        context.__enter__()
    assert len(MarksFile.open(path).left) == SLOTS
    for context in contexts:
        context.__exit__(None, None, None)
    assert MarksFile.open(path).left == ()
    assert len(marks.free) == SLOTS


def test_a_url_longer_than_a_slot_stays_inside_it(path):
    left = left_by(path, "https://a.test/" + "x" * 2 * SLOT_BYTES, URL)
    assert {each.url[:16] for each in left} == {"https://a.test/x", URL[:16]}
    assert max(len(each.url) for each in left) < SLOT_BYTES


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        b"SQLite format 3\x00" + b"\x01" * 400_000,
        b"\xff" * 400_000,
        os.urandom(400_000),
    ],
    ids=["empty", "short", "foreign", "ones", "random"],
)
def test_a_foreign_file_has_no_marks_and_is_taken_over(path, content):
    path.write_bytes(content)
    assert MarksFile.open(path).left == ()
    assert [each.url for each in left_by(path, URL)] == [URL]


def test_a_short_file_keeps_the_marks_that_are_whole(path):
    left_by(path, URL, "https://a.test/second")
    whole = path.read_bytes()
    for size in (len(whole) // 2, len(whole) - SLOT_BYTES, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert {each.url for each in MarksFile.open(path).left} <= {URL, "https://a.test/second"}


def test_a_torn_slot_is_no_mark(path):
    left_by(path, URL)
    whole = path.read_bytes()
    at = whole.index(URL.encode())
    for torn in (at - 1, at - 9, at - 13, at, at + len(URL) - 1):
        path.write_bytes(whole[:torn] + bytes([whole[torn] ^ 1]) + whole[torn + 1 :])
        assert [each.url for each in MarksFile.open(path).left] in ([], [URL])
    path.write_bytes(whole[:at] + bytes(len(URL)) + whole[at + len(URL) :])
    assert MarksFile.open(path).left == ()


def test_without_a_file_the_marks_are_in_memory_alone(tmp_path):
    marks = MarksFile.open(tmp_path / "missing" / "crawld.db-marks")
    marks.begin(7)
    with marks.under(URL):
        marks.beat()
    assert not marks.durable
    marks.close()


def test_a_symbolic_link_is_not_followed(path, tmp_path):
    target = tmp_path / "precious"
    target.write_bytes(b"kept")
    path.symlink_to(target)
    assert not MarksFile.open(path).durable
    assert target.read_bytes() == b"kept"


def test_only_the_owner_may_read_the_urls(path):
    opened(path)
    assert path.stat().st_mode & 0o077 == 0


def test_programs_without_marks_need_no_condition():
    with NO_MARKS.under(URL), NO_MARKS.under(URL, Step.DECODING):
        pass
