"""The templates and files that most pages of a MediaWiki use: the wiki's own lists of them.

Large wikis renew these lists every few days; that is good enough for what they tell, how many pages
an edit of a template may change.
"""

from __future__ import annotations

from typing import Final

from crawld.sources.mediawiki_api import ApiResponse, Parameters
from crawld.sources.mediawiki_rows import rows_of, text_of

USAGE_LISTS: Final = ("Mostlinkedtemplates", "Mostimages")
"""The lists, one per request; each names up to 500 titles, or 5,000 for a bot."""

MAX_TITLES: Final = 5_000
MAX_TITLE_CHARACTERS: Final = 512
"""Most titles of one list that are read, and the longest."""

MAX_USES: Final = 1_000_000_000
_MAX_DIGITS = 12


def usage_query(name: str) -> Parameters:
    """Return the request for one of `USAGE_LISTS`."""
    return {"list": "querypage", "qppage": name, "qplimit": "max"}


def read_usage(response: ApiResponse) -> dict[str, int]:
    """Return how many pages use each title of a list; unusable rows are left out."""
    answer = response.query.get("querypage")
    rows = rows_of(answer, "results") if isinstance(answer, dict) else []
    found = {text_of(row, "title"): _count(row.get("value")) for row in rows[:MAX_TITLES]}
    return {
        title: uses
        for title, uses in found.items()
        if 0 < len(title) <= MAX_TITLE_CHARACTERS and uses
    }


def _count(value: object) -> int:
    """Return a number of pages, 0 if it is none; the API writes it as a text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS:
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return min(max(value, 0), MAX_USES) if is_number and isinstance(value, int) else 0
