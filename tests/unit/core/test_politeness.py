import math
import tracemalloc
from datetime import UTC, datetime

import pytest

from crawld.core import validators
from crawld.core.politeness import (
    DAY_S,
    MAX_BACKOFF_DELAY_S,
    MAX_RETRY_AFTER_S,
    NO_BACKOFF,
    QUIET_PERIOD_S,
    Backoff,
    DelayRules,
    QuietHours,
    base_delay_s,
    clamp_restored,
    effective_delay_s,
    parse_http_date,
    parse_retry_after,
)
from crawld.errors import ConfigError

NOW = datetime(2026, 11, 21, tzinfo=UTC).timestamp()
HOUR = 3_600


@pytest.mark.parametrize(
    ("host_delay_s", "crawl", "rate", "level", "expected"),
    [
        (15.0, None, None, 0, 15.0),
        (15.0, 5.0, None, 0, 15.0),
        (15.0, 30.0, None, 0, 30.0),
        (15.0, 30.0, 60.0, 0, 60.0),
        (15.0, 1e9, None, 0, 300.0),
        (15.0, math.nan, 20.0, 0, 20.0),
        (15.0, math.inf, None, 0, 300.0),
        (15.0, -5.0, None, 0, 15.0),
        (600.0, 1e9, None, 0, 600.0),
        (15.0, None, None, 1, 30.0),
        (15.0, None, None, 4, 240.0),
        (15.0, 30.0, None, 2, 120.0),
        (15.0, None, None, 12, MAX_BACKOFF_DELAY_S),
        (1e5, None, None, 12, 1e5),
        (0.0, None, None, 0, 0.0),
        (0.0, None, None, 3, 8.0),
    ],
)
def test_effective_delay(host_delay_s, crawl, rate, level, expected):
    rules = DelayRules(host_delay_s=host_delay_s, max_crawl_delay_s=300.0)
    assert effective_delay_s(rules, crawl, rate, Backoff(level, NOW)) == expected


@pytest.mark.parametrize(("given", "expected"), [(None, 1.5), (4.0, 4.0), (0.0, 0.0)])
def test_address_delay(given, expected):
    assert DelayRules(15.0, given).effective_address_delay_s == expected


@pytest.mark.parametrize("bad", [-1.0, math.inf, math.nan])
@pytest.mark.parametrize("name", ["host_delay_s", "address_delay_s", "max_crawl_delay_s"])
def test_an_error_names_the_invalid_time(name, bad):
    with pytest.raises(ConfigError, match=name):
        DelayRules(**{name: bad})


def test_max_crawl_delay_0_ignores_robots_delays():
    assert base_delay_s(DelayRules(15.0, max_crawl_delay_s=0.0), 60.0, 60.0) == 15.0


def test_trouble_doubles_the_delay_and_quiet_lowers_it_step_by_step():
    backoff, delays = NO_BACKOFF, []
    for n in range(14):
        backoff = backoff.after_trouble(NOW + n, 15.0)
        delays.append(backoff.delay_s(15.0))
    assert delays[:4] == [30.0, 60.0, 120.0, 240.0]
    assert delays[-1] == MAX_BACKOFF_DELAY_S
    assert backoff.level == 8  # 15 s * 2^8 is the first past an hour: no level is wasted

    at = NOW + 13
    assert backoff.after_success(at + QUIET_PERIOD_S - 1) == backoff
    for level in range(7, -1, -1):
        at += QUIET_PERIOD_S
        backoff = backoff.after_success(at)
        assert backoff.level == level
    assert backoff.after_success(at) is NO_BACKOFF


def test_the_host_of_a_long_outage_is_visited_as_before_within_minutes():
    backoff, now = NO_BACKOFF, NOW
    while now < NOW + 3.3 * HOUR:  # each request is refused
        backoff = backoff.after_trouble(now, 60.0)
        now += backoff.delay_s(60.0)
    assert backoff.delay_s(60.0) == MAX_BACKOFF_DELAY_S
    answered_at = now
    while backoff.level:
        backoff = backoff.after_success(now)
        now += backoff.delay_s(60.0)
    assert now - answered_at <= 15 * 60.0


def test_a_server_that_answers_only_slow_requests_is_not_asked_much_faster():
    """It answers when the last request was 10 s before, else with 429 and no Retry-After."""
    backoff, now, last, answers = NO_BACKOFF, NOW, NOW, []
    for _ in range(2_000):
        now += backoff.delay_s(1.0)
        answers.append(now - last >= 10.0)
        backoff = backoff.after_success(now) if answers[-1] else backoff.after_trouble(now, 1.0)
        last = now
    assert sum(answers[1_000:]) >= 600


def test_waiting_alone_does_not_lower_the_back_off():
    backoff = Backoff(5, NOW)
    assert backoff.after_trouble(NOW + 30 * 86_400, 15.0).level == 6


@pytest.mark.parametrize(
    ("earlier", "retry_after_s", "closed_for_s"),
    [
        (None, None, None),
        (None, 120.0, 120.0),
        (None, 0.0, 0.0),
        (None, -5.0, 0.0),
        (None, 1e12, MAX_RETRY_AFTER_S),
        (600.0, 120.0, 600.0),
        (600.0, None, 600.0),
        (60.0, 120.0, 120.0),
    ],
)
def test_retry_after_closes_and_never_shortens(earlier, retry_after_s, closed_for_s):
    before = Backoff(closed_until=None if earlier is None else NOW + earlier)
    after = before.after_trouble(NOW, 15.0, retry_after_s)
    assert after.closed_until == (None if closed_for_s is None else NOW + closed_for_s)
    assert after.open_at(NOW) == NOW + (closed_for_s or 0.0)
    later = NOW + MAX_RETRY_AFTER_S + 1
    assert after.open_at(later) == later
    assert after.after_success(later).closed_until is None


def test_an_outage_with_retry_after_costs_no_level():
    backoff, now = NO_BACKOFF, NOW
    for _ in range(12):
        backoff = backoff.after_trouble(now, 15.0, 5.0)
        assert backoff.open_at(now) == now + 5.0
        now += 15.0
    assert backoff.delay_s(15.0) == 15.0
    assert backoff.after_success(now + QUIET_PERIOD_S) is NO_BACKOFF


def test_retry_after_again_and_again_after_a_success_slows_down():
    backoff, now = NO_BACKOFF, NOW
    for level in range(4):
        backoff = backoff.after_trouble(now, 0.25, 1.0)
        assert backoff.level == level
        backoff = backoff.after_success(now + 1.0)
        now += 2.0
    later = now + 10 * QUIET_PERIOD_S
    assert backoff.after_trouble(later, 0.25, 1.0).level == backoff.level


def test_a_retry_after_of_zero_is_trouble_like_any_other():
    assert NO_BACKOFF.after_trouble(NOW, 15.0, 0.0).level == 1


def test_a_success_does_not_reopen_a_closed_host():
    backoff = Backoff(0, None, NOW + 60)
    assert backoff.after_success(NOW) == backoff
    assert Backoff(2, NOW, NOW + 9_999).after_success(NOW + 2_000).closed_until == NOW + 9_999


def test_a_closing_lasts_no_longer_after_the_clock_was_set_back():
    before = Backoff().after_trouble(NOW + DAY_S, 15.0, 900.0)
    later = before.after_success(NOW).after_success(NOW + 60)
    assert later.closed_until == NOW + 900
    assert before.after_trouble(NOW, 15.0, 60.0).closed_until == NOW + 900
    assert before.after_success(NOW).closed_until == NOW + 900
    assert before.after_success(NOW).at == NOW


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (Backoff(3, NOW - 60, NOW + 60), Backoff(3, NOW - 60, NOW + 60)),
        (Backoff(3, NOW + 9e9, None), Backoff(3, NOW, None)),
        (Backoff(3, NOW + DAY_S, NOW + DAY_S + 900), Backoff(3, NOW, NOW + 900)),
        (Backoff(3, NOW + DAY_S, NOW + DAY_S - 900), Backoff(3, NOW, NOW - 900)),
        (Backoff(1, NOW, NOW + 9e9), Backoff(1, NOW, NOW + MAX_RETRY_AFTER_S)),
        (Backoff(1, NOW, NOW - 9e9), Backoff(1, NOW, NOW - 9e9)),
        (Backoff(1, math.nan, math.nan), Backoff(1, NOW, NOW + MAX_RETRY_AFTER_S)),
        (Backoff(1, math.inf, math.inf), Backoff(1, NOW, NOW + MAX_RETRY_AFTER_S)),
        (Backoff(-4), Backoff(0)),
        (Backoff(10**6, NOW), Backoff(12, NOW)),
    ],
)
def test_clamp_restored(stored, expected):
    assert clamp_restored(stored, NOW) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("1.5", 1.5),
        ("604800", MAX_RETRY_AFTER_S),
        ("604801", MAX_RETRY_AFTER_S),
        ("9" * 60, MAX_RETRY_AFTER_S),
        ("9" * 100_000, MAX_RETRY_AFTER_S),
        ("Sat, 21 Nov 2026 00:02:00 GMT", 120.0),
        ("Saturday, 21-Nov-26 00:02:00 GMT", 120.0),
        ("Sat Nov 21 00:02:00 2026", 120.0),
        ("Fri, 20 Nov 2026 23:59:59 GMT", 0.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        ("Sat, 21 Nov 2093 00:00:00 GMT", MAX_RETRY_AFTER_S),
        ("", None),
        ("-1", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("١٢", None),
        ("1e9", None),
        ("Sat, 31 Feb 2026 00:00:00 GMT", None),
        ("Sat, 21 Nov 2026 25:00:00 GMT", None),
        ("Sat, 21 Nov 0000 00:00:00 GMT", None),
        ("Sat, 21 Foo 2026 00:00:00 GMT", None),
        ("Sat, 21 Nov 2026 00:02:00 PST", None),
        ("\x00" * 99, None),
    ],
    ids=range(26),
)
def test_parse_retry_after(value, expected):
    assert parse_retry_after(value, NOW) == expected


@pytest.mark.parametrize(
    ("value", "sent", "expected"),
    [
        ("Sat, 21 Nov 2026 00:02:00 GMT", "Sat, 21 Nov 2026 00:01:00 GMT", 60.0),
        ("Sat, 21 Nov 2026 00:02:00 GMT", "Sat, 21 Nov 2026 00:03:00 GMT", 0.0),
        ("Sat, 21 Nov 2026 00:02:00 GMT", "soon", 120.0),
        ("120", "Sat, 21 Nov 2026 00:01:00 GMT", 120.0),
    ],
)
def test_a_date_of_retry_after_is_one_of_the_clock_of_the_server(value, sent, expected):
    assert parse_retry_after(value, NOW, sent) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The three spellings of one time printed in RFC 9110 section 5.6.7.
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784111777.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784111777.0),
        ("Sun Nov  6 08:49:37 1994", 784111777.0),
        ("sun, 06 nov 1994 08:49:37 gmt", 784111777.0),
        ("Wednesday, 01-Jan-76 00:00:00 GMT", 3345062400.0),  # 50 years ahead of 2026
        ("Friday, 01-Jan-77 00:00:00 GMT", 220924800.0),  # more than that: 1977
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1483228799.0),
    ],
)
def test_parse_http_date(text, expected):
    assert parse_http_date(text, NOW) == expected


@pytest.mark.parametrize("read", [parse_http_date, validators._parse_date])
def test_the_dates_of_an_hour_are_not_kept(read):
    tracemalloc.start()
    try:
        for at in range(3_600):
            assert read(f"Sun, 06 Nov 1994 08:{at // 60:02}:{at % 60:02} GMT", NOW)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 200_000


@pytest.mark.parametrize(
    ("spans", "offset_h", "at_h", "opens_h"),
    [
        ((), 0, 12, 12),
        (((8, 18),), 0, 7.999, 7.999),
        (((8, 18),), 0, 8, 18),
        (((8, 18),), 0, 12, 18),
        (((8, 18),), 0, 18, 18),
        (((22, 6),), 0, 23, 30),
        (((22, 6),), 0, 3, 6),
        (((22, 6),), 0, 12, 12),
        (((22, 24), (0, 6)), 0, 23, 30),
        (((22, 24), (0, 6)), 0, 1, 6),
        (((8, 12), (12, 14), (13, 20)), 0, 9, 20),
        (((8, 12), (13, 20)), 0, 9, 12),
        (((22, 0),), 0, 23, 24),
        (((0, 24 - 1),), 0, 0, 23),
        (((8, 18),), 2, 6, 16),  # 08:00 local is 06:00 UTC
        (((22, 6),), -5, 3, 11),
        (((22, 6),), -5, 12, 12),
    ],
)
def test_quiet_hours(spans, offset_h, at_h, opens_h):
    quiet = QuietHours(tuple((a * HOUR, b * HOUR) for a, b in spans), offset_h * HOUR)
    assert quiet.open_at(NOW + at_h * HOUR) == NOW + opens_h * HOUR


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        (((0, 86_400),), "whole day"),
        (((0, 50_000), (40_000, 86_400)), "whole day"),
        (((50_000, 49_000), (49_000, 50_000)), "whole day"),
        (((100, 100),), "not a span of the day"),
        (((-1, 100),), "not a span of the day"),
        (((0, 86_401),), "not a span of the day"),
    ],
)
def test_bad_quiet_hours(spans, message):
    with pytest.raises(ConfigError, match=message):
        QuietHours(spans)


@pytest.mark.parametrize(
    ("own_h", "offset_h", "robots_h", "at_h", "opens_h"),
    [
        ((), 0, (9, 4), 12, 28),  # Visit-time: 0400-0900
        ((), 2, (9, 4), 12, 28),  # Visit-time is in UTC, the operator's hours are local
        (((4, 6),), 0, (9, 4), 12, 30),
        (((4, 10),), 0, (9, 4), 12, 12),  # together the whole day: only the operator's hours count
        (((8, 18),), 0, None, 12, 18),
    ],
)
def test_visit_time_joins_the_quiet_hours(own_h, offset_h, robots_h, at_h, opens_h):
    own = QuietHours(tuple((a * HOUR, b * HOUR) for a, b in own_h), offset_h * HOUR)
    robots = None if robots_h is None else (robots_h[0] * HOUR, robots_h[1] * HOUR)
    assert own.with_visit_time(robots).open_at(NOW + at_h * HOUR) == NOW + opens_h * HOUR
