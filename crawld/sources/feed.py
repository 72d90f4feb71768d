"""Reads RSS and Atom feeds to find pages that are new or changed since the last read.

A feed lists the latest entries. An entry counts once, by a hash of its id and date, kept between
two reads (`FeedWindow`). If every entry is new, older entries may have been missed.

An entry without a date, or with one in the future, changed at some time since the last read. An
entry dated in a wrong time zone is early or late by hours; the reliability measurement of the
source detects that.

Entries of MediaWiki feeds link to differences between revisions; they are mapped to the page.

Feeds need not be well-formed. Only the elements that tell of pages are read, by a scanner that is
linear whatever it is given; entities that the document declares are not expanded.

Source: RSS 0.9x, 1.0 and 2.0; Atom 0.3 and 1.0 (RFC 4287).
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import xxhash

from crawld.core.content import media
from crawld.core.content.xml_scan import MarkupPiece, attributes, scan
from crawld.core.units import DAY_S
from crawld.core.url import canonicalize, split_url
from crawld.core.wiki_title import encode_title
from crawld.errors import InvalidUrlError
from crawld.sources.listed_page import CLOCK_TOLERANCE_S, ListedPage, TimeSpan, read_date

MAX_FEED_BYTES = 4 * 1024 * 1024
"""Limit of a feed; most take tens of kilobytes."""

MAX_ENTRIES = 2_000
"""Entries read of one feed, from the start: feeds begin with the newest."""

MAX_TEXT_LENGTH = 8_192
"""Characters of one element that are read."""

MAX_DEPTH = 64
"""Elements that are open at a time; deeper ones are not told apart."""

_ROOTS = frozenset({"rss", "feed", "rdf", "channel"})
_PARENTS = frozenset({"channel", "feed", "rdf", "rss"})
_ENTRIES = frozenset({"item", "entry"})
_UPDATED = frozenset({"updated", "modified", "date"})
_PUBLISHED = frozenset({"published", "pubdate", "issued"})
_ENTRY_FIELDS = frozenset({"link", "id", "guid"}) | _UPDATED | _PUBLISHED
_FEED_FIELDS = frozenset({"link", "ttl"})
_EPOCH_S = 0.0


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


@dataclass(slots=True)
class _Entry:
    """An entry as written: `stamp` is its latest date, Unix seconds."""

    link: str = ""
    name: str = ""
    stamp: float | None = None


@dataclass(slots=True)
class _Document:
    """Reads the elements of a feed.

    Attributes:
        root: name of the first element, None before it.
        home: the feed's own link.
        entries: complete entries, and one that the end of the document cuts.
    """

    root: str | None = None
    home: str = ""
    ttl: str = ""
    entries: list[_Entry] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _entry: _Entry | None = None
    _field: str | None = None
    _text: list[str] = field(default_factory=list)
    _length: int = 0
    _guid_is_link: bool = False

    def read(self, text: str) -> None:
        """Read the document up to `MAX_ENTRIES` entries."""
        for tag in scan(text):
            if tag.kind == "text":
                if self._field is not None and self._length < MAX_TEXT_LENGTH:
                    self._add(tag)
            elif tag.kind == "end":
                self._end(tag.name)
            else:
                self._start(tag)
                if self.root not in _ROOTS or len(self.entries) > MAX_ENTRIES:
                    break
        if self._field is not None:
            self._take(self._field)
        del self.entries[MAX_ENTRIES:]

    def _add(self, tag: MarkupPiece) -> None:
        text = tag.text[:MAX_TEXT_LENGTH]
        if not text:
            return
        self._text.append(text if tag.plain else html.unescape(text))
        self._length += len(text)

    def _start(self, tag: MarkupPiece) -> None:
        name = tag.name
        if self.root is None:
            self.root = name
        if name in _ENTRIES and self._begin_entry():
            self._entry = _Entry(name=_value(attributes(tag.text), "rdf:about"))
            self.entries.append(self._entry)
        elif self._is_wanted(name):
            self._begin_field(tag)
        if tag.kind == "empty":
            self._end(name)

    def _begin_entry(self) -> bool:
        """Whether an entry may begin here; one that was not closed ends."""
        if self._entry is not None and self._open and self._open[-1] in _ENTRIES:
            self._close(self._open[-1])
        if self._entry is not None or not (self._open and self._open[-1] in _PARENTS):
            return False
        self._open.append("item")
        return True

    def _is_wanted(self, name: str) -> bool:
        parent = self._open[-1] if self._open else ""
        if len(self._open) < MAX_DEPTH:
            self._open.append(name)
        if self._entry is not None:
            return parent in _ENTRIES and name in _ENTRY_FIELDS
        return parent in _PARENTS and name in _FEED_FIELDS

    def _begin_field(self, tag: MarkupPiece) -> None:
        given = attributes(tag.text)
        if tag.name == "link" and "href" in given:
            kind = given.get("type", "text/html")
            if given.get("rel", "alternate") == "alternate" and "html" in kind:
                self._set_link(_value(given, "href"))
            return
        self._field = tag.name
        self._text.clear()
        self._length = 0
        self._guid_is_link = given.get("ispermalink", "true") == "true"

    def _end(self, name: str) -> None:
        if name in _ENTRIES:
            name = "item"
        if self._field is not None and (name == self._field or name == "item"):
            self._take(self._field)
        if self._open and self._open[-1] == name:
            self._close(name)
        elif name in self._open:
            # Elements that were not closed end with the one around them.
            while self._open[-1] != name:
                self._open.pop()
            self._close(name)

    def _close(self, name: str) -> None:
        self._open.pop()
        if name in _ENTRIES and not any(each in _ENTRIES for each in self._open):
            self._entry = None

    def _take(self, name: str) -> None:
        """Keep the text of an element."""
        self._field = None
        text = "".join(self._text).strip()[:MAX_TEXT_LENGTH]
        entry = self._entry
        if name == "link":
            self._set_link(text)
        elif entry is None:
            self.ttl = text
        elif name in ("id", "guid"):
            entry.name = text
            if name == "guid" and self._guid_is_link and not entry.link:
                entry.link = text
        else:
            span = read_date(text)
            if span is not None and span.first >= _EPOCH_S:
                # Whole seconds: the keys of entries are stored.
                entry.stamp = max(float(int(span.first)), entry.stamp or 0.0)

    def _set_link(self, link: str) -> None:
        if self._entry is None:
            self.home = link or self.home
        else:
            self._entry.link = link or self._entry.link


def _value(given: Mapping[str, str], name: str) -> str:
    return html.unescape(given.get(name, "")[:MAX_TEXT_LENGTH]).strip()


def read_feed(body: bytes, url: str) -> Feed:
    """Read a feed; `url` is where it came from, for relative links.

    Raises:
        FeedError: not a feed.
    """
    document = _Document()
    document.read(media.decode(body[:MAX_FEED_BYTES]).text)
    if document.root == "html":
        raise FeedError("it is an HTML page")
    if document.root not in _ROOTS:
        raise FeedError("it is neither RSS nor Atom")
    found: dict[int, ListedPage] = {}
    junk = 0
    for entry in document.entries:
        address = _page_of(entry.link or entry.name, document.home, url)
        if address is None:
            junk += 1
            continue
        stamp = entry.stamp
        changed = None if stamp is None else TimeSpan(stamp, stamp + 1.0)
        found.setdefault(_key(entry.name or address, stamp), ListedPage(address, changed))
    return Feed(found, junk, _ttl_s(document.ttl))


def _page_of(written: str, home: str, base: str) -> str | None:
    """Return the URL of the page that an entry's link refers to."""
    if not written:
        return None
    try:
        url = canonicalize(written, base)
        return _wiki_page(url, canonicalize(home, base)) or url if home else url
    except InvalidUrlError:
        return None


def _named(query: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(query, max_num_fields=20))
    except ValueError:  # more fields
        return {}


def _wiki_page(url: str, home: str) -> str | None:
    """Return the article for a link into the history of a wiki page; None for other links.

    The feed's own link is also an article, `Special:RecentChanges` in the wiki's language: the part
    before its title precedes every title.
    """
    path, _, query = split_url(url).target.partition("?")
    if not path.endswith("/index.php") or split_url(url).origin != split_url(home).origin:
        return None
    named = _named(query)
    title = named.get("title")
    if not title or not named.keys() & {"diff", "oldid", "curid"}:
        return None
    before, _, special = home.rpartition("/")
    if ":" not in special or "?" in home:
        return None
    return canonicalize(f"{before}/{encode_title(title)}")


def _key(name: str, stamp: float | None) -> int:
    return xxhash.xxh3_64_intdigest(f"{name}\n{stamp}".encode())


def _ttl_s(text: str) -> float | None:
    return min(int(text) * 60.0, DAY_S) if text.isdecimal() and len(text) < 8 else None


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
