"""Rules of robots.txt and of robots tags.

protego does the matching (longest rule wins, `*` and `$`, allow wins a tie), as search engines do.
The group is chosen here, before protego sees the text:

1. A group is ours if a user-agent line contains our whole product token, in any case (RFC 9309
   section 2.2.1). Groups for us are merged; the groups for `*` count only if none is for us.
   protego alone would also apply a group for `craw` to `crawld`.
2. Only our rules reach protego, as one group: a hostile file with tens of thousands of agents would
   cost it minutes.
3. A file is read up to `ROBOTS_MAX_BYTES`, cut after its last complete line. Anything that is not a
   rule (binary data, an HTML page) is ignored.
4. /robots.txt itself is always allowed.

Source: RFC 9309 (Koster, Illyes, Zeller, Sassman 2022), sections 2.2 to 2.5. Crawl-delay,
Request-rate and Visit-time are older conventions. The period of a Request-rate is ignored: the rate
holds all day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import time
from enum import StrEnum

from protego import Protego

from crawld.core.url import target_of

ROBOTS_MAX_BYTES = 500 * 1024
"""Bytes read of a file: the least that RFC 9309 section 2.5 demands."""

ROBOTS_MAX_AGE_S = 86_400
"""A copy is used for at most a day (section 2.4)."""

ROBOTS_MAX_REDIRECTS = 5
"""Redirects followed: the least that section 2.3.1.2 demands."""

MAX_SITEMAPS = 1_000
"""Sitemap lines read from one file."""

MAX_TAG_LENGTH = 4_096
"""Characters read of one robots tag."""

_VALUED_DIRECTIVES = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_AGENT_LINE = re.compile(r"user[- ]?agent(?:\s*:|\s)\s*(.*)", re.IGNORECASE).match
_SITEMAP_LINE = re.compile(r"site-?maps?(?:\s*:|\s)\s*(\S+)", re.IGNORECASE).match
# Includes the misspellings of "disallow" that protego accepts.
_RULE_LINE = re.compile(
    r"(?:d[ials]+[ao]w|allow|crawl[- ]delay|request[- ]rate|visit[- ]time)\s*(?::|\s)",
    re.IGNORECASE,
).match
_LINE_END = re.compile(r"\r\n|\r|\n")
# protego splits at every Unicode line end; these characters would split a rule or hide in one.
_JUNK = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]")


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
    """

    crawl_delay_s: float | None = None
    request_rate_delay_s: float | None = None
    visit_time: tuple[int, int] | None = None
    sitemaps: tuple[str, ...] = ()
    names_agent: bool = False
    _rules: Protego | None = None
    _closed: bool = False

    @classmethod
    def parse(cls, text: bytes | str, agent: str) -> Robots:
        """Return the rules of a robots.txt for our agent; any text is accepted.

        Args:
            agent: our product token, or a User-Agent header that starts with it.
        """
        found = _sort_lines(_lines(text), _product_token(agent))
        group = found.ours if found.named else found.for_any
        rules = Protego.parse("\n".join(("User-agent: *", *group)))
        rate = rules.request_rate("*")
        return cls(
            crawl_delay_s=rules.crawl_delay("*"),
            request_rate_delay_s=None if rate is None else rate.seconds / rate.requests,
            visit_time=_closed_span(rules),
            sitemaps=tuple(found.sitemaps),
            names_agent=found.named,
            _rules=rules,
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
        if target_of(url) == "/robots.txt":
            return True
        if self._rules is None:
            return not self._closed
        return self._rules.can_fetch(url, "*")


def _product_token(agent: str) -> str:
    found = _TOKEN.match(agent.strip())
    return found[0].lower() if found else ""


def _lines(text: bytes | str) -> list[str]:
    """Return the decoded lines, without comments, blank lines and control characters."""
    body = text.encode(errors="replace") if isinstance(text, str) else text
    if len(body) > ROBOTS_MAX_BYTES:
        head = body[:ROBOTS_MAX_BYTES]
        # A truncated line could forbid or allow other paths than the whole line.
        body = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
    # UTF-16 from a text editor has a byte order mark; everything else is read as UTF-8.
    wide = body.startswith((b"\xff\xfe", b"\xfe\xff"))
    decoded = body.decode("utf-16" if wide else "utf-8", errors="replace")
    lines = (_JUNK.sub("", line).partition("#")[0].strip() for line in _LINE_END.split(decoded))
    return [line for line in lines if line]


@dataclass(slots=True)
class _GroupLines:
    """Rule lines by group; `named` is set if any group names our agent."""

    ours: list[str]
    for_any: list[str]
    sitemaps: dict[str, None]
    named: bool = False


def _sort_lines(lines: Iterable[str], token: str) -> _GroupLines:
    found = _GroupLines([], [], {})
    for_us = for_all = in_heading = False
    for line in lines:
        if heading := _AGENT_LINE(line):
            # Agent lines in a row share the rules below them; an unknown line does not separate
            # them.
            if not in_heading:
                for_us = for_all = False
            in_heading = True
            for_all = for_all or set(heading[1]) == {"*"}
            if token and _product_token(heading[1].replace("*", "")) == token:
                for_us = found.named = True
        elif sitemap := _SITEMAP_LINE(line):
            if len(found.sitemaps) < MAX_SITEMAPS:
                found.sitemaps[sitemap[1]] = None
        elif _RULE_LINE(line):
            in_heading = False
            if for_us:
                found.ours.append(line)
            if for_all:
                found.for_any.append(line)
    return found


def _closed_span(rules: Protego) -> tuple[int, int] | None:
    visits = rules.visit_time("*")
    if visits is None or visits.start_time == visits.end_time:
        return None
    return _second_of_day(visits.end_time), _second_of_day(visits.start_time)


def _second_of_day(clock: time) -> int:
    return clock.hour * 3_600 + clock.minute * 60


@dataclass(frozen=True, slots=True)
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
