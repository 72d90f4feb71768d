"""`crawld export` and `crawld import`."""

import json

import pytest


def urls(tmp_path, *lines):
    path = tmp_path / "urls.txt"
    path.write_text("\n".join(lines))
    return path


def test_an_export_prints_its_counts(command, db, tmp_path):
    ended = command("crawld", "export", "jsonl", "--db", db, "--out", tmp_path / "o", "--json")
    printed = json.loads(ended.out)
    assert (ended.code, printed["form"], printed["unreadable"]) == (0, "jsonl", [])
    assert printed["written"] == {"pages": 0, "visits": 0, "changes": 0, "versions": 0}
    again = command("crawld", "export", "jsonl", "--db", db, "--out", tmp_path / "o")
    assert again.code == 2
    assert "exists" in again.err


def test_imported_urls_are_exported_as_a_table(command, db, tmp_path):
    listed = urls(tmp_path, "https://h.example/a", "https://h.example/b")
    ended = command("crawld", "import", "urls", listed, "--db", db, "--site", "mine")
    assert (ended.code, ended.out) == (0, f"{db}: 2 new pages\n")
    out = tmp_path / "p.csv"
    ended = command("crawld", "export", "csv", "--table", "pages", "--db", db, "--out", out)
    assert ended.code == 0
    assert [line.split(",")[1:3] for line in out.read_text().splitlines()[1:]] == [
        ["https://h.example/a", "mine"],
        ["https://h.example/b", "mine"],
    ]


def test_an_incomplete_import_ends_with_3(command, db, tmp_path):
    ended = command("crawld", "import", "urls", urls(tmp_path, "no url"), "--db", db)
    assert ended.code == 3
    assert "urls.txt line 1" in ended.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("export", "static", "--out", "o", "--table", "pages"),
            "--table does not apply to static",
        ),
        (("export", "jsonl", "--out", "o", "--table", "secrets"), "unknown table"),
        (("export", "warc", "--out", "o", "--since", "soon"), "not a time"),
        (("export", "pdf", "--out", "o"), "pdf"),
        (("import", "warc", "none.warc"), "not a file"),
        (
            ("import", "urls", "none.txt", "--base", "http://h.example/"),
            "--base does not apply to urls",
        ),
    ],
)
def test_refusals(command, db, words, message):
    ended = command("crawld", *words, "--db", db)
    assert ended.code == 2
    assert message in ended.err


def test_a_missing_database_is_refused(command, tmp_path):
    ended = command("crawld", "export", "static", "--db", tmp_path / "x.db", "--out", tmp_path)
    assert ended.code == 2
    assert "there is no database" in ended.err
