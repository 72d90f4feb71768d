"""The tables of `crawlctl`."""

import pytest

from crawld.cli import tables
from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.page import Outcome
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


def test_a_page_with_few_visits_has_no_change_class():
    model, day_s = PageModel(), 86_400.0
    for day in range(60):
        changed = day % 3 == 0 and day > 0
        model.update(Observation(1e9 + day * day_s, changed, interval_s=day_s))
        if day == 1:
            explained = models.ModelStatus.model_validate(model.explain(1e9 + day * day_s))
            lines = shown(tables.facts(tables.change_facts(explained)))
            assert "uncertain: every 3 d 0 h to every 365 d (90%)" in lines
    explained = models.ModelStatus.model_validate(model.explain(1e9 + 60 * day_s))
    assert "every 3 d 0 h (100%)" in shown(tables.facts(tables.change_facts(explained)))


def test_the_status_names_hosts_with_vanishing_pages():
    assert "vanishing" not in shown(tables.status_table(status()))
    text = shown(tables.status_table(status(vanishing={"a.test": 1_800.0, "b.test": 0.0})))
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


def test_visits():
    assert str(tables.log_line(VISIT, "T")) == (
        "T failed         -       0 B  http://h/a (timeout no header\N{REPLACEMENT CHARACTER}[2J)"
    )
    text = shown(tables.log_table([VISIT], 160.0))
    assert "1 min 00 s ago" in text
    assert "\x1b" not in text


def test_added():
    refused = models.RefusedUrls(reason="out_of_scope", refused=2, example="http://x/", last_at=1.0)
    text = shown(tables.added_table(models.Added(site="s", admitted=0, refused=[refused])))
    assert "0 URLs admitted to s" in text
    assert "out_of_scope" in text


def audited(**more):
    given = {"since": 0.0, "audits": 20, "unknown": 1, "freshness": 0.9, "low": 0.7, "high": 0.97}
    return models.AuditedFreshness(**{**given, "modelled": 0.95, **more})


def fresh_site(**more):
    stale = models.StaleCopies(reported=12.2, fan_out=30.0, unreported=0.4, unnoticed=1.0)
    given = {"at": 8_999.0, "copies": 500, "sampled": 500, "freshness": 0.914, "modelled": 0.92}
    return models.FreshnessStatus(site="docs", low=0.9, high=0.93, stale=stale, **{**given, **more})


def test_the_status_says_how_fresh_the_copies_are_now_and_why():
    found = fresh_site(last_day=audited(), last_week=audited(audits=0, freshness=None))
    text = shown(tables.status_table(status(freshness=[found])))
    assert "now 91.4% (90.0% to 93.0%), model 92.0%, of 500 copies" in text
    assert "ago" not in text.partition("fresh docs")[2]
    assert "12 reported and not copied yet; 30 include an edited template" in text
    assert "asked" not in text  # less than half a copy
    assert "1 changed, and no source reports it" in text
    assert "90.0% (70.0% to 97.0%; 20 audits)" in text
    assert "last week" not in text


def test_an_old_figure_says_its_age_and_an_unknown_one_that():
    old = tables.freshness_text(fresh_site(at=8_880.0, shown=0.5), 9_000.0)
    assert old.endswith("of 500 copies, 2 min 00 s ago")
    assert "shown copies 50.0%" in old
    unknown = models.FreshnessStatus(site="docs")
    assert tables.freshness_text(unknown, 9_000.0) == "unknown so far"
    host = models.FreshnessStatus(site="docs", host="a.test", last_week=audited())
    text = shown(tables.status_table(status(freshness=[unknown, host])))
    assert "last week 90.0%" in text.partition("a.test")[2]
    only = audited(audits=0, freshness=None, unknown=2)
    assert tables.audited_text(only) == "unknown (2 inconclusive visits)"
