"""When digests are due: full hours and times of day, in zones with summer time."""

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.notify.timing import next_digest

ZONES = ("UTC", "Europe/Paris", "Asia/Kolkata", "Australia/Lord_Howe")


def at(text, zone="UTC", fold=0):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


@pytest.mark.parametrize(
    ("when", "zone", "now", "due"),
    [
        ("at once", "UTC", "2026-05-01T10:20:30", "2026-05-01T10:20:30"),
        ("hourly", "UTC", "2026-05-01T10:20:30", "2026-05-01T11:00"),
        ("hourly", "UTC", "2026-05-01T11:00", "2026-05-01T12:00"),
        ("hourly", "Asia/Kolkata", "2026-05-01T23:20", "2026-05-02T00:00"),
        ("daily", "UTC", "2026-05-01T06:59:59", "2026-05-01T07:00"),
        ("daily", "UTC", "2026-05-01T07:00", "2026-05-02T07:00"),
        ("daily", "UTC", "2026-12-31T08:00", "2027-01-01T07:00"),
        ("daily", "Europe/Paris", "2026-03-28T08:00", "2026-03-29T07:00"),  # 23 hours
        ("daily", "Europe/Paris", "2026-10-24T08:00", "2026-10-25T07:00"),  # 25 hours
    ],
)
def test_when_a_digest_is_due(when, zone, now, due):
    assert next_digest(when, at(now, zone), daily_at="07:00", zone=zone) == at(due, zone)


def test_a_time_that_summer_time_skips_or_repeats():
    zone = "Europe/Paris"
    skipped = next_digest("daily", at("2026-03-29T01:00", zone), daily_at="02:30", zone=zone)
    assert skipped == at("2026-03-29T03:30", zone)
    first = next_digest("daily", at("2026-10-25T01:00", zone), daily_at="02:30", zone=zone)
    assert first == at("2026-10-25T02:30", zone)
    again = next_digest("daily", at("2026-10-25T02:40", zone, fold=1), daily_at="02:30", zone=zone)
    assert again == at("2026-10-26T02:30", zone)


@pytest.mark.parametrize("now", [-1e12, 0.0, 4e9, 1e13])
@pytest.mark.parametrize("when", ["hourly", "daily"])
def test_a_clock_in_another_century_gives_a_time(now, when):
    assert next_digest(when, now, zone="Europe/Paris") >= 0.0


@given(
    now=st.floats(0, 4e9), when=st.sampled_from(("hourly", "daily")), zone=st.sampled_from(ZONES)
)
def test_digests_follow_each_other_at_most_a_day_apart(now, when, zone):
    times = [now]
    for _ in range(3):
        times.append(next_digest(when, times[-1], daily_at="02:30", zone=zone))
    longest_s = 3_600.0 if when == "hourly" else 25 * 3_600.0
    assert all(0.0 < after - before <= longest_s for before, after in pairwise(times))
    minutes = {datetime.fromtimestamp(each, UTC).second for each in times[1:]}
    assert minutes == {0}
