"""Reading RSS and Atom feeds: which pages are new or changed since the last look.

A feed is a window over the latest entries. An entry counts once: by its id and the date it bears,
of which a hash is kept between two looks (`FeedWindow`). A feed none of whose entries was there
before has moved on by more than its window, so something may have been missed.

Dates are helped where they are wrong: an entry without one, or with one in the future, changed at
some time since the last look. An entry that bears the date of another time zone is late or early by
hours; that is for the reliability of the source to find.

MediaWiki's feeds name differences between revisions; they are led back to the page.

The parsing is feedparser's, which reads what is out there; entities of a document's own are dropped
by it, and what it is given has a bound.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

import feedparser
import xxhash

from crawld.core.url import canonicalize, parse
from crawld.errors import InvalidUrlError
from crawld.sources.listed_page import CLOCK_TOLERANCE_S, ListedPage, TimeSpan

MAX_FEED_BYTES = 4 * 1024 * 1024
"""A feed as read; most take some tens of kilobytes."""

MAX_ENTRIES = 2_000
"""Entries of one feed that are read, the first ones: feeds begin with the newest."""

_SAFE = ";@$!*(),/~:"
_XML = re.compile(rb"<(?:\?xml|rss|feed|rdf:RDF)[\s>:?]", re.IGNORECASE).search
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE).search
_LOOK_BYTES = 2_048


class FeedError(Exception):
    """Why a document is no feed; the text is for a person."""


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry of a feed.

    Attributes:
        entry: the page and when it is said to have changed.
        key: hash of its id and date; another one is another change.
    """

    entry: ListedPage
    key: int


@dataclass(frozen=True, slots=True)
class Feed:
    """What a feed says.

    Attributes:
        entries: newest first, as written.
        junk: entries without a URL that can be fetched.
        ttl_s: how long it asks not to be asked again, None if it says nothing.
    """

    entries: tuple[FeedEntry, ...]
    junk: int = 0
    ttl_s: float | None = None


def read_feed(body: bytes, url: str) -> Feed:
    """Return what a feed says.

    Args:
        body: the document as received, at most `MAX_FEED_BYTES`.
        url: where it came from, for relative links.

    Raises:
        FeedError: it is none.
    """
    start = body[:_LOOK_BYTES]
    if not _XML(start) and _HTML(start):
        raise FeedError("it is an HTML page")
    parsed = feedparser.parse(
        body[:MAX_FEED_BYTES],
        response_headers={"content-type": "application/xml", "content-location": url},
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    if not parsed.get("version"):
        raise FeedError("it is neither RSS nor Atom")
    home = _text(parsed.feed, "link")
    found: dict[int, FeedEntry] = {}
    junk = 0
    for row in parsed.entries[:MAX_ENTRIES]:
        address = _page_of(_text(row, "link") or _text(row, "id"), home, url)
        if address is None:
            junk += 1
            continue
        stamp = _stamp(row)
        key = _key(_text(row, "id") or address, stamp)
        changed = None if stamp is None else TimeSpan(stamp, stamp + 1.0)
        found.setdefault(key, FeedEntry(ListedPage(address, changed), key))
    if parsed.bozo and not found and not junk:
        raise FeedError(f"broken: {parsed.get('bozo_exception', 'unreadable')}"[:200])
    return Feed(tuple(found.values()), junk, _ttl_s(parsed.feed))


def _page_of(written: str, home: str, base: str) -> str | None:
    """Return the page that an entry's link is about."""
    if not written:
        return None
    try:
        url = canonicalize(written, base)
        return _wiki_page(url, canonicalize(home, base)) or url if home else url
    except InvalidUrlError:
        return None


def _wiki_page(url: str, home: str) -> str | None:
    """Return the article of a link into the history of a wiki page; None: it is no such link.

    The feed's own link is an article too, `Special:RecentChanges` in the wiki's language: what
    stands before its title stands before every title.
    """
    path, _, query = parse(url).target.partition("?")
    if not path.endswith("/index.php") or parse(url).origin != parse(home).origin:
        return None
    named = dict(parse_qsl(query, max_num_fields=20))
    title = named.get("title")
    if not title or not named.keys() & {"diff", "oldid", "curid"}:
        return None
    before, _, special = home.rpartition("/")
    if ":" not in special or "?" in home:
        return None
    return canonicalize(f"{before}/{quote(title.replace(' ', '_'), safe=_SAFE)}")


def _stamp(row: dict[str, object]) -> float | None:
    # Asked for by its own methods, feedparser would give one for the other, with a warning.
    values = [dict.get(row, name) for name in ("updated_parsed", "published_parsed")]
    instants = [
        float(calendar.timegm(value))
        for value in values
        if isinstance(value, time.struct_time) and value.tm_year >= 1970
    ]
    return max(instants, default=None)


def _key(name: str, stamp: float | None) -> int:
    return xxhash.xxh3_64_intdigest(f"{name}\n{stamp}".encode())


def _ttl_s(row: Mapping[str, object]) -> float | None:
    text = _text(row, "ttl").strip()
    return min(int(text) * 60.0, 86_400.0) if text.isdecimal() and len(text) < 8 else None


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


class FeedWindow:
    """What a feed held at the last look, and what is new at this one.

    Attributes:
        gap: whether the window has moved on past everything it held before.
    """

    def __init__(self, keys: Iterable[int] = ()) -> None:
        self._keys = frozenset(keys)
        self.gap = False

    def new_entries(self, feed: Feed, now: float, last_look_at: float | None) -> list[ListedPage]:
        """Return the entries that were not there before, each page once with its latest change.

        Args:
            feed: as read now.
            now: Unix seconds.
            last_look_at: when it was read before, None if never; all its entries are news then, to
                be weighed by their dates alone.
        """
        fresh = [row for row in feed.entries if row.key not in self._keys]
        self.gap = bool(self._keys) and bool(feed.entries) and len(fresh) == len(feed.entries)
        latest: dict[str, ListedPage] = {}
        for row in fresh:
            entry = row.entry
            if entry.changed is None or entry.changed.first > now + CLOCK_TOLERANCE_S:
                since = None if last_look_at is None else TimeSpan(min(last_look_at, now), now)
                entry = entry._replace(changed=since)
            held = latest.get(entry.url)
            if held is None or (held.changed or (0.0,)) < (entry.changed or (0.0,)):
                latest[entry.url] = entry
        self._keys = frozenset(row.key for row in feed.entries)
        return list(latest.values())

    @property
    def keys(self) -> list[int]:
        """What to keep until the next look."""
        return sorted(self._keys)
