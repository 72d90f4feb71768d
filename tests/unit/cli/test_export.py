"""`crawld export` and `crawld import` as a user runs them."""

import json

import pytest

from crawld.store.engine import migrate


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "m.db"
    migrate.migrate(path)
    return path


def urls(tmp_path, *lines):
    path = tmp_path / "urls.txt"
    path.write_text("\n".join(lines))
    return path


def test_an_export_says_what_it_wrote(command, db, tmp_path):
    ended = command("crawld", "export", "jsonl", "--db", db, "--out", tmp_path / "o", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["form"], told["unreadable"]) == (0, "jsonl", [])
    assert told["written"] == {"pages": 0, "visits": 0, "changes": 0, "versions": 0}
    again = command("crawld", "export", "jsonl", "--db", db, "--out", tmp_path / "o")
    assert again.code == 2
    assert "exists" in again.err


def test_a_table_of_what_was_imported(command, db, tmp_path):
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


def test_an_import_that_misses_a_part_ends_with_3(command, db, tmp_path):
    ended = command("crawld", "import", "urls", urls(tmp_path, "no url"), "--db", db)
    assert ended.code == 3
    assert "urls.txt line 1" in ended.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "static", "--out", "o", "--table", "pages"), "--table is not for static"),
        (("export", "jsonl", "--out", "o", "--table", "secrets"), "no table"),
        (("export", "warc", "--out", "o", "--since", "soon"), "no time"),
        (("export", "pdf", "--out", "o"), "pdf"),
        (("import", "warc", "none.warc"), "no file"),
        (("import", "urls", "none.txt", "--base", "http://h.example/"), "--base is not for urls"),
    ],
)
def test_refusals(command, db, words, said):
    ended = command("crawld", *words, "--db", db)
    assert ended.code == 2
    assert said in ended.err


def test_a_mirror_that_is_not_there(command, tmp_path):
    ended = command("crawld", "export", "static", "--db", tmp_path / "x.db", "--out", tmp_path)
    assert ended.code == 2
    assert "there is no database" in ended.err
