"""Reading recorded histories: real files and invalid ones."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from crawld.errors import OperatorError
from crawld.lab.histories import from_times, read_histories

DATA = Path(__file__).parents[1] / "data" / "histories"
ROWS = "".join(f"a,{second * second}\n" for second in range(5000))
TRUNCATED = gzip.compress(f"page_id,changed_at\n{ROWS}".encode())[:5000]


@pytest.mark.parametrize(
    ("name", "pages", "changes"),
    [
        ("ota_terms.csv.gz", 877, 40_673),
        ("wikipedia_extract.csv.gz", 59, 11_394),
        ("phpdoc_extract.csv.gz", 491, 2_844),
    ],
)
def test_the_recorded_histories_are_complete(name, pages, changes):
    histories = read_histories(DATA / name)
    assert (len(histories), histories.changed_at.size) == (pages, changes)
    assert all((np.diff(times) > 0).all() for times in histories.page_times)


def test_rows_in_any_order_with_repeats_and_other_columns(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text("note,changed_at,page_id\nx,30,b\ny,10,a\n\nz,20.5,b\nw,30,b\nv,5,a\n")
    histories = read_histories(path)
    assert histories.page_ids == ("b", "a")
    assert [t.tolist() for t in histories.page_times] == [[20.5, 30.0], [5.0, 10.0]]


def test_gzip_and_plain_read_alike(tmp_path):
    plain, packed = tmp_path / "h.csv", tmp_path / "h.csv.gz"
    plain.write_text("\ufeffpage_id,changed_at\na,1\n", encoding="utf-8")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert [read_histories(path).changed_at.tolist() for path in (plain, packed)] == [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1"),
        ("page,when\na,1\n", "line 1"),
        ("page_id,changed_at\na,1\nb\n", "line 3"),
        ("page_id,changed_at\na,yesterday\n", "line 2"),
        ("page_id,changed_at\na,nan\n", "line 2"),
        ("page_id,changed_at\n,5\n", "line 2"),
    ],
    ids=["empty", "header", "short row", "no number", "not finite", "no page"],
)
def test_an_invalid_row_is_named_by_its_line(tmp_path, text, said):
    path = tmp_path / "h.csv"
    path.write_text(text)
    with pytest.raises(OperatorError, match=said) as raised:
        read_histories(path)
    assert "page_id,changed_at" in raised.value.hint


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("h.csv.gz", b"no gzip"),
        ("h.csv.gz", TRUNCATED),
        ("h.csv", b"page_id,changed_at\n\xff\xfe\x00,1\n"),
    ],
    ids=["no gzip", "truncated", "not UTF-8"],
)
def test_damaged_and_missing_files_are_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(OperatorError, match="cannot read"):
        read_histories(path)
    with pytest.raises(OperatorError, match="cannot read"):
        read_histories(tmp_path / "missing.csv")


def test_windows_keep_every_page():
    histories = from_times({"a": [1.0, 5.0, 9.0], "b": [7.0], "c": []})
    inside = histories.window(5.0, 9.0)
    assert [t.tolist() for t in inside.page_times] == [[5.0], [7.0], []]
    assert histories.before(5.0).counts.tolist() == [1, 0, 0]
    assert histories.changes_in(5.0, 9.0).tolist() == [1, 1, 0]
    assert histories.born_at().tolist() == [1.0, 7.0, np.inf]
    assert histories.select(np.array([False, True, True])).page_ids == ("b", "c")
    assert histories.select(np.array([2, 0])).page_ids == ("c", "a")


def test_no_pages():
    nothing = from_times({})
    assert len(nothing) == 0
    assert nothing.changes_in(0.0, 1.0).size == 0
    assert len(nothing.window(0.0, 1.0)) == 0


def test_a_change_time_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="finite"):
        from_times({"a": [np.nan]})
