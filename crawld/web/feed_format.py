"""Writes feeds: Atom (RFC 4287, paged by RFC 5005) and JSON Feed 1.1.

Titles, URLs and texts are of other people: every value is escaped, and characters that XML forbids
are replaced.
"""

from __future__ import annotations

import json
import math
import re
from html import escape
from typing import Any, Final, NamedTuple

from crawld.core.display import LAST_AT, iso_text
from crawld.core.event import EventKind

ATOM: Final = "application/atom+xml"
JSON_FEED: Final = "application/feed+json"

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class FeedEntry(NamedTuple):
    """An event in a feed; all links are absolute.

    Attributes:
        entry_id: its URN.
        page_link: the page in the mirror.
        original: URL of the page.
        difference_link: the whole difference; None: there is none to show.
        content: HTML, whose values are escaped.
        details: members of its extension in JSON.
    """

    entry_id: str
    kind: EventKind
    site: str
    title: str
    at: float
    page_link: str
    original: str
    difference_link: str | None
    content: str
    details: dict[str, Any]


class ChangeFeed(NamedTuple):
    """A page of a feed, newest entries first.

    Attributes:
        page_link: the same list for people.
        link: this document; `first_link` the newest entries; `next_link` older ones.
    """

    feed_id: str
    title: str
    page_link: str
    link: str
    first_link: str
    next_link: str | None
    entries: list[FeedEntry]


def clean_xml(text: str) -> str:
    """Return a text without characters that XML forbids.

    >>> clean_xml("a" + chr(0) + "b")
    'a\ufffdb'
    """
    return _FORBIDDEN.sub("\ufffd", text)


def time_stamp(at: float) -> str:
    """Return a time as RFC 3339 has it, whatever the clock said.

    >>> time_stamp(1e30)
    '9999-12-31T23:59:59Z'
    """
    return iso_text(shown_time(at))


def shown_time(at: float) -> float:
    """Return the nearest time that can be written, from 1970 to 9999."""
    return min(max(at, 0.0), LAST_AT) if math.isfinite(at) else 0.0


def atom(feed: ChangeFeed) -> bytes:
    """Return a feed as Atom."""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">',
        _element("id", feed.feed_id),
        _element("title", feed.title),
        _element("updated", time_stamp(_updated_at(feed))),
        "<author><name>crawld</name></author>",
        _element("generator", "crawld"),
        _link("self", feed.link, ATOM),
        _link("alternate", feed.page_link, "text/html"),
        _link("first", feed.first_link, ATOM),
    ]
    if feed.next_link is not None:
        lines.append(_link("next", feed.next_link, ATOM))
    lines += map(_atom_entry, feed.entries)
    lines.append("</feed>\n")
    return "\n".join(lines).encode("utf-8", "replace")


def _atom_entry(entry: FeedEntry) -> str:
    lines = [
        "<entry>",
        _element("id", entry.entry_id),
        _element("title", entry.title),
        _element("published", time_stamp(entry.at)),
        _element("updated", time_stamp(entry.at)),
        _link("alternate", entry.page_link, "text/html"),
        _link("via", entry.original, title="Original"),
    ]
    if entry.difference_link is not None:
        lines.append(_link("related", entry.difference_link, "text/html", title="Difference"))
    lines += [
        f'<category term="{entry.kind}"/>',
        f'<category term="{_value(entry.site)}" scheme="urn:crawld:site"/>',
        f'<content type="html">{_value(entry.content)}</content>',
        "</entry>",
    ]
    return "\n".join(lines)


def _element(name: str, text: str) -> str:
    return f"<{name}>{_value(text)}</{name}>"


def _link(rel: str, href: str, kind: str | None = None, title: str | None = None) -> str:
    more = f' type="{kind}"' if kind else ""
    more += f' title="{title}"' if title else ""
    return f'<link rel="{rel}" href="{_value(href)}"{more}/>'


def _value(text: str) -> str:
    return escape(clean_xml(text))


def _updated_at(feed: ChangeFeed) -> float:
    return max((entry.at for entry in feed.entries), default=0.0)


def json_feed(feed: ChangeFeed) -> bytes:
    """Return a feed as JSON Feed."""
    document: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "home_page_url": feed.page_link,
        "feed_url": feed.link,
        "description": "Changes that crawld found.",
        "language": "en",
        "authors": [{"name": "crawld"}],
    }
    if feed.next_link is not None:
        document["next_url"] = feed.next_link
    document["items"] = [_json_item(entry) for entry in feed.entries]
    return json.dumps(document, ensure_ascii=True, indent=1).encode()


def _json_item(entry: FeedEntry) -> dict[str, Any]:
    return {
        "id": entry.entry_id,
        "url": entry.page_link,
        "external_url": entry.original,
        "title": clean_xml(entry.title),
        "content_html": clean_xml(entry.content),
        "date_published": time_stamp(entry.at),
        "date_modified": time_stamp(entry.at),
        "tags": [entry.kind.value, clean_xml(entry.site)],
        "_crawld": entry.details,
    }
