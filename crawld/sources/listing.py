"""Reads directory listings: links to pages, with the dates beside them.

Web servers write directories as lines or rows of link, date and size. Apache, nginx and lighttpd
differ in the format of the date. None states a time zone: UTC is assumed. None states seconds: the
change is some time in the minute.
"""

from __future__ import annotations

from dataclasses import dataclass

import re2

from crawld.core.content import html
from crawld.core.url import resolve
from crawld.sources.listed_page import ListedPage, TimeSpan, read_date

MAX_LINKS = 10_000

# re2 is linear; in Python's `re` these repetitions would overlap.
_OPTIONS = re2.Options()
_OPTIONS.case_sensitive = False
_OPTIONS.encoding = re2.Options.Encoding.LATIN1
_DATED = re2.compile(
    rb"<a\s[^>]*?href\s*=\s*[\"']?([^\"'\s>]+)[^>]*>[^<]*</a>"
    rb"(?:\s|<[^a>][^>]*>)*"
    rb"(\d{4}-[A-Za-z0-9]{2,3}-\d\d[ T]\d\d:\d\d|\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d)",
    _OPTIONS,
)
_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: f"{number:02}" for number, name in enumerate(_NAMES, start=1)}


@dataclass(frozen=True, slots=True)
class Listing:
    """The content of a listing.

    Attributes:
        entries: the pages it links, each once, in order.
        own_page: the listing itself, with the date of its Last-Modified.
    """

    entries: tuple[ListedPage, ...]
    own_page: ListedPage


def read_listing(body: bytes, url: str, last_modified: str | None) -> Listing:
    """Read a listing: its body, its canonical URL and its Last-Modified header."""
    page = html.parse(body)
    found: dict[str, TimeSpan | None] = dict.fromkeys(resolve(url, page.links[:MAX_LINKS]))
    for match in _DATED.finditer(body):
        for linked in resolve(url, [_text(match[1])]):
            if linked in found:
                found[linked] = read_date(_w3c_date(match[2]))
    changed = read_date(last_modified) if last_modified else None
    entries = tuple(
        ListedPage(linked, changed) for linked, changed in found.items() if linked != url
    )
    return Listing(entries, ListedPage(url, changed))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("&amp;", "&")


def _w3c_date(raw: bytes) -> str:
    """Return a date in W3C format; it may be 2026-11-21, 2026-Nov-21 or 21-Nov-2026, and a time."""
    text = raw.decode("ascii")
    day, time = text[:11].strip(), text[-5:]
    first, month, last = day.rstrip("T ").split("-")
    year, number = (first, last) if len(first) == 4 else (last, first)
    return f"{year}-{_MONTHS.get(month.lower(), month)}-{number}T{time}Z"
