"""The words that people read for values of the program: one table per kind of value.

Tables, live views and messages use these; JSON and the log keep the values. A label fits into a
cell; `crawld/core/why/words.py` has sentences for the same values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from crawld.core.display import count_text
from crawld.core.event import EventKind
from crawld.core.page import Failure, Outcome, PageState

NEW: Final = "new"
"""A first copy, which is stored with the outcome `changed`."""

OUTCOME_WORDS: Final[Mapping[Outcome, str]] = {
    Outcome.CHANGED: "changed",
    Outcome.UNCHANGED: "unchanged",
    Outcome.NOT_MODIFIED: "not modified",
    Outcome.MOVED: "moved",
    Outcome.GONE: "not found",
    Outcome.SOFT_GONE: "soft 404",
    Outcome.BLOCKED: "refused",
    Outcome.FAILED: "failed",
}

STATE_WORDS: Final[Mapping[PageState, str]] = {
    PageState.DISCOVERED: "discovered",
    PageState.VISITED: "visited",
    PageState.EXCLUDED: "excluded by robots.txt",
    PageState.GONE: "gone",
    PageState.SUSPENDED: "suspended on a replica",
}

EVENT_WORDS: Final[Mapping[EventKind, str]] = {
    EventKind.NEW: "New",
    EventKind.CHANGED: "Changed",
    EventKind.MOVED: "Moved",
    EventKind.GONE: "Gone",
    EventKind.BACK: "Back",
}
"""Words that begin the headline of an event."""

FAILURE_WORDS: Final[Mapping[str, str]] = {
    Failure.DNS: "host name not found",
    Failure.ADDRESS_REFUSED: "private address not allowed",
    Failure.CONNECT: "no connection",
    Failure.TLS: "TLS error",
    Failure.TIMEOUT: "timeout",
    Failure.PROTOCOL: "HTTP protocol error",
    Failure.TRUNCATED: "connection ended early",
    Failure.TOO_LARGE: "too large",
    Failure.DECODING: "cannot be decompressed",
    Failure.WRONG_TYPE: "media type not stored",
    Failure.BAD_REDIRECT: "bad redirect",
    Failure.HTTP_STATUS: "error status",
    Failure.ROBOTS: "noarchive",
    Failure.UNAUTHORIZED: "access refused",
    Failure.RATE_LIMITED: "too many requests",
    Failure.UNAVAILABLE: "server unavailable",
    Failure.MEMORY: "no memory",
    Failure.UNWANTED_FORM: "not in the wanted form",
    Failure.PLUGIN: "refused by a plug-in",
}

REFUSAL_WORDS: Final[Mapping[str, str]] = {
    "site_cap": "over max_pages",
    "host_cap": "over max_pages_per_host",
    "requisite_cap": "over max_requisites",
    "collision": "same key as another URL",
    "max_links_per_page": "over max_links_per_page",
    "max_hosts_per_page": "too many hosts on a page",
    "max_hosts_per_domain": "too many hosts of a domain",
    "purged": "purged",
    "robots": "forbidden by robots.txt",
    "scheme": "neither http nor https",
    "exclude": "excluded by a rule",
    "include": "included by no rule",
    "depth": "deeper than max_depth",
    "host": "host outside the site",
    "requisite_host": "host outside requisite_hosts",
    "wiki_part": "outside the part of the wiki",
    "wiki_talk": "discussion of a wiki",
    "wiki_view": "view of a wiki page",
    "length": "URL too long",
    "segments": "path too deep",
    "parameters": "too many parameters",
    "repetition": "repeats itself",
    "calendar": "endless calendar",
    "growth": "grows without new content",
    "plugin": "refused by a plug-in",
}
"""Labels of reasons for which URLs are not admitted: scope, traps and limits."""

PAUSE_WORDS: Final[Mapping[str, str]] = {
    "network": "no network",
    "disk": "database cannot be written",
    "disk_room": "disk nearly full",
    "operator": "by crawlctl pause",
    "drain": "after crawlctl drain",
}

ROBOTS_WORDS: Final[Mapping[str | None, str]] = {
    None: "not read yet",
    "open": "none",
    "rules": "has rules",
    "closed": "cannot be read",
}

TRUST_WORDS: Final[Mapping[str, str]] = {
    "trusted": "trusted",
    "lies": "not trusted: stays when the page changes",
    "restless": "not trusted: changes by itself",
    "in_future": "not trusted: in the future",
}

TROUBLE_WORDS: Final[Mapping[str, str]] = {
    **FAILURE_WORDS,
    "lagged": "database of the wiki lags",
    "read_only": "wiki is read-only",
    "unreachable": "no connection",
    "closed": "API refuses access",
    "forbidden": "forbidden by robots.txt",
    "moved": "moved",
    "not_json": "no JSON",
    "too_many": "too many values",
    "bad_cursor": "cursor refused",
    "broken": "unreadable answer",
    "broken_off": "ended by this side",
    "ended": "ended by the server",
    "held": "waits",
    "robots": "forbidden by robots.txt",
    "no_feed": "not a feed",
}
"""Labels of what keeps a source of hints or the API of a wiki from answering."""


def label(words: Mapping[str, str], value: str | None) -> str:
    """Return the label of a value; one that has none is shown without underscores, None as ""."""
    if value is None:
        return ""
    return words.get(value) or value.replace("_", " ")


def trouble_label(value: str | None) -> str:
    """Return the label of a trouble of a source: `status_503` has its number."""
    return label(TROUBLE_WORDS, value)


def labels(words: Mapping[str, str], values: Iterable[str]) -> str:
    """Return the labels of values, sorted by value."""
    return ", ".join(label(words, value) for value in sorted(values))


def outcome_counts(counts: Mapping[Outcome, int], new: int) -> str:
    """Return visits by outcome as text, new pages apart from changed ones.

    >>> outcome_counts({Outcome.CHANGED: 5, Outcome.FAILED: 1, Outcome.MOVED: 0}, new=3)
    '3 new, 2 changed, 1 failed'
    """
    parts = [(NEW, new)]
    for outcome, word in OUTCOME_WORDS.items():
        found = counts.get(outcome, 0)
        parts.append((word, max(found - new, 0) if outcome is Outcome.CHANGED else found))
    return _counted(parts)


def state_counts(counts: Mapping[PageState, int]) -> str:
    """Return pages by state as text."""
    return _counted([(word, counts.get(state, 0)) for state, word in STATE_WORDS.items()])


def _counted(parts: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{count_text(n)} {word}" for word, n in parts if n) or "none"
