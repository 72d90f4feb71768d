"""The request stage of plug-ins in a visit: what they may change of a request, and what not.

The robot's name and contact, the proxy, the limits, the address fence and the headers of the
operator stay as they are; another URL is asked for only on the page's origin, in its scope, allowed
by robots.txt and not purged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from crawld.core.robots import Robots
from crawld.core.traps import detect_trap
from crawld.core.url import canonicalize, split_url
from crawld.daemon.clock import Clock
from crawld.daemon.frontier.site import ActiveSite
from crawld.errors import InvalidUrlError
from crawld.net.exchange import FetchFailure, FetchResponse
from crawld.plugin_host.plugin import Hook
from crawld.plugin_host.request_stage import RequestStage
from crawld.plugins import KnownPage, PageRequest
from crawld.store.engine.database import Database
from crawld.store.frontier import tombstone


class RequestHooks:
    """Lets plug-ins change the requests for pages.

    Args:
        known_robots: returns the robots.txt rules of an origin if they are in memory.
        sites: active sites by number.
    """

    def __init__(
        self,
        hooks: Sequence[Hook],
        known_robots: Callable[[str], Robots | None],
        sites: Callable[[], Mapping[int, ActiveSite]],
        database: Database,
        clock: Clock,
    ) -> None:
        self._stage = RequestStage(hooks, self._why_not)
        self._known_robots = known_robots
        self._sites = sites
        self._database = database
        self._clock = clock

    def shape(self, page: KnownPage) -> PageRequest | None:
        """Return the request for a page as plug-ins want it; None: as usual."""
        return self._stage.shape(page)

    def judge(self, shape: PageRequest, host: str, response: FetchResponse | FetchFailure) -> None:
        """Learn which variant of a request a host refuses."""
        self._stage.judge(shape, host, response.status)

    def _why_not(self, page: KnownPage, url: str) -> str | None:
        """Return why another URL may not be asked for in place of that of a page; None: it may."""
        try:
            canonical = canonicalize(url, page.url)
        except InvalidUrlError as error:
            return error.message
        if canonical != url:
            return f"it is not canonical, which is {canonical[:200]}"
        parsed, own = split_url(url), split_url(page.url)
        if parsed.origin != own.origin:
            return "it is on another origin"
        site = next((each for each in self._sites().values() if each.name == page.site), None)
        if site is None:
            return "its site was removed"
        refused = site.scope.refusal(url, parsed.host, page.depth)
        refused = refused or detect_trap(url, site.traps, self._clock.now())
        if refused is not None:
            return f"it is out of scope ({refused})"
        robots = self._known_robots(parsed.origin)
        if robots is None or not robots.allowed(url):
            return "robots.txt does not allow it"
        if self._database.look_up(tombstone.exists, url):
            return "it was purged"
        return None
