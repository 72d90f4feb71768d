"""`crawld lab dust`: a row for each site and seed, with progress."""

import json

ARGUMENTS = ("crawld", "lab", "dust", "--site", "languages,calendar", "--pages", "50")


def test_json_has_a_row_for_each_site_and_seed(command):
    ended = command(*ARGUMENTS, "--seeds", "2", "--json")
    assert ended.code == 0, ended.err
    rows = json.loads(ended.out)
    assert [(row["site"], row["seed"]) for row in rows] == [
        *(("languages", 0), ("languages", 1)),
        *(("calendar", 0), ("calendar", 1)),
    ]
    assert "languages 1: " in ended.err


def test_the_table_has_a_line_for_each_site(command):
    ended = command(*ARGUMENTS, "--seeds", "1", "--first", "3")
    table = ended.out.splitlines()
    assert table[0].startswith("| site | seeds |")
    assert [line.split(" | ")[0] for line in table[2:]] == ["| languages", "| calendar"]
    assert "calendar 3: " in ended.err


def test_an_unknown_site_is_refused(command):
    ended = command("crawld", "lab", "dust", "--site", "moon")
    assert ended.code != 0
    assert "causes" in ended.err
