"""What recent changes and the log say about deleted, moved and restored titles."""

from crawld.core.url import url_hash
from crawld.daemon.hints.wiki_removals import removal_reports, shows_another_page
from crawld.daemon.hints.wiki_source import ClockSkew
from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_changes import ChangesCursor, read_changes
from crawld.sources.mediawiki_title import Namespace, TitleRules

NOW = 1_790_000_000.0
ORIGIN = "https://wiki.test"
TITLES = TitleRules(
    article_path="/wiki/$1", script="/w/index.php", namespaces={0: Namespace(0, "")}, names={}
)


def at(seconds):
    return f"2026-09-21T13:{seconds // 60:02}:{seconds % 60:02}Z"


def log_row(number, title, seconds, kind, action, **details):
    row = {"logid": number, "title": title, "ns": 0, "pageid": 0, "timestamp": at(seconds)}
    return {**row, "type": kind, "action": action, "params": details}


def edit_row(number, title, seconds):
    row = {"rcid": number, "title": title, "ns": 0, "pageid": number, "timestamp": at(seconds)}
    return {**row, "type": "edit"}


def changed_titles(edits=(), logs=()):
    response = ApiResponse({"recentchanges": list(edits), "logevents": list(logs)}, None, (), NOW)
    return read_changes(response, ChangesCursor(), NOW).changed


def reported(edits=(), logs=()):
    """Return (path, kind, target) of the reports."""
    reports = removal_reports(changed_titles(edits, logs), TITLES, ORIGIN, ClockSkew(NOW, NOW))
    names = {url_hash(f"{ORIGIN}/wiki/{name}"): name for name in "ABC"}
    return [(names[each.url_hash], each.kind, each.target_url) for each in reports]


def test_deletions_and_restorations_in_the_order_of_time():
    logs = [log_row(2, "A", 20, "delete", "restore"), log_row(1, "A", 10, "delete", "delete")]
    assert reported([edit_row(9, "B", 15)], logs) == [
        ("A", "deletion", None),
        ("B", None, None),
        ("A", None, None),
    ]


def test_a_move_removes_one_title_and_gives_a_page_to_another():
    logs = [log_row(1, "A", 10, "move", "move", target_title="B", target_ns=0)]
    assert reported(logs=logs) == [("A", "move", f"{ORIGIN}/wiki/B"), ("B", None, None)]


def test_titles_that_are_swapped_within_a_second_both_have_pages():
    steps = [("A", "C"), ("B", "A"), ("C", "B")]
    logs = [
        log_row(number, old, 10, "move", "move", target_title=new, target_ns=0)
        for number, (old, new) in enumerate(steps, 1)
    ]
    last = {name: kind for name, kind, _ in reported(logs=logs)}
    assert last == {"A": None, "B": None, "C": "move"}


def test_other_entries_of_the_log_remove_nothing():
    logs = [log_row(1, "A", 10, "delete", "revision"), log_row(2, "B", 11, "upload", "overwrite")]
    assert {kind for _, kind, _ in reported(logs=logs)} == {None}


def test_titles_that_pages_were_moved_to_or_restored_at_show_another_page():
    logs = [
        log_row(1, "A", 10, "move", "move", target_title="B", target_ns=0),
        log_row(2, "C", 11, "delete", "restore"),
        log_row(3, "D", 12, "delete", "delete"),
        log_row(4, "E", 13, "import", "upload"),
    ]
    found = changed_titles([edit_row(9, "F", 15)], logs)
    assert {each.title for each in found if shows_another_page(each)} == {"B", "C"}
