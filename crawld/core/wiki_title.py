"""MediaWiki's rules for titles of pages that hold for every wiki.

Source: MediaWiki, Manual:Page title; wfUrlencode for the path.
"""

from __future__ import annotations

import re
from urllib.parse import quote

MAX_TITLE_BYTES = 255
"""Limit of a title without its namespace."""

NEVER_IN_TITLE = "\\x00-\\x1f\\x7f#<>\\[\\]{}|\ufffd"
"""Characters of no title, as part of a regular expression's set."""

_NEVER = re.compile(f"[{NEVER_IN_TITLE}]").search
_SPACES = re.compile("[ _\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_PATH_SAFE = ";@$!*(),/~:"


def cannot_be_title(text: str) -> bool:
    """Return whether no wiki can have a page with this title."""
    title = join_spaces(text)
    return not title or _NEVER(title) is not None or len(title.encode()) > 2 * MAX_TITLE_BYTES


def join_spaces(text: str) -> str:
    """Return a title with one blank for each run of spaces and underscores, none at the ends."""
    return _SPACES.sub(" ", text).strip(" ")


def encode_title(title: str) -> str:
    """Return a title as part of a URL path: `C++ (language)` gives `C%2B%2B_(language)`."""
    return quote(title.replace(" ", "_"), safe=_PATH_SAFE, errors="replace")
