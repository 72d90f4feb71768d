"""Revisions and changed histories in the recent changes of a wiki."""

from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_feed import read_feed

SHA1 = "0123456789abcdef" + 24 * "0"


def edit(revision_id, before_id, at="2026-09-21T14:00:00Z", **more):
    row = {"type": "edit", "pageid": 7, "revid": revision_id, "old_revid": before_id}
    return {**row, "timestamp": at, "newlen": 12, "sha1": SHA1, "tags": [], **more}


def read(edits=(), logs=(), known=()):
    query = {"recentchanges": list(edits), "logevents": list(logs)}
    return read_feed(ApiResponse(query), known)


def test_revisions_come_oldest_first_with_the_one_before():
    feed = read([edit(9, 8, "2026-09-21T14:00:05Z"), edit(8, 5, tags=["mw-undo"])])
    found = [(each.number, each.before_id, each.revision.revision_id) for each in feed.revisions]
    assert found == [(7, 5, 8), (7, 8, 9)]
    first = feed.revisions[0].revision
    assert (first.size_bytes, first.digest, first.kind) == (12, 0x0123456789ABCDEF, "revert")


def test_rows_that_are_no_revisions_or_hide_their_text_are_left_out():
    rows = [
        edit(9, 8, type="categorize"),
        edit(9, 8, type="log"),
        edit(9, 8, sha1=None),
        edit("x", 8),
        edit(9, 8, "soon"),
        {"type": "edit"},
    ]
    assert read(rows).revisions == []


def test_a_log_entry_names_the_histories_it_changes_once():
    logs = [
        {"logid": 1, "type": "move", "title": "A", "params": {"target_title": "B"}},
        {"logid": 2, "type": "merge", "title": "C", "params": {"dest_title": "D"}},
        {"logid": 3, "type": "protect", "title": "E", "params": {}},
        {"logid": 4, "type": "import", "title": "F"},
    ]
    assert read(logs=logs).changed_titles == {"A", "B", "C", "D", "F"}
    assert read(logs=logs, known={1, 4}).changed_titles == {"C", "D"}
