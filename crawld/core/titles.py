"""Titles of pages without the name of their site, as in `Apple - Example Wiki`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

MIN_TITLES: Final = 3
"""Titles that must share an end."""

MIN_SHARE: Final = 0.6
"""Share of the titles that must have it."""

MAX_END_CHARACTERS: Final = 80

_SEPARATOR: Final = re.compile(r" (?:[-|·»:–—]|::) ")
_ENDS_READ: Final = 2


def common_end(titles: Sequence[str]) -> str:
    """Return the end with the name of the site that most titles share, empty if they do not.

    >>> common_end(["Apple - Wiki", "Pear - Wiki", "Plum - tree - Wiki", "Main page"])
    ' - Wiki'
    """
    counts: Counter[str] = Counter()
    for title in titles:
        tail = title[-MAX_END_CHARACTERS:]
        starts = [match.start() for match in _SEPARATOR.finditer(tail)]
        if len(tail) == len(title):
            starts = [start for start in starts if start]
        counts.update({tail[start:] for start in starts[-_ENDS_READ:]})
    needed = max(MIN_TITLES, MIN_SHARE * len(titles))
    return max((end for end, n in counts.items() if n >= needed), key=len, default="")


def without_end(title: str, end: str) -> str:
    """Return a title without the name of its site.

    >>> without_end("Apple - Wiki", " - Wiki"), without_end("Main page", " - Wiki")
    ('Apple', 'Main page')
    """
    return title.removesuffix(end) if end else title


def title_of_path(path: str) -> str:
    """Return the title that the last part of a decoded URL path suggests; empty: none.

    >>> title_of_path("/wiki/Alan_Turing"), title_of_path("/docs/index.html"), title_of_path("/")
    ('Alan Turing', 'index', '')
    """
    last = path.rstrip("/").rpartition("/")[2][:200]
    stem, dot, extension = last.rpartition(".")
    if dot and stem and extension.lower() in _PAGE_EXTENSIONS:
        last = stem
    return " ".join(re.split(r"[_+\s]+", last)).strip()


_PAGE_EXTENSIONS: Final = frozenset({"html", "htm", "xhtml", "php", "asp", "aspx", "jsp", "md"})
