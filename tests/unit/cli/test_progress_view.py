"""The live view of a mirror."""

from dataclasses import replace

import pytest

from crawld.cli.mirror_view import mirror_view
from crawld.cli.progress_view import (
    UNREACHABLE,
    CrawlProgress,
    RateMeter,
    progress_fields,
)
from crawld.core.page import Outcome, PageState
from tests.unit.cli.conftest import PAGES, host, shown

VISITS = dict.fromkeys(Outcome, 0)


PROGRESS = CrawlProgress(
    pages=PAGES | {PageState.DISCOVERED: 3, PageState.VISITED: 9},
    new_pages=7,
    visits=VISITS | {Outcome.CHANGED: 9, Outcome.FAILED: 2, Outcome.BLOCKED: 1},
    wire_bytes=2048,
    on_turn=1,
    phase="running",
    pauses=frozenset(),
    hosts=[host(pages=PAGES | {PageState.DISCOVERED: 3}), host("b.test")],
    unreachable=False,
)


def test_live_view():
    rates = RateMeter()
    rates.add(100.0, 0, 0)
    rates.add(130.0, 12, 3072)
    text = shown(mirror_view(PROGRESS, rates, "docs into m.db"))
    for part in ("docs into m.db", "9 of 12 pages", "33 s left", "2.0 KiB received"):
        assert part in text
    for part in ("24 visits/min", "102 B/s", "3 errors", "Ctrl-C drains", "docs.test"):
        assert part in text


def test_the_remaining_time_is_that_of_the_slowest_host():
    # the next slot in 3 s, then two more pages 15 s apart
    assert PROGRESS.remaining_s == 33.0
    assert replace(PROGRESS, hosts=[]).remaining_s == 0.0
    waiting = PAGES | {PageState.DISCOVERED: 2}
    paused = host(pages=waiting, next_fetch_in_s=None)
    assert replace(PROGRESS, hosts=[paused]).remaining_s == 30.0


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"pauses": frozenset({"network"})}, "no network"),
        ({"pauses": frozenset({"disk_room"})}, "nearly full"),
        ({"pauses": frozenset({"disk"})}, "cannot be written"),
        ({"pauses": frozenset({"operator"})}, "crawlctl resume"),
        ({"unreachable": True}, UNREACHABLE),
        ({"phase": "draining"}, "Ctrl-C stops at once"),
        ({"phase": "stopping"}, "being committed"),
    ],
)
def test_the_view_gives_the_reason_of_a_pause(changed, text):
    progress = replace(PROGRESS, **changed)
    assert text in shown(mirror_view(progress, RateMeter(), "t"))
    fields = progress_fields(progress, RateMeter())
    if "phase" not in changed:
        assert text in fields.get("paused", "") + fields.get("trouble", "")


def test_line_of_progress():
    fields = progress_fields(PROGRESS, RateMeter())
    assert (fields["done"], fields["known"], fields["errors"]) == (9, 12, 3)
    assert "paused" not in fields


def test_rates_are_those_of_the_last_minute():
    rates = RateMeter()
    assert rates.visits_per_min == 0.0
    rates.add(0.0, 0, 0)
    assert rates.visits_per_min == 0.0
    rates.add(30.0, 30, 3000)
    assert (rates.visits_per_min, rates.bytes_per_s) == (60.0, 100.0)
    rates.add(80.0, 30, 3000)
    assert rates.visits_per_min == 0.0


def test_a_mirror_that_can_fetch_nothing_says_why():
    progress = replace(PROGRESS, stuck={"a.test": "connection refused"})
    text = shown(mirror_view(progress, RateMeter(), "x"))
    assert "nothing can be fetched: a.test: connection refused" in text
