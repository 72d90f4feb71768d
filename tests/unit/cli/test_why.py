"""`crawld why` on a file, and the text of an answer."""

import json

import pytest


def test_a_url_that_nobody_knows(command, db):
    ended = command("crawld", "why", "https://a.org/x", "--db", db)
    assert ended.code == 0
    assert "It is not fetched. No site covers the host a.org" in ended.out
    assert "There is no site." in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80
    found = json.loads(command("crawld", "why", "https://a.org/x", "--db", db, "--json").out)
    assert [each["cause"] for each in found["causes"]][:1] == ["no_site"]
    assert (found["live"], found["known"], found["page"]) == (False, False, None)


@pytest.mark.parametrize(
    ("url", "fix"),
    [
        ("docs.example.org/x", "did you mean https://docs.example.org/x?"),
        ("mailto:a@b.org", "a URL crawld can visit looks like https://example.org/page"),
        ("https://u:secret@a.org/", "remove them"),
        ("", "a URL crawld can visit looks like https://example.org/page"),
    ],
)
def test_what_is_no_url_names_the_fix(command, db, url, fix):
    ended = command("crawld", "why", url, "--db", db)
    assert ended.code == 2
    assert fix in ended.err
    assert "secret" not in ended.err


def test_a_missing_database_or_config_is_an_error(command, db, tmp_path):
    ended = command("crawld", "why", "https://a.org/", "--db", tmp_path / "none.db")
    assert ended.code == 2
    assert "there is no database" in ended.err
    missing = tmp_path / "none.toml"
    ended = command("crawld", "why", "https://a.org/", "--db", db, "-c", missing)
    assert ended.code == 2
    assert str(missing) in ended.err


def test_hostile_text_of_a_server_is_printable(command, db):
    ended = command("crawld", "why", "https://a.org/\x1b[2J\u202e", "--db", db)
    assert ended.code == 0
    assert "\x1b" not in ended.out
