from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_changes import (
    MAX_SEEN,
    ChangesCursor,
    PendingTemplates,
    ProbeProgress,
    TitleChange,
    changes_query,
    read_changes,
    read_oldest,
    read_template_users,
    template_users_query,
)
from crawld.sources.mediawiki_history import LogEntry

NOW = 1_700_000_000.0
START = ChangesCursor(at=NOW - 60)


def written(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def edit(number, at=NOW, title="A", page=7, **more):
    values = {"type": "edit", "rcid": number, "pageid": page, "ns": 0, "title": title}
    return {**values, "timestamp": written(at), **more}


def entry(number, kind, at=NOW, title="A", params=None, **more):
    values = {"logid": number, "type": kind, "action": kind, "ns": 0, "title": title, "pageid": 0}
    return {**values, "timestamp": written(at), "params": params or {}, **more}


def answer(*edits, logs=(), served_at=NOW, cursor=None):
    query = {"recentchanges": list(edits), "logevents": list(logs)}
    return ApiResponse(query, cursor, (), served_at)


def titles(read):
    return [each.title for each in read.changed]


def test_the_first_response_starts_at_the_wikis_time():
    asked = changes_query(ChangesCursor(), NOW)
    assert asked["rcstart"] == asked["lestart"] == written(NOW - 30)
    read = read_changes(answer(), ChangesCursor(), NOW + 3)
    assert (read.cursor.at, read.gap) == (NOW, False)


def test_rows_seen_before_are_skipped():
    first = read_changes(answer(edit(1), edit(2, title="B")), START, NOW)
    assert titles(first) == ["A", "B"]
    again = read_changes(answer(edit(1), edit(2), edit(3, title="C")), first.cursor, NOW)
    assert titles(again) == ["C"]
    assert read_changes(answer(edit(2), edit(3)), again.cursor, NOW).changed == []


def test_a_row_committed_late_is_returned():
    first = read_changes(answer(edit(5, NOW)), START, NOW)
    late = read_changes(answer(edit(4, NOW - 3, title="Late"), edit(5)), first.cursor, NOW + 5)
    assert titles(late) == ["Late"]


def test_repeated_numbers_in_one_response_count_once():
    read = read_changes(answer(edit(1), edit(1), edit(1)), START, NOW)
    assert titles(read) == ["A"]


def test_the_log_has_what_deleted_rows_lost():
    moved = {"target_title": "New", "target_ns": 0}
    logs = [entry(1, "delete"), entry(2, "move", params=moved), entry(3, "protect", title="No")]
    read = read_changes(answer(logs=logs), START, NOW)
    assert read.changed == [
        TitleChange("A", 0, NOW, None, LogEntry(1, NOW, "deletion"), "log"),
        TitleChange("A", 0, NOW, None, LogEntry(2, NOW, "move", "New"), "log"),
        TitleChange("New", 0, NOW, kind="log"),
    ]


def test_a_log_entry_among_recent_changes_counts_once():
    row = edit(9, type="log", logid=4, logtype="delete", logaction="delete", logparams={})
    read = read_changes(answer(row, logs=[entry(4, "delete")]), START, NOW)
    assert titles(read) == ["A"]
    assert read.changed[0].entry == LogEntry(4, NOW, "deletion")


def move(number, title, target, **more):
    params = {"target_title": target, "target_ns": 0}
    return entry(number, "move", title=title, params=params, **more)


def recent(number, logged):
    """Return a log entry as a row of the recent changes."""
    fields = {f"log{key}": logged[key] for key in ("type", "action", "params")}
    return {**logged, **fields, "type": "log", "rcid": number}


def test_moves_of_one_second_are_in_the_order_of_the_log():
    """A swap of two pages by a third title: the recent changes number them as they commit."""
    away, there, back = move(82, "A", "Swap"), move(83, "B", "A"), move(84, "Swap", "B")
    rows = [recent(1, there), recent(2, away), recent(3, back)]
    expected = ["A", "Swap", "B", "A", "Swap", "B"]
    assert titles(read_changes(answer(*rows), START, NOW)) == expected
    assert titles(read_changes(answer(rows[0], logs=[away, there, back]), START, NOW)) == expected


def test_changes_are_in_the_order_of_time_and_edits_among_log_entries_of_a_second():
    logged, earlier = entry(5, "delete"), entry(4, "delete", at=NOW - 2, title="Before")
    rows = [edit(1, title="B"), recent(2, logged), edit(3, type="new")]
    read = read_changes(answer(*rows, logs=[earlier, logged]), START, NOW)
    assert titles(read) == ["Before", "B", "A", "A"]
    assert [each.kind for each in read.changed[2:]] == ["log", "new"]


def test_a_categorization_is_a_change_of_the_category():
    row = edit(9, type="categorize", title="Category:C", ns=14, page=33)
    [told] = read_changes(answer(row), START, NOW).changed
    assert told == TitleChange("Category:C", 14, NOW, None, kind="category", member=33)


def test_a_long_response_is_continued():
    part = {"rccontinue": "20231114|7", "continue": "-||"}
    read = read_changes(answer(edit(1), cursor=part), START, NOW)
    assert read.cursor.continuation == part
    assert changes_query(read.cursor, NOW)["rccontinue"] == "20231114|7"


def test_future_rows_do_not_move_the_cursor_ahead():
    read = read_changes(answer(edit(1, NOW + 86_400)), START, NOW)
    assert titles(read) == ["A"]
    assert read.cursor.at == NOW


def test_a_clock_set_back_is_a_gap():
    earlier = answer(edit(1, NOW - 7_200), served_at=NOW - 7_200)
    read = read_changes(earlier, ChangesCursor(at=NOW), NOW)
    assert read.gap
    assert read.cursor.at == NOW - 7_200


def test_missing_rows_are_settled_by_the_oldest_row():
    seen = read_changes(answer(edit(1)), START, NOW).cursor
    read = read_changes(answer(edit(8, NOW + 900)), seen, NOW + 900)
    assert read.cursor.unverified_at
    assert not read.gap
    kept = ApiResponse({"recentchanges": [edit(0, NOW - 5_000)]})
    settled = read_oldest(kept, read.cursor)
    assert not settled.gap
    assert not settled.cursor.unverified_at
    assert read_oldest(ApiResponse({"recentchanges": [edit(0, NOW + 1)]}), read.cursor).gap
    assert read_oldest(ApiResponse({"recentchanges": []}), read.cursor).gap
    # A deleted row is missed only once.
    after = read_changes(answer(edit(8, NOW + 900)), settled.cursor, NOW + 901)
    assert not after.cursor.unverified_at


def test_unusable_rows_are_counted():
    rows = [{"rcid": "x"}, edit(2, timestamp="yesterday"), {}, edit(3)]
    read = read_changes(answer(*rows, logs=[{"logid": None}]), START, NOW)
    assert titles(read) == ["A"]
    assert read.unusable == 4


@pytest.mark.parametrize("kind", [[], {}, None, 7])
def test_other_log_entries_are_ignored(kind):
    logged = edit(2, type="log", logtype=kind)
    read = read_changes(answer(logged, logs=[entry(9, kind)]), START, NOW)
    assert not read.changed


def test_the_row_numbers_kept_are_limited():
    rows = [edit(number) for number in range(MAX_SEEN + 500)]
    read = read_changes(answer(*rows), START, NOW)
    assert len(read.cursor.edits) == MAX_SEEN


def test_users_of_a_template():
    assert template_users_query("Template:T", {"eicontinue": "10|5"})["eicontinue"] == "10|5"
    assert read_template_users(ApiResponse({"embeddedin": [{"title": "A"}, {"ns": 0}]})) == ["A"]


cursors = st.builds(
    ChangesCursor,
    st.floats(0, 4e9),
    st.frozensets(st.integers(0, 2**53)),
    st.frozensets(st.integers(0, 2**53)),
    st.none() | st.dictionaries(st.text(), st.text() | st.integers()),
    st.floats(0, 4e9),
)


@given(cursors)
def test_cursors_survive_storage(cursor):
    assert ChangesCursor.from_json(cursor.to_json()) == cursor


@pytest.mark.parametrize("text", [None, "", "{", "[]", "7", '{"at": "x"}', '{"at": 1}'])
def test_a_broken_cursor_starts_from_the_beginning(text):
    assert ChangesCursor.from_json(text) == ChangesCursor()
    assert PendingTemplates.from_json(text) == PendingTemplates()
    assert ProbeProgress.from_json(text).after == 0


def test_pending_work_survives_storage():
    wanted = PendingTemplates((("Template:T", NOW),), ((3, NOW, NOW + 1),), {"eicontinue": "1"}, 2)
    assert PendingTemplates.from_json(wanted.to_json()) == wanted
    place = replace(ProbeProgress(), after=7, began_at=NOW, urgent=True)
    assert ProbeProgress.from_json(place.to_json()) == place
