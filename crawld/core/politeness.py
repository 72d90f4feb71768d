"""Politeness towards hosts and addresses: delay, back-off and quiet hours.

All times are Unix seconds, UTC, given by the caller. The rules, in order:

1. The delay of a host is never below the configured one. robots.txt may lengthen it (the longer of
   Crawl-delay and Request-rate), up to `max_crawl_delay_s`.
2. Trouble (429, 503, a refused or broken connection) raises the back-off by one level. Each level
   doubles the delay, up to `MAX_BACKOFF_DELAY_S`.
3. A Retry-After closes the host until its time, instead of raising the level: the server has said
   when to return. The level rises as well if a success stands between two such responses less than
   `QUIET_PERIOD_S` apart, because then our rate is too high for the server.
4. Decay: a success takes off a level for each `QUIET_PERIOD_S` since the last trouble (or the last
   success that did so), but at most half of the levels, rounded up. Right after an outage of hours
   few requests were sent, and steps of one level would take as long as the outage; a server that
   only answers slow requests is found at one of its levels, not above them all. Time alone lowers
   nothing: a host that fails every hour must not be visited faster in between.
5. Stored times are clamped at start (`clamp_restored`). A clock jump neither reopens a closed host
   (a closing time in the future is kept) nor closes it for long (at most the longest Retry-After).

Invariants: `effective_delay_s` is at least the host delay and monotone in the level. Every
`open_at` is at least `now`, finite, and a time at which requests are allowed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache

from crawld.errors import ConfigError

DAY_S = 86_400

MAX_RETRY_AFTER_S = 7.0 * DAY_S
"""Longest closing that one Retry-After can cause."""

MAX_BACKOFF_DELAY_S = 3_600.0
"""Longest delay that back-off alone causes: 24 requests a day to a host that is down."""

BACKOFF_FLOOR_S = 1.0
"""Doubling starts here if the configured delay is shorter (it may be 0)."""

MAX_LEVEL = 12
"""First level at which even `BACKOFF_FLOOR_S` has doubled past `MAX_BACKOFF_DELAY_S`."""

QUIET_PERIOD_S = 60.0
"""Time without trouble before a success lowers the back-off."""

ADDRESS_SHARE = 10
"""The default delay of an address is its host's delay divided by this."""


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Parts of the day without requests to a host.

    Attributes:
        spans: (start, end) in seconds of the local day, 0 to 86,400, end excluded; a span whose end
            lies before its start crosses midnight.
        utc_offset_s: local time minus UTC.

    Raises:
        ConfigError: a span is empty or outside the day, or the spans cover the whole day.
    """

    spans: tuple[tuple[int, int], ...] = ()
    utc_offset_s: int = 0
    _merged: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_merged", _merged(self.spans))

    def open_at(self, now: float) -> float:
        """Return the first time, `now` or later, outside every span."""
        day, second = divmod(now + self.utc_offset_s, DAY_S)
        for start, end in self._merged:
            if start <= second < end or start <= second + DAY_S < end:
                # Computed from whole days and seconds, so that the result is exactly the end of the
                # span.
                wrapped = DAY_S if second < start else 0
                return max(now, day * DAY_S + end - wrapped - self.utc_offset_s)
        return now

    def with_visit_time(self, quiet_utc: tuple[int, int] | None) -> QuietHours:
        """Return these quiet hours joined with those of a robots.txt (`Robots.visit_time`).

        If both together would cover the whole day, only the configured ones apply: Visit-time must
        never block a host forever.
        """
        if quiet_utc is None:
            return self
        span = tuple((second + self.utc_offset_s) % DAY_S for second in quiet_utc)
        try:
            return replace(self, spans=(*self.spans, (span[0], span[1])))
        except ConfigError:
            return self


def _merged(spans: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return the spans sorted and merged; the last may end past midnight."""
    pieces: list[tuple[int, int]] = []
    for start, end in spans:
        if not (0 <= start <= DAY_S and 0 <= end <= DAY_S) or start == end:
            raise ConfigError(
                f"the quiet hours {start} to {end} are not a span of the day",
                hint="give two different times between 00:00 and 24:00",
            )
        pieces += [(start, end)] if start < end else [(start, DAY_S), (0, end)]
    joined: list[tuple[int, int]] = []
    for start, end in sorted(piece for piece in pieces if piece[0] < piece[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    if joined == [(0, DAY_S)]:
        raise ConfigError(
            "the quiet hours cover the whole day",
            hint="leave some time of the day, or pause the site instead",
        )
    if len(joined) > 1 and joined[0][0] == 0 and joined[-1][1] == DAY_S:
        joined[-1] = (joined[-1][0], DAY_S + joined.pop(0)[1])
    return tuple(joined)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Back-off state of a host; stored with it.

    Attributes:
        level: doublings of the delay, 0 to `MAX_LEVEL`.
        at: time of the last trouble, or of the last success that lowered the level; None = never.
        closed_until: no request before this time (Retry-After); None = open.
    """

    level: int = 0
    at: float | None = None
    closed_until: float | None = None

    def after_trouble(
        self, now: float, base_delay_s: float, retry_after_s: float | None = None
    ) -> Backoff:
        """Return the back-off after an overload response (429, 503) or no response."""
        # A level beyond the cap would have no effect now and take days to decay.
        capped = self.delay_s(base_delay_s) >= MAX_BACKOFF_DELAY_S
        told = retry_after_s is not None and retry_after_s > 0.0
        rises = not capped and (not told or self._is_too_fast(now))
        level = min(self.level + 1, MAX_LEVEL) if rises else self.level
        closed_until = self.by_clock(now).closed_until
        if retry_after_s is not None:
            requested = now + min(max(retry_after_s, 0.0), MAX_RETRY_AFTER_S)
            closed_until = requested if closed_until is None else max(closed_until, requested)
        return Backoff(level, now, closed_until)

    def by_clock(self, now: float) -> Backoff:
        """Return the back-off by a clock that may have been set back since its times."""
        if self.at is None or self.at <= now:
            return self
        closed_until = self.closed_until
        if closed_until is not None:
            closed_until -= self.at - now
        return Backoff(self.level, now, closed_until)

    def _is_too_fast(self, now: float) -> bool:
        """Whether a success stands between this trouble and another one shortly before it."""
        # A success ends the closing; without one, this response is the next after the Retry-After.
        recent = self.at is not None and now - self.at < QUIET_PERIOD_S
        return recent and self.closed_until is None

    def after_success(self, now: float) -> Backoff:
        """Return the back-off after a success: fewer levels after a quiet period."""
        known = self.by_clock(now)
        closed_until = known.closed_until
        if closed_until is not None and closed_until <= now:
            closed_until = None
        quiet_s = math.inf if known.at is None else now - known.at
        if quiet_s < QUIET_PERIOD_S:
            return replace(known, closed_until=closed_until)
        if self.level <= 1:
            return NO_BACKOFF if closed_until is None else Backoff(0, None, closed_until)
        fewer = int(min(quiet_s / QUIET_PERIOD_S, (self.level + 1) // 2))
        return Backoff(self.level - fewer, now, closed_until)

    def delay_s(self, base_delay_s: float) -> float:
        """Return the delay at this level, seconds."""
        if self.level == 0:
            return base_delay_s
        grown = max(base_delay_s, BACKOFF_FLOOR_S) * 2.0**self.level
        return max(base_delay_s, min(grown, MAX_BACKOFF_DELAY_S))

    def open_at(self, now: float) -> float:
        """Return the first time, `now` or later, when the host is not closed."""
        return now if self.closed_until is None else max(now, self.closed_until)


NO_BACKOFF = Backoff()


@dataclass(frozen=True, slots=True)
class DelayRules:
    """The operator's delays for one host.

    Attributes:
        host_delay_s: least time between two requests to the host.
        address_delay_s: the same for its address; None = a tenth of the host's.
        max_crawl_delay_s: longest delay that robots.txt can set.
        quiet_hours: parts of the day without requests.

    Raises:
        ConfigError: a time is negative or not finite.
    """

    host_delay_s: float = 15.0
    address_delay_s: float | None = None
    max_crawl_delay_s: float = 300.0
    quiet_hours: QuietHours = QuietHours()

    def __post_init__(self) -> None:
        for name in ("host_delay_s", "address_delay_s", "max_crawl_delay_s"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ConfigError(f"{name} is {value}", hint="give seconds, 0 or more")

    @property
    def effective_address_delay_s(self) -> float:
        """Least time between two requests to the address."""
        if self.address_delay_s is None:
            return self.host_delay_s / ADDRESS_SHARE
        return self.address_delay_s


def effective_delay_s(
    rules: DelayRules,
    robots_crawl_delay_s: float | None,
    robots_request_rate_delay_s: float | None,
    backoff: Backoff,
) -> float:
    """Return the delay between two requests to a host, seconds."""
    return backoff.delay_s(base_delay_s(rules, robots_crawl_delay_s, robots_request_rate_delay_s))


def base_delay_s(
    rules: DelayRules,
    robots_crawl_delay_s: float | None,
    robots_request_rate_delay_s: float | None,
) -> float:
    """Return the delay between two requests without back-off, seconds."""
    if robots_crawl_delay_s is None and robots_request_rate_delay_s is None:
        return rules.host_delay_s  # most hosts ask for none
    requested = max(_seconds(robots_crawl_delay_s), _seconds(robots_request_rate_delay_s))
    return max(rules.host_delay_s, min(requested, rules.max_crawl_delay_s))


def _seconds(requested: float | None) -> float:
    # NaN compares false with everything, so it must not reach max().
    return 0.0 if requested is None or math.isnan(requested) else requested


def clamp_restored(backoff: Backoff, now: float) -> Backoff:
    """Return a stored back-off with its level and times clamped to possible values at `now`."""
    if backoff.at is not None and not math.isfinite(backoff.at):
        backoff = replace(backoff, at=now)
    backoff = backoff.by_clock(now)
    closed_until = backoff.closed_until
    if closed_until is not None:
        latest = now + MAX_RETRY_AFTER_S
        closed_until = latest if math.isnan(closed_until) else min(closed_until, latest)
    return Backoff(min(max(backoff.level, 0), MAX_LEVEL), backoff.at, closed_until)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?").fullmatch
_CLOCK = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DATES = tuple(
    re.compile(form, re.IGNORECASE).fullmatch
    for form in (
        # The three forms of RFC 9110 section 5.6.7: IMF-fixdate, RFC 850, asctime.
        rf"[a-z]{{3}}, (?P<day>[0-9]{{2}}) (?P<month>[a-z]{{3}}) (?P<year>[0-9]{{4}}) {_CLOCK} GMT",
        rf"[a-z]+, (?P<day>[0-9]{{2}})-(?P<month>[a-z]{{3}})-(?P<year>[0-9]{{2}}) {_CLOCK} GMT",
        rf"[a-z]{{3}} (?P<month>[a-z]{{3}}) (?P<day>[ 0-9][0-9]) {_CLOCK} (?P<year>[0-9]{{4}})",
    )
)


def parse_retry_after(value: str, now: float, sent: str | None = None) -> float | None:
    """Return the seconds from `now` in a Retry-After header; None if it cannot be parsed.

    0 to `MAX_RETRY_AFTER_S`; 0 for a date in the past. A date is one of the server's clock, which
    the Date of the answer (`sent`) tells; `now` stands for it where that is missing or no date.

    Source: RFC 9110, sections 10.2.3 and 5.6.7. Fractions of seconds are accepted.
    """
    text = value.strip()[:64]
    if _SECONDS(text):
        seconds = float(text)
    else:
        at = parse_http_date(text, now)
        if at is None:
            return None
        sent_at = parse_http_date(sent, now) if sent else None
        seconds = at - (now if sent_at is None else sent_at)
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def parse_http_date(text: str, now: float) -> float | None:
    """Return the time of an HTTP date (RFC 9110 section 5.6.7); None if the text is not a date.

    `now` decides the century of a two-digit year.
    """
    return _http_date(text, 1970 + int(now // (365.2425 * DAY_S)))


@lru_cache(maxsize=256)  # responses of the same second carry the same Date
def _http_date(text: str, this_year: int) -> float | None:
    found = next((match for form in _DATES if (match := form(text.strip()))), None)
    if found is None or found["month"].lower() not in _MONTHS:
        return None
    year = int(found["year"])
    if len(found["year"]) == 2:
        year += this_year - this_year % 100
        # RFC 9110: a year more than 50 years ahead is in the last century.
        year -= 100 if year > this_year + 50 else 0
    try:
        return datetime(
            year,
            _MONTHS.index(found["month"].lower()) + 1,
            int(found["day"]),
            int(found["hour"]),
            int(found["minute"]),
            min(int(found["second"]), 59),  # Unix time has no leap seconds
            tzinfo=UTC,
        ).timestamp()
    except ValueError:
        return None
