"""`crawlctl changes`: lines, paging, and following over a restart."""

import json

import pytest

from crawld.cli import changes
from crawld.cli.response import read_response
from crawld.cli.session import Session
from crawld.errors import UnreachableError

EVENT = {
    "event_id": 7,
    "id": "urn:crawld:5f:7",
    "kind": "changed",
    "at": 1_780_000_000.0,
    "site": "docs",
    "url": "https://example.org/a",
    "title": "A title",
    "difference": 0.124,
    "target_url": None,
}


def line(**changed):
    return changes.change_line(read_response(json.dumps({**EVENT, **changed}).encode()))


def test_a_change_is_a_line():
    assert line() == ("2026-05-28T20:26:40Z changed  12 %  docs  https://example.org/a  A title")
    assert "  <1 %  " in line(difference=0.0001)
    moved = line(kind="moved", difference=None, target_url="https://example.org/b", title=None)
    assert moved.endswith("docs  https://example.org/a -> https://example.org/b")


def test_a_line_is_safe_and_bounded_whatever_a_page_is_called():
    shown = line(title="\x1b[2J\n" + "x" * 1000, at=1e30, site="[bold]")
    assert "\x1b" not in shown
    assert "\n" not in shown
    assert len(shown) < 200
    assert shown.startswith("9999-12-31")


class Stopped(BaseException):
    """Ends a command that follows."""


class Daemon:
    """A client of events 1 to `newest`, `page` at once."""

    def __init__(self, newest, page=3):
        self.newest, self.page, self.asked, self.steps = newest, page, [], []

    def get(self, _path, *, limit, after=None, before=None, since=None, **_):
        self.asked.append((after, since))
        if self.steps and (step := self.steps.pop(0)):
            step()
        if after is None:
            newest = self.newest if before is None else before - 1
            ids = list(range(newest, 0, -1))[: min(limit, self.page)]
        else:
            ids = list(range(after + 1, self.newest + 1))[: min(limit, self.page)]
        last_id = ids[-1] if ids else after or 0
        ended = last_id in (self.newest, 0) if after is not None else last_id <= 1
        events = [{**EVENT, "event_id": each} for each in ids]
        return json.dumps({"events": events, "last_id": last_id, "ended": ended}).encode()


def shown_ids(capsys):
    return [json.loads(each)["event_id"] for each in capsys.readouterr().out.splitlines()]


def test_the_newest_are_shown_oldest_first(capsys):
    changes.changes(Session(Daemon(9), as_json=True), limit=3)
    assert shown_ids(capsys) == [7, 8, 9]
    changes.changes(Session(Daemon(9), as_json=True), limit=5)
    assert shown_ids(capsys) == [5, 6, 7, 8, 9]
    changes.changes(Session(Daemon(9), as_json=True))
    assert shown_ids(capsys) == list(range(1, 10))


def test_all_since_a_time_are_shown(capsys):
    daemon = Daemon(10)
    changes.changes(Session(daemon, as_json=True), since="1 day ago")
    assert shown_ids(capsys) == list(range(1, 11))
    assert {since for _, since in daemon.asked} == {"1 day ago"}
    changes.changes(Session(daemon, as_json=True), since="1 day ago", limit=4)
    assert shown_ids(capsys) == [1, 2, 3, 4]


def test_following_shows_each_once_over_a_restart(capsys, monkeypatch):
    monkeypatch.setattr(changes, "FOLLOW_INTERVAL_S", 0.0)
    daemon = Daemon(2)

    def grow():
        daemon.newest += 5

    def fail():
        raise UnreachableError("no daemon responds", hint="")

    def stop():
        raise Stopped

    daemon.steps = [None, None, grow, None, fail, fail, grow, None, stop]
    with pytest.raises(Stopped):
        changes.changes(Session(daemon, as_json=True), follow=True)
    out = capsys.readouterr()
    assert [json.loads(each)["event_id"] for each in out.out.splitlines()] == list(range(1, 13))
    assert out.err.count("waiting for it") == 1


def test_following_an_empty_mirror_begins_at_its_first_change(capsys, monkeypatch):
    monkeypatch.setattr(changes, "FOLLOW_INTERVAL_S", 0.0)
    daemon = Daemon(0)

    def grow():
        daemon.newest += 2

    def stop():
        raise KeyboardInterrupt

    daemon.steps = [None, None, grow, stop]
    changes.changes(Session(daemon, as_json=True), follow=True)
    assert shown_ids(capsys) == [1, 2]


def test_an_empty_list_says_why(capsys):
    changes.changes(Session(Daemon(0), as_json=False))
    assert "first copies of pages begin the list" in capsys.readouterr().out
    changes.changes(Session(Daemon(0), as_json=False), since="1 hour ago")
    assert "no such changes" in capsys.readouterr().out
    changes.changes(Session(Daemon(0), as_json=True))
    assert capsys.readouterr().out == ""
