"""The view of `crawlctl top`."""

import json

from rich.cells import cell_len

from crawld.cli.console import drawn_lines
from crawld.cli.response import read_response
from crawld.cli.top import Glance, attention, top_view
from crawld.core.page import Outcome
from crawld.daemon.api.schemas import status as models
from tests.unit.cli.conftest import PAGES, host
from tests.unit.cli.test_tables import VISITS, fresh_site, status


def event(**more):
    return {"at": 8_940.0, "kind": "changed", "title": "Łódź", "url": "http://a/", **more}


def glance(told=None, *, hosts=(), changes=(), sites=(), jobs=(), wikis=()):
    def records(value):
        return read_response(json.dumps(value).encode())

    dumped = [(each.model_dump(mode="json"), visits) for each, visits in hosts]
    return Glance(
        status=records((told or status()).model_dump(mode="json")),
        sites=records([each.model_dump(mode="json") for each in sites]),
        jobs=records(list(jobs)),
        wikis=records(list(wikis)),
        hosts=[(records(each), visits) for each, visits in dumped],
        changes=records(list(changes)),
    )


def lines(found, before=None, columns=80):
    drawn = drawn_lines(top_view(found, before), columns)
    assert all(cell_len(line.rstrip()) <= columns for line in drawn)
    return "\n".join(line.rstrip() for line in drawn)


def site(**more):
    fields = {
        **{"name": "docs", "source": "config", "paused": False, "added_at": 1.0, "hosts": []},
        **{"host_delay_s": 1.0, "pages": PAGES, "pages_in_all": 0, "pages_shared": 0},
        **{"requisites": 0, "received_bytes_this_month": None, "monthly_bytes": None},
    }
    return models.SiteStatus(**(fields | more))


def test_a_quiet_daemon():
    text = lines(glance(status(freshness=[fresh_site()])))
    assert text.startswith("crawld 1, running, up 2 h 13 min, pid 7: m.db\n")
    assert "fresh   " in text
    assert "Needs attention: nothing" in text
    assert "Busiest hosts: none was visited in the last 1 min 00 s" in text
    assert "Latest changes: none so far" in text


def test_rates_are_those_since_the_look_before():
    before = glance(status(now=9_000.0, visits=VISITS | {Outcome.UNCHANGED: 100}))
    told = status(now=9_010.0, visits=VISITS | {Outcome.UNCHANGED: 300}, wire_bytes=20_480)
    assert "now     20 visits/s, 2.0 KiB/s" in lines(glance(told), before)
    restarted = status(started_at=9_000.0, now=9_010.0, visits=VISITS | {Outcome.CHANGED: 50})
    assert "now     5.0 visits/s" in lines(glance(restarted), before)


def test_hosts_and_changes_fit_whatever_they_are_called():
    long = "x" * 200 + ".test"
    found = glance(
        hosts=[(host(long, failure_count=3), 150), (host("あ" * 60), 50)],
        changes=[event(title="t" * 300), event(title=None, url="http://h/\x1b[2J", kind="gone")],
    )
    for columns in (80, 40, 200):
        text = lines(found, columns=columns)
        assert "\x1b[2J" not in text
        assert "gone" in text
    assert "\n  1 min 00 s ago  changed  tttt" in lines(found)
    assert "150" in lines(found)


def test_what_needs_attention_is_told_the_worst_first():
    told = status(
        pauses=["disk_room"],
        stalled="disk full",
        quarantined=2,
        vanishing={"v.test": 1.0},
        notify_troubles={"team": "status 503"},
        loop_stall_recent_ms=700.0,
        loop_stall_by="a page",
    )
    found = glance(
        told,
        sites=[
            site(paused=True),
            site(name="big", monthly_bytes=1024, received_bytes_this_month=2048),
        ],
        jobs=[{"name": "audit", "result": "failed", "detail": "KeyError: 1"}],
        wikis=[{"api_url": "http://w/api.php", "trouble": "read_only"}],
        hosts=[(host("slow.test", backoff_level=3), 9)],
    )
    assert [each.plain for each in attention(found)] == [
        "the database cannot be written: disk full",
        "no fetch starts: disk nearly full",
        "2 pages in quarantine; see: crawlctl quarantine",
        "v.test: too many pages vanish at once; kept",
        "messages of rule team wait: status 503; see: crawlctl notify",
        "site docs is paused; to resume: crawlctl resume --site docs",
        "site big has used its 1.0 KiB of this month",
        "http://w/api.php: wiki is read-only; see: crawlctl wikis",
        "job audit: KeyError: 1",
        "slow.test: back-off level 3; see: crawlctl host slow.test",
        "the daemon stood still for 700 ms in the last minutes (a page)",
    ]
    assert "and 5 more" in lines(found)
    assert len(lines(found).splitlines()) <= 23


def test_a_pause_of_the_operator_names_what_ends_it():
    [line] = attention(glance(status(pauses=["operator"])))
    assert line.plain == "no fetch starts: by crawlctl pause; to resume: crawlctl resume"
