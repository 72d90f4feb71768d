"""The tables of `crawlctl` and the live view of a mirror."""

from collections import Counter
from dataclasses import replace

import pytest

from crawld.cli import tables
from crawld.cli.output import console
from crawld.cli.progress_view import (
    UNREACHABLE,
    CrawlProgress,
    RateMeter,
    mirror_view,
    progress_fields,
)
from crawld.cli.summary import MirrorSummary
from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.page import Failure, Outcome, PageState
from crawld.daemon.api.schemas import status as models
from crawld.store.frontier.page import PageRecord

PAGES = dict.fromkeys(PageState, 0)
VISITS = dict.fromkeys(Outcome, 0)


def shown(renderable, capsys):
    console().print(renderable)
    return capsys.readouterr().out


def host(name="docs.test", **changed):
    fields = {
        "host": name,
        "address": "127.0.0.1",
        "paused": False,
        "pages": PAGES,
        "pages_in_all": 0,
        "visit_count": 0,
        "change_count": 0,
        "failure_count": 0,
        "wire_bytes": 0,
        "last_fetch_at": None,
        "delay_s": 15.0,
        "backoff_level": 0,
        "next_fetch_in_s": 3.0,
    }
    return models.HostStatus(**(fields | changed))


def status(**more):
    slots = dict.fromkeys(models.Slots.model_fields, 0)
    fields = {
        "version": "1",
        "pid": 7,
        "db": "m.db",
        "phase": "running",
        "pauses": [],
        "stalled": None,
        "started_at": 1_000.0,
        "now": 9_000.0,
        "pages": PAGES,
        "pages_in_all": 0,
        "visits": VISITS,
        "unrecorded": 0,
        "wire_bytes": 0,
        "refused": {},
        "slots": slots,
        "memory_bytes": 0,
    }
    return models.Status(**(fields | more))


def test_a_page_with_few_visits_has_no_change_class(capsys):
    model, day_s = PageModel(), 86_400.0
    for day in range(60):
        changed = day % 3 == 0 and day > 0
        model.update(Observation(1e9 + day * day_s, changed, interval_s=day_s))
        if day == 1:
            explained = models.ModelStatus.model_validate(model.explain(1e9 + day * day_s))
            lines = shown(tables.facts(tables.change_facts(explained)), capsys)
            assert "uncertain: every 3 d 0 h to every 365 d (90%)" in lines
    explained = models.ModelStatus.model_validate(model.explain(1e9 + 60 * day_s))
    assert "every 3 d 0 h (100%)" in shown(tables.facts(tables.change_facts(explained)), capsys)


def test_the_status_names_hosts_with_vanishing_pages(capsys):
    assert "vanishing" not in shown(tables.status_table(status()), capsys)
    text = shown(tables.status_table(status(vanishing={"a.test": 1_800.0, "b.test": 0.0})), capsys)
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.startswith("vanishing")]
    assert [line[1].partition(":")[0] for line in lines] == ["a.test", "b.test"]
    assert "for 2 h 00 min; all are kept" in lines[0][1]


PROGRESS = CrawlProgress(
    pages=PAGES | {PageState.DISCOVERED: 3, PageState.VISITED: 9},
    visits=VISITS | {Outcome.CHANGED: 9, Outcome.FAILED: 2, Outcome.BLOCKED: 1},
    wire_bytes=2048,
    on_turn=1,
    phase="running",
    pauses=frozenset(),
    hosts=[host(pages=PAGES | {PageState.DISCOVERED: 3}), host("b.test")],
    unreachable=False,
)


def test_live_view(capsys):
    rates = RateMeter()
    rates.add(100.0, 0, 0)
    rates.add(130.0, 12, 3072)
    text = shown(mirror_view(PROGRESS, rates, "docs into m.db"), capsys)
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
def test_the_view_gives_the_reason_of_a_pause(changed, text, capsys):
    progress = replace(PROGRESS, **changed)
    assert text in shown(mirror_view(progress, RateMeter(), "t"), capsys)
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


BARE = {"url": "http://h/", "state": PageState.VISITED, "depth": 1, "seed": False}
PAGE = PageRecord(**(dict.fromkeys(PageRecord._fields) | BARE))


@pytest.mark.parametrize(
    ("changed", "complete", "failed"),
    [
        ({"last_outcome": Outcome.CHANGED}, True, {}),
        ({"last_outcome": Outcome.GONE}, True, {}),
        ({"last_outcome": Outcome.FAILED, "last_failure": Failure.TIMEOUT}, False, {"timeout": 1}),
        (
            {"last_outcome": Outcome.BLOCKED, "last_failure": Failure.RATE_LIMITED},
            False,
            {"rate_limited": 1},
        ),
        ({"last_outcome": Outcome.FAILED, "last_failure": Failure.WRONG_TYPE}, True, {}),
        ({"last_outcome": Outcome.BLOCKED, "last_failure": Failure.ROBOTS}, True, {}),
        ({"state": PageState.EXCLUDED, "last_failure": Failure.ROBOTS}, True, {}),
        ({"state": PageState.DISCOVERED}, False, {}),
        ({"state": PageState.DISCOVERED, "depth": 3}, True, {}),
        ({"state": PageState.DISCOVERED, "depth": 3, "seed": True}, False, {}),
    ],
)
def test_when_a_mirror_is_complete(changed, complete, failed):
    summary = MirrorSummary()
    summary.add([PAGE, PAGE._replace(**changed)], max_depth=2)
    assert (summary.complete, summary.failed) == (complete, Counter(failed))


def test_a_mirror_of_nothing_is_not_complete():
    assert not MirrorSummary().complete


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"paused": True}, "paused"),
        ({"next_fetch_in_s": None}, "nothing to fetch"),
        ({"next_fetch_in_s": 0.0}, "now"),
        ({"next_fetch_in_s": 90.0}, "in 1 min 30 s"),
    ],
)
def test_next_slot(changed, text):
    assert tables.next_slot_text(host(**changed)) == text


def test_counts():
    assert tables.counts_text(PAGES) == "none"
    counts = VISITS | {Outcome.NOT_MODIFIED: 1200, Outcome.FAILED: 1}
    assert tables.counts_text(counts) == "1,200 not modified, 1 failed"


VISIT = models.VisitStatus(
    visit_id=7,
    url="http://h/a",
    host="h",
    visited_at=100.0,
    outcome=Outcome.FAILED,
    failure="timeout",
    detail="no header\x1b[2J",
    status=None,
    duration_s=20.0,
    wire_bytes=0,
    version_id=None,
)


def test_visits(capsys):
    assert str(tables.log_line(VISIT, "T")) == (
        "T failed         -       0 B  http://h/a (timeout no header\N{REPLACEMENT CHARACTER}[2J)"
    )
    text = shown(tables.log_table([VISIT], 160.0), capsys)
    assert "1 min 00 s ago" in text
    assert "\x1b" not in text


def test_added(capsys):
    refused = models.RefusedUrls(reason="out_of_scope", refused=2, example="http://x/", last_at=1.0)
    text = shown(tables.added_table(models.Added(site="s", admitted=0, refused=[refused])), capsys)
    assert "0 URLs admitted to s" in text
    assert "out_of_scope" in text
