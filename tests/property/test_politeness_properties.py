import math

from hypothesis import assume, given
from hypothesis import strategies as st

from crawld.core.politeness import (
    DAY_S,
    MAX_BACKOFF_DELAY_S,
    MAX_LEVEL,
    MAX_RETRY_AFTER_S,
    QUIET_PERIOD_S,
    Backoff,
    DelayRules,
    QuietHours,
    base_delay_s,
    clamp_restored,
    effective_delay_s,
    parse_retry_after,
)
from crawld.core.robots import Robots, parse_robots_tags
from crawld.errors import ConfigError

INSTANTS = st.floats(0, 4e9)
DELAYS = st.floats(0, 1e6)
ASKED = st.none() | st.floats(allow_nan=True, allow_infinity=True)
LEVELS = st.integers(0, MAX_LEVEL)
BACKOFFS = st.builds(Backoff, LEVELS, st.none() | INSTANTS, st.none() | INSTANTS)
SPANS = st.lists(st.tuples(st.integers(0, DAY_S), st.integers(0, DAY_S)), max_size=4).map(tuple)
OFFSETS = st.integers(-14, 14).map(lambda hours: hours * 3_600)


@given(DELAYS, DELAYS, ASKED, ASKED, LEVELS)
def test_the_delay_is_never_below_the_hosts_and_grows_with_the_level(
    host, most, crawl, rate, level
):
    rules = DelayRules(host, None, most)
    delay = effective_delay_s(rules, crawl, rate, Backoff(level))
    assert delay >= host
    assert delay <= max(host, most, MAX_BACKOFF_DELAY_S)
    assert effective_delay_s(rules, crawl, rate, Backoff(level + 1)) >= delay
    assert base_delay_s(rules, crawl, rate) == effective_delay_s(rules, crawl, rate, Backoff())


@given(BACKOFFS, INSTANTS, DELAYS, ASKED)
def test_trouble_never_opens_a_host_sooner(before, now, base, retry_after_s):
    assume(retry_after_s is None or not math.isnan(retry_after_s))
    after = before.after_trouble(now, base, retry_after_s)
    assert before.level <= after.level <= MAX_LEVEL
    assert after.delay_s(base) >= before.delay_s(base)
    grew = after.delay_s(base) > before.delay_s(base)
    told = retry_after_s is not None and retry_after_s > 0.0
    assert grew or told or before.delay_s(base) >= MAX_BACKOFF_DELAY_S
    assert after.open_at(now) >= before.by_clock(now).open_at(now)
    if before.closed_until is None:
        assert after.open_at(now) <= now + MAX_RETRY_AFTER_S


@given(BACKOFFS, INSTANTS, st.integers(1, 100))
def test_quiet_successes_lower_the_back_off_by_half_at_most(backoff, now, quiet_periods):
    backoff = clamp_restored(backoff, now)
    while backoff.level:
        now += quiet_periods * QUIET_PERIOD_S + 1
        forgiven = backoff.after_success(now)
        fewer = backoff.level - forgiven.level
        assert 1 <= fewer <= max(1.0, (backoff.level + 1) / 2)
        assert backoff.at is None or fewer <= (now - backoff.at) / QUIET_PERIOD_S
        assert forgiven.after_success(now + 1).level == forgiven.level
        backoff = forgiven
    assert backoff.level == 0
    assert backoff.after_success(now + MAX_RETRY_AFTER_S + 1) == Backoff()


@given(BACKOFFS, INSTANTS)
def test_open_at_is_idempotent_and_not_in_the_past(backoff, now):
    opens_at = backoff.open_at(now)
    assert opens_at >= now
    assert backoff.open_at(opens_at) == opens_at


@given(
    st.builds(Backoff, st.integers(-99, 99), st.none() | st.floats(), st.none() | st.floats()),
    INSTANTS,
)
def test_no_clock_jump_frees_or_freezes(stored, now):
    restored = clamp_restored(stored, now)
    assert now <= restored.open_at(now) <= now + MAX_RETRY_AFTER_S
    at = stored.at if stored.at is not None and math.isfinite(stored.at) else now
    if stored.closed_until is not None and stored.closed_until > max(now, at):
        assert restored.open_at(now) > now
    assert 0 <= restored.level <= MAX_LEVEL
    assert restored.at is None or restored.at <= now
    assert clamp_restored(restored, now) == restored


@given(SPANS, OFFSETS, st.integers(0, 4_000_000_000) | INSTANTS)
def test_quiet_hours_open_within_a_day_at_an_open_time(spans, offset, now):
    try:
        quiet = QuietHours(spans, offset)
    except ConfigError:
        return
    opens_at = quiet.open_at(now)
    assert now <= opens_at <= now + DAY_S
    assert quiet.open_at(opens_at) == opens_at
    second = (opens_at + offset) % DAY_S
    for start, end in spans:
        inside = start <= second < end if start < end else second >= start or second < end
        assert not inside


@given(SPANS, OFFSETS, st.tuples(st.integers(0, DAY_S - 1), st.integers(0, DAY_S - 1)), INSTANTS)
def test_a_visit_time_only_adds_to_the_quiet_hours(spans, offset, robots, now):
    try:
        own = QuietHours(spans, offset)
    except ConfigError:
        return
    both = own.with_visit_time(robots)
    assert own.open_at(now) <= both.open_at(now) <= now + DAY_S


@given(st.text(max_size=80) | st.integers().map(str), INSTANTS)
def test_retry_after_is_in_its_range_or_none(value, now):
    seconds = parse_retry_after(value, now)
    assert seconds is None or 0.0 <= seconds <= MAX_RETRY_AFTER_S


ROBOTS_WORDS = st.sampled_from(
    [
        *("User-agent:", "Disallow:", "Allow:", "Crawl-delay:", "Request-rate:", "Visit-time:"),
        *("*", "/", "crawld", "\n", "\r", " ", "#", "$", "%2F", "1/5", "0400-0845", "-", "é"),
        *("\x00", "\u2028"),
    ]
)


@given(st.binary(max_size=200) | st.lists(ROBOTS_WORDS, max_size=40).map("".join))
def test_any_robots_txt_is_parsed(text):
    robots = Robots.parse(text, "crawld")
    assert robots.allowed("http://a.org/x?y=%C3%A9") in (True, False)
    assert robots.allowed("http://a.org/robots.txt")
    for delay in (robots.crawl_delay_s, robots.request_rate_delay_s):
        assert delay is None or 0 <= delay < math.inf
    if robots.visit_time is not None:
        start, end = robots.visit_time
        assert 0 <= start < DAY_S
        assert 0 <= end < DAY_S
        QuietHours((robots.visit_time,))


@given(st.lists(st.text(max_size=60)))
def test_any_robots_tag_is_parsed(values):
    asked = parse_robots_tags(values, "crawld")
    assert parse_robots_tags([*values, "none"], "crawld").nofollow
    assert asked.noindex <= parse_robots_tags([*values, "noindex"], "crawld").noindex
