"""The tables of `crawlctl`."""

import numpy as np
import pytest

from crawld.cli import hints, jobs, quarantine, retention, status_table, tables
from crawld.core.change.hawkes import SHARED, unchanged_probability
from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.page import Outcome, PageState
from crawld.core.why.words import change_words, has_evidence
from crawld.daemon.api.schemas import status as models
from tests.unit.cli.conftest import PAGES, host, shown

VISITS = dict.fromkeys(Outcome, 0)


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


def explained(model, at):
    known = {
        "text": change_words(model),
        "has_evidence": has_evidence(model),
        "unchanged_probability": unchanged_probability(model, SHARED, at),
    }
    return models.ModelStatus.model_validate(model.explain(at) | known)


def seen(changes, *, visits=60, interval_s=86_400.0):
    """Return the lines about a page whose n-th visit found a change if n is in `changes`."""
    model = PageModel()
    for number in range(visits):
        at = 1e9 + number * interval_s
        model.update(Observation(at, number in changes, interval_s=interval_s))
    return shown(tables.facts(tables.change_facts(explained(model, at))))


@pytest.mark.parametrize(
    ("gaps_days", "words"),
    [([0.02] * 8 + [5.0], "in bursts,"), ([1.0], "at regular intervals,")],
)
def test_a_page_with_a_history_has_a_pattern(gaps_days, words):
    changed_at = 1e9 + 86_400.0 * np.cumsum(gaps_days * (90 // len(gaps_days)))
    model = PageModel()
    model.observe_changes(changed_at.tolist(), float(changed_at[-1]))
    assert words in shown(tables.facts(tables.change_facts(explained(model, 1.1e9))))


def test_a_page_with_evidence_has_a_rate_and_a_class():
    lines = seen(range(3, 60, 3))
    assert "changes about every 3 days, from 60 visits" in lines
    assert "2.4 changes/week" not in lines
    assert "every 3 d 0 h (100%)" in lines


@pytest.mark.parametrize(
    ("changes", "visits", "interval_s", "expected"),
    [
        # A page that never changed in 53 visits once showed "35.9/day".
        ((), 53, 600.0, "never seen to change, in 53 visits over 9 hours"),
        ((), 1, 60.0, "too early to tell: visited once"),
        ((20,), 53, 600.0, "too early to tell: 1 change in 53 visits over 9 hours"),
    ],
)
def test_a_page_without_evidence_has_neither(changes, visits, interval_s, expected):
    lines = seen(changes, visits=visits, interval_s=interval_s)
    assert lines.split(maxsplit=1) == ["changes", f"{expected}\n"]


def test_the_status_names_hosts_with_vanishing_pages():
    assert "vanishing" not in shown(status_table.status_table(status()))
    text = shown(status_table.status_table(status(vanishing={"a.test": 1_800.0, "b.test": 0.0})))
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.startswith("vanishing")]
    assert [line[1].partition(":")[0] for line in lines] == ["a.test", "b.test"]
    assert "for 2 h 00 min; all are kept" in lines[0][1]


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


def test_new_pages_are_counted_apart_from_changed_ones():
    visits = VISITS | {Outcome.CHANGED: 12, Outcome.NOT_MODIFIED: 3}
    text = shown(status_table.status_table(status(visits=visits, new_pages=10)))
    assert "15 since the start: 10 new, 2 changed, 3 not modified" in text


def test_the_status_shows_no_names_of_the_program():
    pages = PAGES | {PageState.SUSPENDED: 2}
    made = status(pauses=["drain", "disk_room"], refused={"site_cap": 1200}, pages=pages)
    text = shown(status_table.status_table(made))
    assert "paused (disk nearly full, after crawlctl drain)" in text
    assert "1,200 over max_pages" in text
    assert "2 suspended on a replica" in text
    assert "site_cap" not in text


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


def test_visits():
    assert str(tables.log_line(VISIT, "T")) == (
        "T failed         -       0 B  http://h/a (timeout: no header\N{REPLACEMENT CHARACTER}[2J)"
    )
    new = VISIT.model_copy(update={"outcome": Outcome.CHANGED, "first_copy": True})
    assert str(tables.log_line(new, "T")).startswith("T new ")
    assert " new " in shown(tables.log_table([new], 160.0))
    text = shown(tables.log_table([VISIT], 160.0))
    assert "1 min 00 s ago" in text
    assert "\x1b" not in text


def test_added():
    refused = models.RefusedUrls(reason="host_cap", refused=2, example="http://x/", last_at=1.0)
    text = shown(tables.added_table(models.Added(site="s", admitted=0, refused=[refused])))
    assert "0 URLs admitted to site s" in text
    assert "over max_pages_per_host" in text


def test_added_to_a_new_site_whose_host_cannot_be_fetched():
    added = models.Added(
        site="s", new_site=True, admitted=1, refused=[], warnings=["no.test: there is no such\x1b"]
    )
    text = shown(tables.added_table(added))
    assert text == (
        "1 URL admitted to the new site s\n"
        "warning: no.test: there is no such\N{REPLACEMENT CHARACTER}\n"
    )


def test_empty_lists_tell_what_fills_them():
    lists = {
        tables.sites_table([]): "crawlctl add URL",
        tables.hosts_table([]): "crawlctl sites",
        tables.pages_table([], 1.0): "crawlctl sites",
        hints.hints_table([], 1.0): "event_stream",
        jobs.wikis_table([]): "api = true",
        jobs.audits_table([]): "audit_share",
        retention.pins_table([], 1.0): "crawlctl pin URL",
        quarantine.quarantine_table([], 1.0): "none has frozen",
    }
    for text, expected in lists.items():
        assert text.startswith("no ")
        assert expected in text


def audited(**more):
    given = {"since": 0.0, "audits": 20, "unknown": 1, "freshness": 0.9, "low": 0.7, "high": 0.97}
    return models.AuditedFreshness(**{**given, "modelled": 0.95, **more})


def fresh_site(**more):
    stale = models.StaleCopies(reported=12.2, fan_out=30.0, unreported=0.4, unnoticed=1.0)
    given = {"at": 8_999.0, "copies": 500, "sampled": 500, "freshness": 0.914, "modelled": 0.92}
    return models.FreshnessStatus(site="docs", low=0.9, high=0.93, stale=stale, **{**given, **more})


def test_the_status_says_how_fresh_the_copies_are_now_and_why():
    found = fresh_site(last_day=audited(), last_week=audited(audits=0, freshness=None))
    text = shown(status_table.status_table(status(freshness=[found])))
    assert "now 91.4% (90.0% to 93.0%), model 92.0%, of 500 copies" in text
    assert "ago" not in text.partition("fresh docs")[2]
    assert "12 reported and not copied yet; 30 include an edited template" in text
    assert "asked" not in text  # less than half a copy
    assert "1 changed, and no source reports it" in text
    assert "90.0% (70.0% to 97.0%; 20 audits)" in text
    assert "last week" not in text


def test_an_old_figure_says_its_age_and_an_unknown_one_that():
    old = status_table.freshness_text(fresh_site(at=8_880.0, shown=0.5), 9_000.0)
    assert old.endswith("of 500 copies, 2 min 00 s ago")
    assert "shown copies 50.0%" in old
    unknown = models.FreshnessStatus(site="docs")
    assert status_table.freshness_text(unknown, 9_000.0) == "unknown so far"
    host = models.FreshnessStatus(site="docs", host="a.test", last_week=audited())
    text = shown(status_table.status_table(status(freshness=[unknown, host])))
    assert "last week 90.0%" in text.partition("a.test")[2]
    only = audited(audits=0, freshness=None, unknown=2)
    assert status_table.audited_text(only) == "unknown (2 inconclusive visits)"


def test_the_status_shows_rules_in_trouble():
    text = shown(status_table.status_table(status(notify_troubles={"team": "status 500"})))
    assert "notify team" in text
    assert "status 500" in text
    assert "notify" not in shown(status_table.status_table(status()))
