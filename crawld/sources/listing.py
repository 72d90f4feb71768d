"""Reading pages that list others: their links, and dates that stand beside them.

Web servers write directories as lines or rows of link, date and size; Apache, nginx and lighttpd
differ in the spelling of the date, and all leave out its time zone. It is taken as UTC; the minute
is all they give, so the change lies somewhere in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from crawld.core.content import html
from crawld.core.url import resolve
from crawld.sources.listed_page import ListedPage, TimeSpan, read_date

MAX_LINKS = 10_000

_DATED = re.compile(
    rb"<a\s[^>]{0,300}?href\s*=\s*[\"']?([^\"'\s>]{1,2000})[^>]{0,300}>[^<]{0,500}</a>"
    rb"(?:\s|<[^a>][^>]{0,80}>){0,100}+"
    rb"(\d{4}-[A-Za-z0-9]{2,3}-\d\d[ T]\d\d:\d\d|\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d)",
    re.IGNORECASE,
)
_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: f"{number:02}" for number, name in enumerate(_NAMES, start=1)}


@dataclass(frozen=True, slots=True)
class Listing:
    """What a listing says.

    Attributes:
        entries: the pages it links, each once, in order.
        own_page: the listing's own page, and when it changed by its Last-Modified.
    """

    entries: tuple[ListedPage, ...]
    own_page: ListedPage


def read_listing(body: bytes, url: str, last_modified: str | None) -> Listing:
    """Return what a listing says.

    Args:
        body: the page.
        url: its canonical URL.
        last_modified: the header it came with, None without one.
    """
    page = html.parse(body)
    found: dict[str, TimeSpan | None] = dict.fromkeys(resolve(url, page.links[:MAX_LINKS]))
    for match in _DATED.finditer(body):
        (linked, *_), changed = [*resolve(url, [_text(match[1])]), ""], read_date(_spelt(match[2]))
        if linked in found:
            found[linked] = changed
    changed = read_date(last_modified) if last_modified else None
    entries = tuple(
        ListedPage(linked, changed) for linked, changed in found.items() if linked != url
    )
    return Listing(entries, ListedPage(url, changed))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("&amp;", "&")


def _spelt(raw: bytes) -> str:
    """Return a date as the W3C writes it, given 2026-11-21, 2026-Nov-21 or 21-Nov-2026 first."""
    text = raw.decode("ascii")
    day, time = text[:11].strip(), text[-5:]
    first, month, last = day.rstrip("T ").split("-")
    year, number = (first, last) if len(first) == 4 else (last, first)
    return f"{year}-{_MONTHS.get(month.lower(), month)}-{number}T{time}Z"
