"""Dates in documents, and which copies they make stale."""

import pytest

from crawld.sources.listed_page import TimeSpan, change_bounds, is_open, read_date

DAY = TimeSpan(1_795_219_200.0, 1_795_305_600.0)  # 2026-11-21
NOON = 1_795_262_400.0


@pytest.mark.parametrize(
    ("text", "first", "length_s"),
    [
        ("2026", 1_767_225_600.0, 365 * 86_400.0),
        ("2024", 1_704_067_200.0, 366 * 86_400.0),
        ("2026-11", 1_793_491_200.0, 30 * 86_400.0),
        ("2026-11-21", DAY.first, 86_400.0),
        (" 2026-11-21\n", DAY.first, 86_400.0),
        ("2026-11-21T12:00Z", NOON, 60.0),
        ("2026-11-21T13:00+01:00", NOON, 60.0),
        ("2026-11-21T12:00:00Z", NOON, 1.0),
        ("2026-11-21T12:00:00", NOON, 1.0),
        ("2026-11-21 12:00:00", NOON, 1.0),
        ("2026-11-21T12:00:00.25Z", NOON + 0.25, 1.0),
        ("2026-11-21T17:30:00+0530", NOON, 1.0),
        ("2026-11-21T10:00:00-02", NOON, 1.0),
        ("2026-11-20T24:00:00Z", DAY.first, 1.0),
        ("2026-11-21T11:59:60Z", NOON - 1.0, 1.0),
        ("Sat, 21 Nov 2026 12:00:00 GMT", NOON, 1.0),
        ("Sat, 21 Nov 2026 13:00:00 +0100", NOON, 1.0),
    ],
)
def test_dates(text, first, length_s):
    assert read_date(text) == TimeSpan(first, first + length_s)


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "20", "yesterday", "0000-00-00", "2026-13-01", "2026-02-30"),
        *("2026-11-21T25:00Z", "2026-11-21T12:99Z", "2026-11-21T12:00:00+99:99", "21/11/2026"),
        *("9999999999999999", "x" * 100_000, "2026-11-21T" + "0" * 60, "０００１-01-01"),
    ],
)
def test_other_texts_are_not_dates(text):
    assert read_date(text) is None


@pytest.mark.parametrize(
    ("visited", "now", "stale"),
    [
        (DAY.first - 1.0, NOON, True),
        (DAY.first + 1.0, NOON, False),  # the day is not over: unknown
        (DAY.first + 1.0, DAY.end - 1.0, False),
        (DAY.first + 1.0, DAY.end, True),  # one visit settles it
        (DAY.end, DAY.end + 1.0, False),
        (0.0, DAY.first - 1_000.0, False),  # in the future
        (0.0, DAY.first - 10.0, True),  # the server's clock is a little ahead
    ],
)
def test_copies_that_a_date_makes_stale(visited, now, stale):
    told = change_bounds(DAY, now)
    assert (told is not None and visited < told.last_at) is stale
    assert told is None or told.first_at <= told.last_at <= now


@pytest.mark.parametrize(
    ("length_s", "visited", "stale"),
    [(1.0, NOON + 0.2, True), (1.0, NOON + 0.6, False), (60.0, NOON, True), (3_600.0, NOON, False)],
)
def test_short_spans_are_not_waited_for(length_s, visited, stale):
    told = change_bounds(TimeSpan(NOON, NOON + length_s), NOON + 0.5)
    assert (visited < told.last_at) is stale


def test_a_day_is_open_until_its_end():
    assert [is_open(DAY, at) for at in (DAY.first - 1.0, NOON, DAY.end)] == [False, True, False]
    assert not is_open(TimeSpan(NOON, NOON + 60.0), NOON)
