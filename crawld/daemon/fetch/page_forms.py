"""The form in which pages of a wiki are requested: the skin, the mobile view, or Parsoid's HTML.

A page has one URL and one history whatever its form. The form needs the wiki's description: until
the wiki is known, and for pages without that form, the skin is requested. As with the API, rules of
robots.txt for every robot do not count for Parsoid, since the operator chose it; rules that name
crawld do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from crawld.core.robots import Robots
from crawld.core.url import split_url
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.frontier.wiki_scope import WikiScope
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.sources.mediawiki_rest import mobile_url, parsoid_url, redirect_of


class PageForms:
    """Converts between pages and the requests for their configured form."""

    def __init__(self, wikis: WikiScope, known_robots: Callable[[str], Robots | None]) -> None:
        self._wikis = wikis
        self._known_robots = known_robots

    def url_of(self, site: ActiveSite, url: str) -> str | None:
        """Return the URL to request for a page; None: its own."""
        source = site.config.page_source
        if source == "skin":
            return None
        part = self._wikis.part(site.site_id, split_url(url).origin)
        if part is None:
            return None
        convert = parsoid_url if source == "parsoid" else mobile_url
        found = convert(url, part.rules)
        if found is None:
            return None
        robots = self._known_robots(split_url(url).origin)
        forbidden = robots is not None and robots.names_agent and not robots.allowed(found)
        return None if forbidden else found

    def as_page(
        self, site: ActiveSite, url: str, response: FetchResponse | FetchFailure
    ) -> FetchResponse | FetchFailure:
        """Return the response of a requested form as one of the page: redirects lead to pages."""
        if site.config.page_source != "parsoid" or isinstance(response, FetchFailure):
            return response
        part = self._wikis.part(site.site_id, split_url(url).origin)
        if part is None:
            return response
        location = response.header("location")
        target = redirect_of(url, part.rules, response.status, location, response.body)
        if target is None:
            return response
        moved = ((b"location", target.encode("ascii")),)
        return replace(response, status=301, headers=moved, body=b"")
