"""Which validators of an origin may be believed, and what its clock is worth.

A validator (ETag, Last-Modified) is of use if it tells a change and stays where nothing changed.
Servers lie in both directions: a frozen one answers 304 though the page changed, a restless one
names another validator at each request, so that no 304 ever comes; a Last-Modified may be the
present instant, lie in the future, or be told by a wrong clock. Nothing of this shows in an answer
304. It shows where a body came along and its content can be compared with the copy held:

                        validator as held      another validator
    content as held     steady                 idle (of no use)
    content changed     lied                   told

An answer 304 counts as steady. Whoever sends conditions must therefore leave them out now and then
(`wants_check`); where a kind is not sent, every visit is such a check.

One lie is enough: a missed change costs more than some bodies. Each change told since then takes a
quarter of the evidence, and time halves it in a month, so that a mended server is believed again.

The clock of a host is its Date (and Age: a cache repeats the Date of the origin) less ours; the
median of the last samples stands for it, whatever a few answers say.

Invariants: everything is bounded and finite; a kind that is not trusted is neither sent nor used
as an instant; no evidence is taken from a visit whose content could not be judged.

Source: RFC 9110, sections 8.8 (validators) and 13.1 (conditions); RFC 9111, section 5.1 (Age).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median
from struct import Struct, error

from crawld.core.politeness import parse_http_date

HALF_LIFE_S = 30 * 86_400.0
"""Time in which evidence against a kind loses half its weight."""

MAX_TOLERATED_MISSES = 0.5
"""A kind is believed while less than this weight of lies is held against it."""

MISSES_KEPT_PER_DETECTION = 0.75
"""What a change told leaves of that weight."""

MAX_MISSES = 4.0
"""Weight of lies held at most: eight changes told in a row outweigh the worst past."""

MIN_SPURIOUS, SPURIOUS_RATIO = 3.0, 4.0
"""Restless: so many idle answers, and so many times more than steady ones."""

MAX_COUNT = 64.0
"""Past this the counts of a kind are halved, so that what is new weighs more."""

YOUNG_CHECKS, YOUNG_SHARE = 4, 0.1
"""The first checks of an origin come from a tenth of its conditional requests."""

PROVEN_DETECTIONS, PROVEN_SHARE = 8.0, 0.4
"""Once so many changes were told and none was hidden, fewer checks do."""

SKEW_SAMPLES = 9
SKEW_NOISE_S = 2.0
"""A Date is cut to the second and travels: a smaller skew is none."""

AHEAD_S = 60.0
"""A Last-Modified so much later than the Date of its own answer is a lie, not a late clock."""


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of one answer, as sent; None where absent."""

    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One answered visit, as far as it tells about validators and clock.

    Attributes:
        at: instant of the answer, Unix seconds.
        held: validators of the copy held; empty at a first visit.
        sent: those of them that were sent as conditions.
        received: validators of the answer.
        not_modified: whether the answer was a 304.
        same: whether the content is that of the copy held; None where that is not known.
        date: Date field of the answer. age: its Age field.
        check: whether conditions were left out on purpose.
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


@dataclass(slots=True)
class KindTrust:
    """The evidence about one kind of validator of an origin, in weighted visits."""

    detected: float = 0.0
    missed: float = 0.0
    stable: float = 0.0
    spurious: float = 0.0

    @property
    def restless(self) -> bool:
        """Whether it is another one at each request."""
        return self.spurious >= MIN_SPURIOUS and self.spurious >= SPURIOUS_RATIO * self.stable

    @property
    def lies(self) -> bool:
        """Whether it was seen to stay where the page changed."""
        return self.missed >= MAX_TOLERATED_MISSES

    @property
    def trusted(self) -> bool:
        """Whether it is worth sending."""
        return not self.lies and not self.restless

    def observe(self, *, equal: bool, same: bool, ignored: bool) -> None:
        """Take one visit that brought a body.

        Args:
            equal: the validator is the one held.
            same: the content is the one held.
            ignored: it was sent, is equal, and a body came nevertheless.
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
            self.detected, self.stable, self.spurious = (
                self.detected / 2,
                self.stable / 2,
                self.spurious / 2,
            )

    def forget(self, elapsed_s: float) -> None:
        """Let what speaks against it fade."""
        kept = 2.0 ** -(max(elapsed_s, 0.0) / HALF_LIFE_S)
        self.missed *= kept
        self.spurious *= kept


_YEAR_S = 365.25 * 86_400.0

_RECORD = Struct(f"<B4f4f2ffdB{SKEW_SAMPLES}f")
_VERSION = 1


@dataclass(slots=True)
class ValidatorTrust:
    """What is known of the validators and the clock of one origin.

    Attributes:
        etag: evidence about its ETags.
        last_modified: evidence about its Last-Modified.
        ahead: answers whose Last-Modified lay in the future of their own Date, weighted.
        on_time: those where it did not.
        checks: bodies asked for on purpose, up to `YOUNG_CHECKS`.
        seen_at: instant of the last evidence, Unix seconds.
        skews: last samples of server clock less ours, seconds, newest last.
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
        """Whether If-Modified-Since is worth sending, and Last-Modified an instant."""
        return self.last_modified.trusted and self.ahead <= self.on_time

    @property
    def skew_s(self) -> float:
        """Clock of the server less ours, seconds; 0 where it is not known or too small to tell."""
        skew_s = median(self.skews) if self.skews else 0.0
        return skew_s if abs(skew_s) > SKEW_NOISE_S else 0.0

    def conditions(self, held: Validators) -> Validators:
        """Return which validators of the copy held are worth sending."""
        return Validators(
            held.etag if self.sends_etag else None,
            held.last_modified if self.sends_last_modified else None,
        )

    def wants_check(self, chance: float, share: float) -> bool:
        """Whether the conditions of this request should be left out.

        Args:
            chance: uniform in [0, 1), the caller's.
            share: the most of them to leave out once the origin is known; 0: never any.
        """
        if share <= 0.0:
            return False
        if self.checks < YOUNG_CHECKS:
            return chance < max(YOUNG_SHARE, share)
        detected = max(self.etag.detected, self.last_modified.detected)
        return chance < (share * PROVEN_SHARE if detected >= PROVEN_DETECTIONS else share)

    def changed_at(self, exchange: Exchange) -> float | None:
        """Return the instant of the last change that an answer tells, by our clock.

        Args:
            exchange: the answer; one without Last-Modified (304) speaks of the one held.

        Returns:
            Unix seconds, at most the instant of the answer; None where nothing can be believed.
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
        """Learn from one answered visit."""
        if self.seen_at:
            self._forget(exchange.at - self.seen_at)
        self.seen_at = exchange.at
        self._sample_clock(exchange)
        self._check_last_modified(exchange)
        self.checks = min(self.checks + exchange.check, float(YOUNG_CHECKS))
        if exchange.not_modified:
            # A server that knows the ETag does not look at the date.
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
        # Cut to the second, a Date is on average half a second early.
        self.skews.append(sent_at + 0.5 + age_s - exchange.at)
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
        """Read the stored form; nothing, or another version's, is an origin not yet known."""
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
    """Return what an HTTP date names; each is asked for several times a visit."""
    return _cached_date(text, now // _YEAR_S)


@lru_cache(maxsize=2048)
def _cached_date(text: str, year: float) -> float | None:
    # The time of asking only decides about the century of a year of two digits.
    return parse_http_date(text, (year + 0.5) * _YEAR_S)


def _opaque(etag: str) -> str:
    """Return a tag for the weak comparison of RFC 9110, section 8.8.3.2."""
    return etag.strip().removeprefix("W/")


def _no_later(received: str, held: str, now: float) -> bool:
    """Whether a server that goes by dates would call the copy held the present one."""
    received_at, held_at = _parse_date(received, now), _parse_date(held, now)
    if received_at is None or held_at is None:
        return received.strip() == held.strip()
    return received_at <= held_at


def _is_ahead(modified_at: float, exchange: Exchange) -> bool:
    """Whether a Last-Modified lies in the future, by the server's own clock where it tells it."""
    sent_at = _parse_date(exchange.date, exchange.at) if exchange.date else None
    return modified_at > (exchange.at if sent_at is None else sent_at) + AHEAD_S


def _age_s(text: str | None) -> float | None:
    """Return the Age of an answer, 0 without one, None where it is no number of seconds."""
    if text is None:
        return 0.0
    digits = text.strip()
    return float(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else None
