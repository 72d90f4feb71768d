import csv
import json

import pytest

from crawld.core.page import Outcome
from crawld.errors import OperatorError
from crawld.export.records import export_records
from crawld.store.changes import change
from crawld.store.changes.change import Change
from crawld.store.mirror import rows
from crawld.store.mirror.rows import TABLES

H = "http://h.example"
AWKWARD = 'a "quoted", title\nof two lines; Łódź'


@pytest.fixture
def filled(mirror):
    mirror.page(f"{H}/", b"front", title=AWKWARD)
    mirror.visit(f"{H}/", Outcome.NOT_MODIFIED, status=304)
    mirror.page(f"{H}/never")
    mirror.write(lambda c: change.insert(c, 1, [Change(5.0, 7), Change(6.0, 8, kind="null")]))
    return mirror


def lines(path):
    # Not splitlines(): a title may contain a Unicode line separator.
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def test_json_lines(filled, tmp_path):
    result = export_records(filled.request(tmp_path / "out"), "jsonl")
    assert result.written == {"pages": 2, "visits": 2, "changes": 2, "versions": 1}
    tables = {name: lines(tmp_path / f"out/{name}.jsonl") for name in TABLES}
    front, never = tables["pages"]
    assert (front["url"], front["title"], front["status"]) == (f"{H}/", AWKWARD, 200)
    assert (never["last_visit_at"], never["version_id"]) == (None, None)
    assert [row["outcome"] for row in tables["visits"]] == ["changed", "not_modified"]
    exact = [(row["changed_at"], row["earliest_at"], row["kind"]) for row in tables["changes"]]
    assert exact == [(5.0, 5.0, None), (6.0, 6.0, "null")]


def changes(mirror, tmp_path, **options):
    out = tmp_path / "c.jsonl"
    out.unlink(missing_ok=True)
    export_records(mirror.request(out, table="changes", **options), "jsonl")
    return lines(out)


def test_changes_that_visits_found_come_with_their_interval(mirror, tmp_path):
    mirror.page(f"{H}/", b"one")
    mirror.visit(f"{H}/", Outcome.NOT_MODIFIED, status=304)
    quiet_at = mirror.at
    mirror.visit(f"{H}/", Outcome.FAILED, status=500)
    mirror.visit(f"{H}/", Outcome.CHANGED, b"a second text", difference=0.4)
    changed_at = mirror.at
    mirror.page(f"{H}/still", b"x")
    mirror.visit(f"{H}/still", Outcome.UNCHANGED, b"x")
    [found] = changes(mirror, tmp_path)
    assert found == {
        "page_id": 1,
        "changed_at": changed_at,
        "revision_id": None,
        "source": "visit",
        "url": f"{H}/",
        "kind": None,
        "size_bytes": 13,
        "earliest_at": quiet_at,
        "visit_id": 4,
        "version_id": 2,
        "difference": 0.4,
    }
    assert changes(mirror, tmp_path, since=changed_at) == [found]
    assert changes(mirror, tmp_path, since=changed_at + 1.0) == []


def test_a_page_that_goes_moves_or_comes_back_has_changed(mirror, tmp_path):
    mirror.page(f"{H}/", b"one")
    for outcome in (Outcome.GONE, Outcome.SOFT_GONE, Outcome.UNCHANGED, Outcome.GONE):
        mirror.visit(f"{H}/", outcome)
    mirror.visit(f"{H}/", Outcome.CHANGED, b"two")
    for _ in range(2):
        mirror.visit(f"{H}/", Outcome.MOVED, status=301, redirect_url=f"{H}/b")
    mirror.visit(f"{H}/", Outcome.CHANGED, b"two")
    kinds = [row["kind"] for row in changes(mirror, tmp_path)]
    assert kinds == ["deletion", "restoration", "deletion", "restoration", "move", "restoration"]


def test_copies_without_a_visit_are_looks_too(mirror, tmp_path):
    for number in range(1, 4):
        mirror.page(f"{H}/", str(number).encode())
    mirror.write(lambda c: c.execute("DELETE FROM visit WHERE visit_id < 3"))
    assert [row["version_id"] for row in changes(mirror, tmp_path)] == [2, 3]
    assert [row["visit_id"] for row in changes(mirror, tmp_path)] == [None, 3]


def test_changes_of_more_pages_than_one_read_takes(mirror, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "PAGES", 2)
    for number in range(5):
        mirror.page(f"{H}/{number}", b"a")
        mirror.visit(f"{H}/{number}", Outcome.CHANGED, b"b")
    assert [row["page_id"] for row in changes(mirror, tmp_path)] == [1, 2, 3, 4, 5]


def test_csv(filled, tmp_path):
    export_records(filled.request(tmp_path / "out"), "csv")
    with (tmp_path / "out/pages.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["title"] for row in rows] == [AWKWARD, ""]
    assert list(rows[0]) == list(TABLES["pages"].columns)


def test_one_table_in_one_file_and_since(filled, tmp_path):
    out = tmp_path / "v.jsonl"
    export_records(filled.request(out, since=filled.at, table="visits"), "jsonl")
    assert [row["outcome"] for row in lines(out)] == ["not_modified"]


def test_refusals(filled, tmp_path):
    with pytest.raises(OperatorError, match="unknown table"):
        export_records(filled.request(tmp_path / "x", table="secrets"), "csv")
    (tmp_path / "kept").mkdir()
    with pytest.raises(OperatorError, match="exists"):
        export_records(filled.request(tmp_path / "kept"), "csv")
    with pytest.raises(OperatorError, match="cannot be written"):
        export_records(filled.request(tmp_path / "none/out"), "csv")
