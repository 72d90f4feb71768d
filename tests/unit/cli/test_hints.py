"""The table of hint sources."""

from crawld.cli.hints import hints_table
from crawld.daemon.api.schemas.hints import HintSourceStatus
from tests.unit.cli.conftest import shown

NOW = 1_790_000_000.0


def source(**more):
    values = {
        "hint_source_id": 1,
        "sites": ["w"],
        "host": "a.test",
        "kind": "recent_changes",
        "url": "http://a.test/w/api.php",
        "cursor": "{}",
        "told_until": NOW - 2,
        "last_poll_at": NOW - 1,
        "next_poll_at": NOW + 4,
        "poll_count": 300,
        "request_count": 301,
        "hint_count": 147,
        "outstanding": 3,
        "real_count": 140,
        "false_count": 4,
        "missed_count": 2,
        "trust": 0.97,
        "missed_share": 0.02,
        "lag_s": 2.7,
        "interval_s": 5.0,
        "gain": 0.142,
        "trouble": None,
        "trouble_detail": None,
        "trouble_count": 0,
        "closed_until": None,
    }
    return HintSourceStatus(**{**values, **more})


def test_a_source_shows_its_cost_and_quality():
    text = shown(hints_table([source()], NOW))
    for part in ("recent changes", "a.test", "301", "147", "140", "97%", "2%", "+14.2 points"):
        assert part in text


def test_unknown_values_are_left_empty():
    nothing = {"last_poll_at": None, "next_poll_at": None, "lag_s": None, "gain": None}
    silent = source(**nothing, trouble="not_json", trouble_detail="a page of HTML")
    text = shown(hints_table([silent], NOW))
    assert "points" not in text
    assert "no JSON: a page of HTML" in text
