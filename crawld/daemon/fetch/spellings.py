"""The spelling under which a server wants a page to be asked for.

A canonical URL has no session id and no tracking parameter. Some servers answer it with a redirect
to itself plus one of these: to a reader's first page of a session, or to count where he came from.
The page keeps its URL; in the next turn of its host, and later, it is asked for under the spelling
of the server.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from crawld.core.outcome import REDIRECT_STATUSES
from crawld.core.robots import Robots
from crawld.core.url import canonicalize, split_url
from crawld.errors import InvalidUrlError
from crawld.net.exchange import FetchResponse

MOST_SPELLINGS: Final = 10_000
"""Pages whose spelling is remembered, the most recently used."""


class AskedSpellings:
    """Remembers the spellings that servers ask for, by the URL of the page.

    A visit asks for one spelling beside the known one at most: a server that answers each with
    another one has no page, and the visit fails.
    """

    def __init__(self, known_robots: Callable[[str], Robots | None]) -> None:
        self._known_robots = known_robots
        self._of: OrderedDict[str, str] = OrderedDict()
        self._tried: set[str] = set()

    def url_of(self, url: str) -> str | None:
        """Return the spelling under which to ask for a page; None: its URL."""
        spelling = self._of.get(url)
        if spelling is not None:
            self._of.move_to_end(url)
        return spelling

    def learn(self, url: str, response: FetchResponse) -> bool:
        """Read the response to a page; return whether to ask again, under another spelling."""
        spelling = self._wanted(url, response)
        if spelling is None or url in self._tried:
            self._tried.discard(url)
            if spelling is not None or response.status not in (200, 304):
                self._of.pop(url, None)
            return False
        self._tried.add(url)
        self._of[url] = spelling
        self._of.move_to_end(url)
        while len(self._of) > MOST_SPELLINGS:
            dropped, _ = self._of.popitem(last=False)
            self._tried.discard(dropped)
        return True

    def _wanted(self, url: str, response: FetchResponse) -> str | None:
        """Return another spelling of a page to which a response redirects; None: it does not."""
        location = response.header("location") if response.status in REDIRECT_STATUSES else None
        if not location:
            return None
        asked = self._of.get(url, url)
        try:
            if canonicalize(location, asked) != url:
                return None
            spelling = canonicalize(location, asked, of_page=False)
        except InvalidUrlError:
            return None
        if spelling == asked:
            return None
        robots = self._known_robots(split_url(url).origin)
        return None if robots is not None and not robots.allowed(spelling) else spelling
