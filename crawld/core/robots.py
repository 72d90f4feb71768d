"""Rules of robots.txt and of robots tags.

`robots_rules.py` matches URLs. The file is read here, with the tolerance of search engines for
misspelled directives and a missing colon:

1. A group is ours if a user-agent line contains our whole product token, in any case (RFC 9309
   section 2.2.1). Groups for us are merged; the groups for `*` count only if none is for us.
2. A file is read up to `ROBOTS_MAX_BYTES`, cut after its last complete line. Anything that is not a
   rule (binary data, an HTML page) is ignored.
3. /robots.txt itself is always allowed.

Source: RFC 9309 (Koster, Illyes, Zeller, Sassman 2022), sections 2.2 to 2.5. Crawl-delay,
Request-rate and Visit-time are older conventions. The period of a Request-rate is ignored: the rate
holds all day.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar

from crawld.core.robots_rules import RobotsRules, deciding_rule
from crawld.core.url import target_of
from crawld.core.value_type import value_type

ROBOTS_MAX_BYTES = 500 * 1024
"""Bytes read of a file: the least that RFC 9309 section 2.5 demands."""

ROBOTS_MAX_AGE_S = 86_400
"""A copy is used for at most a day (section 2.4)."""

ROBOTS_FRESH_S = ROBOTS_MAX_AGE_S - 60
"""A turn that begins with a copy of this age sends its request before the day is over."""

ROBOTS_MAX_REDIRECTS = 5
"""Redirects followed: the least that section 2.3.1.2 demands."""

MAX_SITEMAPS = 1_000
"""Sitemap lines read from one file."""

MAX_TAG_LENGTH = 4_096
"""Characters read of one robots tag."""

_VALUED_DIRECTIVES = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)

_DISALLOW = ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")
_DIRECTIVES = {
    **dict.fromkeys(("user-agent", "useragent", "user agent"), "agent"),
    **dict.fromkeys(("sitemap", "sitemaps", "site-map", "site-maps"), "sitemap"),
    **dict.fromkeys(_DISALLOW, "disallow"),
    "allow": "allow",
    **dict.fromkeys(("crawl-delay", "crawl delay"), "delay"),
    **dict.fromkeys(("request-rate", "request rate"), "rate"),
    **dict.fromkeys(("visit-time", "visit time"), "visit"),
}
_PERIODS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_LINE_END = re.compile(r"\r\n|\r|\n")
# Control characters, and line ends of Unicode that would hide in a rule or split it.
_JUNK = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]+")


class RobotsVerdict(StrEnum):
    """Meaning of a response to /robots.txt: no rules, rules to parse, or fetch nothing."""

    OPEN = "open"
    RULES = "rules"
    CLOSED = "closed"


def judge_status(status: int | None) -> RobotsVerdict:
    """Return the meaning of the final status of a robots.txt fetch.

    Args:
        status: HTTP status after at most `ROBOTS_MAX_REDIRECTS`; a redirect status means too many
            or invalid redirects; None = no response.

    Source: RFC 9309 section 2.3.1. 429 counts as unreachable, like 5xx, and not as "unavailable": a
    server that requests less load has not permitted more. Failed redirects also count as
    unreachable; the RFC leaves the choice.
    """
    if status is None or status == 429:
        return RobotsVerdict.CLOSED
    if 200 <= status < 300:
        return RobotsVerdict.RULES
    return RobotsVerdict.OPEN if 400 <= status < 500 else RobotsVerdict.CLOSED


@dataclass(frozen=True, slots=True)
class Robots:
    """The robots.txt rules of one host for our agent.

    Attributes:
        crawl_delay_s: Crawl-delay as written, >= 0, finite; the caller caps it.
        request_rate_delay_s: seconds a request by Request-rate.
        visit_time: the part of the UTC day *outside* Visit-time, when no request is allowed, as
            (start, end) seconds; the end lies before the start if it crosses midnight.
        sitemaps: as written, in order, without repeats.
        names_agent: whether a group names our agent and not only `*`.
        rules: allow and disallow rules of our group; None: there is no file.
    """

    crawl_delay_s: float | None = None
    request_rate_delay_s: float | None = None
    visit_time: tuple[int, int] | None = None
    sitemaps: tuple[str, ...] = ()
    names_agent: bool = False
    rules: RobotsRules | None = None
    _closed: bool = False

    @property
    def size_bytes(self) -> int:
        """Memory, roughly."""
        rules = self.rules.size_bytes if self.rules else 0
        return 500 + rules + sum(100 + len(sitemap) for sitemap in self.sitemaps)

    @classmethod
    def parse(cls, text: bytes | str, agent: str) -> Robots:
        """Return the rules of a robots.txt for our agent; any text is accepted.

        Args:
            agent: our product token, or a User-Agent header that starts with it.
        """
        found = _sort_lines(_lines(text), _product_token(agent))
        group = found.group
        return cls(
            crawl_delay_s=_last_valid(_seconds, group.delays),
            request_rate_delay_s=_last_valid(_seconds_per_request, group.rates),
            visit_time=_closed_span(_last_valid(_visit_time, group.visits)),
            sitemaps=tuple(found.sitemaps),
            names_agent=found.named,
            rules=RobotsRules((each.allows, each.value) for each in group.rules),
        )

    @classmethod
    def open(cls) -> Robots:
        """Return the rules of a host without robots.txt: everything is allowed."""
        return cls()

    @classmethod
    def closed(cls) -> Robots:
        """Return the rules while robots.txt cannot be read: nothing is allowed."""
        return cls(_closed=True)

    def allowed(self, url: str) -> bool:
        """Return whether a canonical URL may be fetched."""
        target = target_of(url)
        if target == "/robots.txt":
            return True
        return not self._closed if self.rules is None else self.rules.allow(target)


class RobotsLine(NamedTuple):
    """The line of a robots.txt that decides about a URL; numbers begin at 1."""

    number: int
    text: str
    allows: bool


def deciding_line(text: bytes | str, agent: str, url: str) -> RobotsLine | None:
    """Return the first line that decides about a canonical URL for our agent.

    None if no rule matches, so that the URL is allowed; if it is forbidden nevertheless, a limit of
    `robots_rules.py` decides.

    Args:
        agent: our product token, or a User-Agent header that starts with it.
    """
    lines = _lines(text)
    rules = _sort_lines(lines, _product_token(agent)).group.rules
    numbers = [each.number for each in rules]
    at = deciding_rule([(each.allows, each.value) for each in rules], target_of(url))
    if at is None:
        return None
    written = next(line.text for line in lines if line.number == numbers[at])
    return RobotsLine(numbers[at], written, rules[at].allows)


def _product_token(agent: str) -> str:
    found = _TOKEN.match(agent.strip())
    return found[0].lower() if found else ""


class _Line(NamedTuple):
    """A line without its comment and control characters; `number` counts from 1."""

    number: int
    text: str


def _lines(text: bytes | str) -> list[_Line]:
    """Return the decoded lines, without those that are blank."""
    body = text.encode(errors="replace") if isinstance(text, str) else text
    if len(body) > ROBOTS_MAX_BYTES:
        head = body[:ROBOTS_MAX_BYTES]
        # A truncated line could forbid or allow other paths than the whole line.
        body = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
    # UTF-16 from a text editor has a byte order mark; everything else is read as UTF-8.
    wide = body.startswith((b"\xff\xfe", b"\xfe\xff"))
    decoded = body.decode("utf-16" if wide else "utf-8", errors="replace")
    lines = (line.partition("#")[0].strip() for line in _LINE_END.split(_JUNK.sub("", decoded)))
    return [_Line(number, line) for number, line in enumerate(lines, 1) if line]


def _directive(line: str) -> tuple[str, str] | None:
    """Return the kind and the value of a line; None: it is unknown."""
    name, colon, value = line.partition(":")
    kind = _DIRECTIVES.get(name.strip().lower()) if colon else None
    if kind is not None:
        return kind, value.strip()
    words = line.split()
    for count in range(1, min(len(words), 3)):
        kind = _DIRECTIVES.get(" ".join(words[:count]).lower())
        if kind is not None:
            # "Disallow /a: b" has a colon that ends another, unknown name.
            unknown = colon and kind not in ("agent", "sitemap") and not value[:1].strip()
            return None if unknown else (kind, " ".join(words[count:]))
    return None


class _Rule(NamedTuple):
    """An allow or disallow rule as written, and its line."""

    allows: bool
    value: str
    number: int


@dataclass(slots=True)
class _GroupLines:
    """The rules of a group, and the values of its other lines."""

    rules: list[_Rule] = field(default_factory=list)
    delays: list[str] = field(default_factory=list)
    rates: list[str] = field(default_factory=list)
    visits: list[str] = field(default_factory=list)

    def add(self, kind: str, value: str, number: int) -> None:
        if not value:
            return
        if kind in ("allow", "disallow"):
            self.rules.append(_Rule(kind == "allow", value, number))
        else:
            {"delay": self.delays, "rate": self.rates, "visit": self.visits}[kind].append(value)


@dataclass(slots=True)
class _SortedLines:
    """Lines by group; `named` is set if any group names our agent."""

    ours: _GroupLines
    for_any: _GroupLines
    sitemaps: dict[str, None]
    named: bool = False

    @property
    def group(self) -> _GroupLines:
        """The group that counts for us."""
        return self.ours if self.named else self.for_any


def _sort_lines(lines: Iterable[_Line], token: str) -> _SortedLines:
    found = _SortedLines(_GroupLines(), _GroupLines(), {})
    for_us = for_all = in_heading = False
    for number, line in lines:
        kind, value = _directive(line) or ("", "")
        if kind == "agent":
            # Agent lines in a row share the rules below them; an unknown line does not separate
            # them.
            if not in_heading:
                for_us = for_all = False
            in_heading = True
            for_all = for_all or (value != "" and not value.strip("*"))
            if token and _product_token(value.replace("*", "")) == token:
                for_us = found.named = True
        elif kind == "sitemap":
            if value and len(found.sitemaps) < MAX_SITEMAPS:
                found.sitemaps[value.split()[0]] = None
        elif kind:
            in_heading = False
            if for_us:
                found.ours.add(kind, value, number)
            if for_all:
                found.for_any.add(kind, value, number)
    return found


_Value = TypeVar("_Value")


def _last_valid(read: Callable[[str], _Value], values: Iterable[str]) -> _Value | None:
    """Return what `read` makes of the last value that it accepts."""
    last = None
    for value in values:
        try:
            last = read(value)
        except (ValueError, OverflowError):
            continue  # not a number, or none of this form
    return last


def _seconds(value: str) -> float:
    seconds = float(value)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(value)
    return seconds


def _seconds_per_request(value: str) -> float:
    """Return the seconds of "requests/seconds[smhd]"; a period of the day may follow."""
    rate, *period = value.split() if len(value.split()) == 2 else value.split()[:1]
    requests, seconds = rate.split("/")
    unit = _PERIODS.get(seconds[-1:].lower())
    count, span = int(requests), int(seconds[:-1] if unit else seconds)
    if count <= 0 or span <= 0:
        raise ValueError(value)
    if period:
        _day_period(period[0], "-")
    return span * (unit or 1) / count


def _visit_time(value: str) -> tuple[int, int]:
    """Return the seconds of the day of "0400-0845" or "0400 0845"."""
    try:
        return _day_period(value, "-")
    except ValueError:
        return _day_period(value, " ")


def _day_period(value: str, separator: str) -> tuple[int, int]:
    start, end = value.split(separator)
    return _second_of_day(start), _second_of_day(end)


def _second_of_day(value: str) -> int:
    """Return the second of the day of "HMM" or "HHMM"."""
    value = value.strip()
    if len(value) not in (3, 4) or not (value.isascii() and value.isdigit()):
        raise ValueError(value)
    hours, minutes = int(value[:-2]), int(value[-2:])
    if hours > 23 or minutes > 59:
        raise ValueError(value)
    return hours * 3_600 + minutes * 60


def _closed_span(visits: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the part of the day outside the visit time; None: there is none."""
    if visits is None or visits[0] == visits[1]:
        return None
    return visits[1], visits[0]


@value_type
class RobotsDirectives:
    """Directives of X-Robots-Tag headers or robots meta elements."""

    nofollow: bool = False
    noindex: bool = False
    noarchive: bool = False


def parse_robots_tags(values: Iterable[str], agent: str) -> RobotsDirectives:
    """Return the directives for our agent; if tags disagree, every restriction applies.

    Args:
        values: X-Robots-Tag headers, or the contents of `robots` meta elements.
        agent: our product token, or a User-Agent header that starts with it.

    A directive may be scoped ("otherbot: noindex, nofollow"): the scope lasts to the end of its
    value or to the next agent. Directives with values of their own (unavailable_after, max-snippet
    ...) do not concern a crawler.
    """
    token = _product_token(agent)
    directives: set[str] = set()
    for value in values:
        directives.update(_directives(value[:MAX_TAG_LENGTH], token))
    return RobotsDirectives(
        nofollow=not directives.isdisjoint({"nofollow", "none"}),
        noindex=not directives.isdisjoint({"noindex", "none"}),
        noarchive=not directives.isdisjoint({"noarchive", "nocache"}),
    )


def _directives(value: str, token: str) -> Iterator[str]:
    for_us = True
    for part in value.lower().split(","):
        name, colon, directive = part.partition(":")
        name = name.strip()
        if colon:
            if name in _VALUED_DIRECTIVES:
                continue
            for_us = name in ("*", "robots", token)
            name = directive.strip()
        if for_us:
            yield from name.split()
