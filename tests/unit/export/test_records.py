import csv
import json

import pytest

from crawld.core.page import Outcome
from crawld.errors import OperatorError
from crawld.export.records import export_records
from crawld.store.changes import change
from crawld.store.changes.change import Change
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
    changes = [(row["changed_at"], row["kind"]) for row in tables["changes"]]
    assert changes == [(5.0, None), (6.0, "null")]


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
