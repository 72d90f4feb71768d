"""Reads RSS and Atom feeds to find pages that are new or changed since the last read.

A feed lists the latest entries. An entry counts once, by a hash of its id and date, kept between
two reads (`FeedWindow`). If every entry is new, older entries may have been missed.

An entry without a date, or with one in the future, changed at some time since the last read. An
entry dated in a wrong time zone is early or late by hours; the reliability measurement of the
source detects that.

Entries of MediaWiki feeds link to differences between revisions; they are mapped to the page.

feedparser parses the document and drops its entity definitions; the input size is limited.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

import feedparser
import xxhash

from crawld.core.url import canonicalize, split_url
from crawld.core.wiki_title import encode_title
from crawld.errors import InvalidUrlError
from crawld.sources.listed_page import CLOCK_TOLERANCE_S, ListedPage, TimeSpan
from crawld.sources.mediawiki_rows import text_of

MAX_FEED_BYTES = 4 * 1024 * 1024
"""Limit of a feed; most take tens of kilobytes."""

MAX_ENTRIES = 2_000
"""Entries read of one feed, from the start: feeds begin with the newest."""

_XML = re.compile(rb"<(?:\?xml|rss|feed|rdf:RDF)[\s>:?]", re.IGNORECASE).search
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)[\s>]", re.IGNORECASE).search
_SNIFF_BYTES = 2_048


class FeedError(Exception):
    """A document is not a feed; the message is for people."""


@dataclass(frozen=True, slots=True)
class Feed:
    """The content of a feed.

    Attributes:
        entries: in the feed's order, newest first, by a hash of id and date; another hash is
            another change.
        junk: number of entries without a URL that can be fetched.
        ttl_s: time within which the feed should not be fetched again; None if not given.
    """

    entries: Mapping[int, ListedPage]
    junk: int = 0
    ttl_s: float | None = None


def read_feed(body: bytes, url: str) -> Feed:
    """Read a feed; `url` is where it came from, for relative links.

    Raises:
        FeedError: not a feed.
    """
    start = body[:_SNIFF_BYTES]
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
    home = text_of(parsed.feed, "link")
    found: dict[int, ListedPage] = {}
    junk = 0
    for row in parsed.entries[:MAX_ENTRIES]:
        address = _page_of(text_of(row, "link") or text_of(row, "id"), home, url)
        if address is None:
            junk += 1
            continue
        stamp = _stamp(row)
        key = _key(text_of(row, "id") or address, stamp)
        changed = None if stamp is None else TimeSpan(stamp, stamp + 1.0)
        found.setdefault(key, ListedPage(address, changed))
    if parsed.bozo and not found and not junk:
        raise FeedError(f"broken: {parsed.get('bozo_exception', 'unreadable')}"[:200])
    return Feed(found, junk, _ttl_s(parsed.feed))


def _page_of(written: str, home: str, base: str) -> str | None:
    """Return the URL of the page that an entry's link refers to."""
    if not written:
        return None
    try:
        url = canonicalize(written, base)
        return _wiki_page(url, canonicalize(home, base)) or url if home else url
    except InvalidUrlError:
        return None


def _wiki_page(url: str, home: str) -> str | None:
    """Return the article for a link into the history of a wiki page; None for other links.

    The feed's own link is also an article, `Special:RecentChanges` in the wiki's language: the part
    before its title precedes every title.
    """
    path, _, query = split_url(url).target.partition("?")
    if not path.endswith("/index.php") or split_url(url).origin != split_url(home).origin:
        return None
    named = dict(parse_qsl(query, max_num_fields=20))
    title = named.get("title")
    if not title or not named.keys() & {"diff", "oldid", "curid"}:
        return None
    before, _, special = home.rpartition("/")
    if ":" not in special or "?" in home:
        return None
    return canonicalize(f"{before}/{encode_title(title)}")


def _stamp(row: dict[str, object]) -> float | None:
    # feedparser's own `get` returns one for the other, with a warning.
    values = [dict.get(row, name) for name in ("updated_parsed", "published_parsed")]
    times = [
        float(calendar.timegm(value))
        for value in values
        if isinstance(value, time.struct_time) and value.tm_year >= 1970
    ]
    return max(times, default=None)


def _key(name: str, stamp: float | None) -> int:
    return xxhash.xxh3_64_intdigest(f"{name}\n{stamp}".encode())


def _ttl_s(row: Mapping[str, object]) -> float | None:
    text = text_of(row, "ttl").strip()
    return min(int(text) * 60.0, 86_400.0) if text.isdecimal() and len(text) < 8 else None


class FeedWindow:
    """The entries of a feed at the last read, to find the new ones.

    Attributes:
        keys: of the entries; to store until the next read.
        gap: whether all entries of a read were new, so that some may be missed.
    """

    def __init__(self, keys: Iterable[int] = ()) -> None:
        self.keys = frozenset(keys)
        self.gap = False

    def new_entries(self, feed: Feed, now: float, last_look_at: float | None) -> list[ListedPage]:
        """Return the entries that are new since the last read, each page once, its latest change.

        Without a last read (`last_look_at` None) all entries are new, and only their dates count.
        """
        fresh = [entry for key, entry in feed.entries.items() if key not in self.keys]
        self.gap = bool(self.keys) and bool(feed.entries) and len(fresh) == len(feed.entries)
        latest: dict[str, ListedPage] = {}
        for entry in fresh:
            if entry.changed is None or entry.changed.first > now + CLOCK_TOLERANCE_S:
                since = None if last_look_at is None else TimeSpan(min(last_look_at, now), now)
                entry = entry._replace(changed=since)
            held = latest.get(entry.url)
            if held is None or (held.changed or (0.0,)) < (entry.changed or (0.0,)):
                latest[entry.url] = entry
        self.keys = frozenset(feed.entries)
        return list(latest.values())
