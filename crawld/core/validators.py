"""Learns which validators of an origin can be trusted, and the skew of its clock.

A validator (ETag, Last-Modified) is useful if it changes with the content and stays the same
without a change. Servers fail in both directions: some send 304 although the page changed, others
send a new validator with each response, so that no 304 ever comes. A Last-Modified may be the
current time, lie in the future, or come from a wrong clock. A 304 does not reveal this. A response
with a body does, because its content can be compared with the copy:

                        same validator         new validator
    same content        stable                 spurious
    content changed     missed                 detected

A 304 counts as stable. A client that sends conditions must therefore occasionally omit them
(`wants_check`); if a kind is not sent, every visit is such a check.

One missed change is enough to distrust a kind: it costs more than some extra bodies. Each later
detection removes a quarter of that evidence, and it halves every month, so that a repaired server
is trusted again.

The clock skew of a host is its Date (plus Age: a cache repeats the Date of the origin) minus our
time. The median of the last samples is used, so that single responses have no influence.

Invariants: all state is bounded and finite. A distrusted kind is neither sent nor used as a time. A
visit whose content could not be compared is not evidence.

Source: RFC 9110, sections 8.8 (validators) and 13.1 (conditions); RFC 9111, section 5.1 (Age).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median
from struct import Struct, error

from crawld.core.politeness import parse_http_date
from crawld.core.units import DAY_S
from crawld.core.value_type import value_type

HALF_LIFE_S = 30 * DAY_S
"""Half-life of the evidence against a kind."""

MAX_TOLERATED_MISSES = 0.5
"""A kind is trusted while its weight of missed changes is below this."""

MISSES_KEPT_PER_DETECTION = 0.75
"""Factor on the weight of missed changes at each detected one."""

MAX_MISSES = 4.0
"""Largest weight of missed changes: eight detections in a row outweigh it."""

MIN_SPURIOUS, SPURIOUS_RATIO = 3.0, 4.0
"""A kind is restless from this many spurious responses, if they are this many times the stable
ones."""

MAX_COUNT = 64.0
"""Above this sum the counts of a kind are halved, so that new evidence weighs more."""

YOUNG_CHECKS, YOUNG_SHARE = 4, 0.1
"""The first checks of an origin are a tenth of its conditional requests."""

PROVEN_DETECTIONS, PROVEN_SHARE = 8.0, 0.4
"""After this many detections, the share of checks is multiplied by this factor."""

SKEW_SAMPLES = 9
SKEW_NOISE_S = 2.0
"""Smaller skews are ignored: a Date is truncated to the second, and delivery takes time."""

FRESH_S = 10.0
"""A Last-Modified less than this before its copy was fetched may also be that of a later text: it
has whole seconds, the page takes time to make, and clocks are compared to `SKEW_NOISE_S`."""

AHEAD_S = 60.0
"""A Last-Modified this much later than the Date of its response is false, not clock skew."""


@value_type
class Validators:
    """The validators of one response, as sent; None if absent."""

    etag: str | None = None
    last_modified: str | None = None


@value_type(kw_only=True)
class Exchange:
    """Evidence of one visit about validators and the server's clock.

    Attributes:
        at: time of the response, Unix seconds.
        took_s: time from the request to the last byte of the response, seconds.
        held: validators of the copy; empty at a first visit.
        fresh: whether a later text may have the Last-Modified of the copy, through no fault of the
            server.
        sent: those of `held` that were sent as conditions.
        not_modified: whether the response was a 304.
        same: whether the content equals the copy; None if not known.
        date, age: header fields of the response.
        check: whether conditions were deliberately omitted.
    """

    at: float
    received: Validators
    held: Validators = Validators()
    sent: Validators = Validators()
    not_modified: bool = False
    same: bool | None = None
    date: str | None = None
    age: str | None = None
    check: bool = False
    fresh: bool = False
    took_s: float = 0.0


@dataclass(slots=True)
class KindTrust:
    """Evidence about one kind of validator of an origin, in weighted visits."""

    detected: float = 0.0
    missed: float = 0.0
    stable: float = 0.0
    spurious: float = 0.0

    @property
    def restless(self) -> bool:
        """Whether it changes with each response."""
        return self.spurious >= MIN_SPURIOUS and self.spurious >= SPURIOUS_RATIO * self.stable

    @property
    def lies(self) -> bool:
        """Whether it has missed changes of the page."""
        return self.missed >= MAX_TOLERATED_MISSES

    @property
    def trusted(self) -> bool:
        """Whether it is worth sending."""
        return not self.lies and not self.restless

    def observe(self, *, equal: bool, same: bool, ignored: bool) -> None:
        """Learn from one visit with a body.

        Args:
            equal: the validator equals that of the copy.
            same: the content equals the copy.
            ignored: the validator was sent and is equal, and a body came anyway.
        """
        if same:
            self.stable += equal and not ignored
            self.spurious += ignored or not equal
        elif equal:
            self.missed = min(self.missed + 1.0, MAX_MISSES)
            self.detected *= 0.5
        else:
            self.detected += 1.0
            self.missed *= MISSES_KEPT_PER_DETECTION
        if self.detected + self.stable + self.spurious > MAX_COUNT:
            self.detected /= 2
            self.stable /= 2
            self.spurious /= 2

    def forget(self, elapsed_s: float) -> None:
        """Decay the evidence against it."""
        kept = 2.0 ** -(max(elapsed_s, 0.0) / HALF_LIFE_S)
        self.missed *= kept
        self.spurious *= kept


_YEAR_S = 365.25 * DAY_S

_RECORD = Struct(f"<B4f4f2ffdB{SKEW_SAMPLES}f")
_VERSION = 1


@dataclass(slots=True)
class ValidatorTrust:
    """Learned trust in the validators and the clock of one origin.

    Attributes:
        ahead: responses whose Last-Modified was later than their own Date, weighted.
        on_time: responses whose Last-Modified was not.
        checks: deliberate requests without conditions, up to `YOUNG_CHECKS`.
        seen_at: time of the last evidence, Unix seconds.
        skews: last samples of server clock minus ours, seconds, newest last.
    """

    etag: KindTrust = field(default_factory=KindTrust)
    last_modified: KindTrust = field(default_factory=KindTrust)
    ahead: float = 0.0
    on_time: float = 0.0
    checks: float = 0.0
    seen_at: float = 0.0
    skews: list[float] = field(default_factory=list)

    @property
    def sends_etag(self) -> bool:
        """Whether If-None-Match is worth sending."""
        return self.etag.trusted

    @property
    def sends_last_modified(self) -> bool:
        """Whether If-Modified-Since is worth sending and Last-Modified can be used as a time."""
        return self.last_modified.trusted and self.ahead <= self.on_time

    @property
    def skew_s(self) -> float:
        """Clock of the server minus ours, seconds; 0 if not known or below the noise."""
        skew_s = median(self.skews) if self.skews else 0.0
        return skew_s if abs(skew_s) > SKEW_NOISE_S else 0.0

    def conditions(self, held: Validators) -> Validators:
        """Return the validators of the copy that are worth sending."""
        return Validators(
            held.etag if self.sends_etag else None,
            held.last_modified if self.sends_last_modified else None,
        )

    def is_fresh(self, last_modified: str, copied_at: float) -> bool:
        """Return whether a copy is so young that its page may change and keep its Last-Modified.

        Then 304 would hold for the older text for good (RFC 9110, section 8.8.2.2).

        Args:
            copied_at: when the copy was last received with its body, Unix seconds.
        """
        modified_at = _parse_date(last_modified, copied_at)
        return modified_at is not None and copied_at + self.skew_s - modified_at < FRESH_S

    def wants_check(self, chance: float, share: float) -> bool:
        """Return whether this request should omit its conditions.

        Args:
            chance: uniform in [0, 1).
            share: largest share of requests without conditions once the origin is known; 0: never.
        """
        if share <= 0.0:
            return False
        if self.checks < YOUNG_CHECKS:
            return chance < max(YOUNG_SHARE, share)
        detected = max(self.etag.detected, self.last_modified.detected)
        return chance < (share * PROVEN_SHARE if detected >= PROVEN_DETECTIONS else share)

    def changed_at(self, exchange: Exchange) -> float | None:
        """Return the time of the last change according to a response, by our clock.

        Args:
            exchange: the response; a 304 without Last-Modified confirms that of the copy.

        Returns:
            Unix seconds, at most the time of the response; None if it cannot be trusted.
        """
        text = exchange.received.last_modified
        if text is None and exchange.not_modified:
            text = exchange.held.last_modified
        modified_at = _parse_date(text, exchange.at) if text else None
        if modified_at is None or not self.sends_last_modified or modified_at <= 0.0:
            return None
        if _is_ahead(modified_at, exchange):
            return None
        return min(modified_at - self.skew_s, exchange.at)

    def observe(self, exchange: Exchange) -> None:
        """Learn from one visit that got a response."""
        if self.seen_at:
            self._forget(exchange.at - self.seen_at)
        self.seen_at = exchange.at
        self._sample_clock(exchange)
        self._check_last_modified(exchange)
        self.checks = min(self.checks + exchange.check, float(YOUNG_CHECKS))
        if exchange.not_modified:
            # A server that knows the ETag ignores the date.
            answering = self.etag if exchange.sent.etag else self.last_modified
            answering.observe(equal=True, same=True, ignored=False)
        elif exchange.same is not None:
            self._compare(exchange, same=exchange.same)

    def _forget(self, elapsed_s: float) -> None:
        self.etag.forget(elapsed_s)
        self.last_modified.forget(elapsed_s)
        self.ahead *= 2.0 ** -(max(elapsed_s, 0.0) / HALF_LIFE_S)

    def _sample_clock(self, exchange: Exchange) -> None:
        sent_at = _parse_date(exchange.date, exchange.at) if exchange.date else None
        age_s = _age_s(exchange.age)
        if sent_at is None or age_s is None:
            return
        # Truncated to the second, a Date is on average half a second early. It was written at any
        # time from the request to the last byte: a slow response shows no skew.
        latest_s = sent_at + 0.5 + age_s - exchange.at
        self.skews.append(min(max(latest_s, 0.0), latest_s + exchange.took_s))
        del self.skews[:-SKEW_SAMPLES]

    def _check_last_modified(self, exchange: Exchange) -> None:
        text = exchange.received.last_modified
        modified_at = _parse_date(text, exchange.at) if text else None
        if modified_at is None:
            return
        ahead = _is_ahead(modified_at, exchange)
        self.ahead, self.on_time = self.ahead + ahead, self.on_time + (not ahead)
        if self.ahead + self.on_time > MAX_COUNT / 4:
            self.ahead, self.on_time = self.ahead / 2, self.on_time / 2

    def _compare(self, exchange: Exchange, *, same: bool) -> None:
        held, received, sent = exchange.held, exchange.received, exchange.sent
        if held.etag and received.etag:
            equal = _opaque(held.etag) == _opaque(received.etag)
            self.etag.observe(equal=equal, same=same, ignored=bool(sent.etag) and equal)
        if held.last_modified and received.last_modified:
            equal = _no_later(received.last_modified, held.last_modified, exchange.at)
            if equal and exchange.fresh and not same:
                return
            ignored = bool(sent.last_modified) and not sent.etag and equal
            self.last_modified.observe(equal=equal, same=same, ignored=ignored)

    def to_bytes(self) -> bytes:
        """Return the stored form, 90 bytes."""
        etag, modified = self.etag, self.last_modified
        padded = self.skews + [0.0] * (SKEW_SAMPLES - len(self.skews))
        return _RECORD.pack(
            _VERSION,
            *(etag.detected, etag.missed, etag.stable, etag.spurious),
            *(modified.detected, modified.missed, modified.stable, modified.spurious),
            *(self.ahead, self.on_time, self.checks, self.seen_at),
            *(len(self.skews), *padded),
        )

    @classmethod
    def from_bytes(cls, stored: bytes | None) -> ValidatorTrust:
        """Read the stored form; if it is unreadable, return an unknown origin."""
        try:
            version, *values = _RECORD.unpack(stored or b"")
        except error:
            return cls()
        if version != _VERSION or not all(map(math.isfinite, values)):
            return cls()
        ahead, on_time, checks, seen_at, count, *skews = values[8:]
        return cls(
            KindTrust(*values[:4]),
            KindTrust(*values[4:8]),
            *(ahead, on_time, checks, seen_at),
            skews[: min(count, SKEW_SAMPLES)],
        )


def _parse_date(text: str, now: float) -> float | None:
    """Return the time of an HTTP date; cached, because each is needed several times a visit."""
    return _cached_date(text, now // _YEAR_S)


@lru_cache(maxsize=256)  # of the visits under way: a page has its own dates
def _cached_date(text: str, year: float) -> float | None:
    # The current time decides only the century of a two-digit year.
    return parse_http_date(text, (year + 0.5) * _YEAR_S)


def _opaque(etag: str) -> str:
    """Return an ETag for the weak comparison of RFC 9110, section 8.8.3.2."""
    return etag.strip().removeprefix("W/")


def _no_later(received: str, held: str, now: float) -> bool:
    """Return whether a server that compares dates would call the copy current."""
    received_at, held_at = _parse_date(received, now), _parse_date(held, now)
    if received_at is None or held_at is None:
        return received.strip() == held.strip()
    return received_at <= held_at


def _is_ahead(modified_at: float, exchange: Exchange) -> bool:
    """Return whether a Last-Modified lies in the future, by the server's Date if it sent one."""
    sent_at = _parse_date(exchange.date, exchange.at) if exchange.date else None
    return modified_at > (exchange.at if sent_at is None else sent_at) + AHEAD_S


def _age_s(text: str | None) -> float | None:
    """Return the Age of a response in seconds: 0 without the field, None if it is not a number."""
    if text is None:
        return 0.0
    digits = text.strip()
    return float(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else None
