"""A few requests to a site outside of the crawl, with its rules.

One request after the other, with a pause before each but the first. What robots.txt forbids is not
requested; each origin's robots.txt is fetched once.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio

from crawld.cli.output import printable
from crawld.config.derive import user_agent
from crawld.config.model import Config
from crawld.core.robots import Robots, RobotsVerdict
from crawld.core.url import canonicalize, registrable_domain, split_url
from crawld.errors import InvalidUrlError, OperatorError
from crawld.net.exchange import (
    FetchFailure,
    FetchRequest,
    FetchResponse,
    PermitsPrivate,
    SecretHeaders,
)
from crawld.net.fetcher import Fetcher
from crawld.net.resolver import CachedResolver
from crawld.net.robots import fetch_robots

MAX_REDIRECTS: Final = 5


@asynccontextmanager
async def open_fetcher(config: Config) -> AsyncIterator[Fetcher]:
    """Open a fetcher with the identity and the fixed addresses of a config."""
    resolver = CachedResolver(hosts=config.dns.hosts)
    fetcher = Fetcher(user_agent=user_agent(config), resolver=resolver)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(resolver.run)
        try:
            yield fetcher
        finally:
            await fetcher.aclose()
            nursery.cancel_scope.cancel()


def is_same_domain(url: str, other: str) -> bool:
    """Whether two URLs belong to one registrable domain: a wiki's API is there."""
    return registrable_domain(split_url(url).host) == registrable_domain(split_url(other).host)


def _no_headers(_url: str) -> SecretHeaders:
    return ()


class PoliteRequests:
    """The requests of a command to one site.

    Args:
        agent: our User-Agent header.
        delay_s: pause between two requests.
        permits_private: the hosts that may have private addresses.
        obeys_delay: whether a longer Crawl-delay lengthens the pause.
        headers_of: headers of the operator for a URL.
        proxy: of the site; None: none.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        agent: str,
        *,
        delay_s: float,
        permits_private: PermitsPrivate,
        obeys_delay: bool = False,
        headers_of: Callable[[str], SecretHeaders] = _no_headers,
        proxy: str | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._agent = agent
        self._delay_s = delay_s
        self._permits = permits_private
        self._obeys_delay = obeys_delay
        self._headers_of = headers_of
        self._proxy = proxy
        self._robots: dict[str, Robots] = {}
        self._sent = 0

    async def robots_of(self, origin: str) -> Robots:
        """Return the robots.txt rules of an origin.

        Raises:
            OperatorError: they cannot be fetched, so nothing may be.
        """
        if origin not in self._robots:
            found = await fetch_robots(
                self._fetcher.fetch, origin, wait_turn=self._wait, permits_private=self._permits
            )
            if found.verdict is RobotsVerdict.CLOSED:
                raise OperatorError(f"{origin}/robots.txt cannot be fetched: {found.detail}")
            robots = Robots.parse(found.text or b"", self._agent)
            if self._obeys_delay:
                self._delay_s = max(self._delay_s, robots.crawl_delay_s or 0.0)
            self._robots[origin] = robots
        return self._robots[origin]

    async def get_page(self, url: str) -> tuple[str, FetchResponse]:
        """Request a page and follow its redirects; return its last URL and the response.

        Raises:
            OperatorError: it is forbidden, cannot be fetched, or has a status other than 200.
        """
        for _ in range(MAX_REDIRECTS + 1):
            origin = split_url(url).origin
            if not (await self.robots_of(origin)).allowed(url):
                raise OperatorError(f"{origin}/robots.txt forbids {url}")
            response = await self.get(url)
            location = response.header("location") if 300 <= response.status < 400 else None
            if location is not None:
                url = _redirected(location, url)
                continue
            if response.status != 200:
                raise OperatorError(f"{url} has status {response.status}", hint="check the address")
            return url, response
        raise OperatorError(f"{url}: more than {MAX_REDIRECTS} redirects")

    async def get(self, url: str) -> FetchResponse:
        """Request a URL after the pause, whatever robots.txt says.

        Raises:
            OperatorError: there is no response, with the reason.
        """
        await self._wait(url)
        request = FetchRequest(
            url=url,
            headers=self._headers_of(url),
            permits_private=self._permits,
            proxy=self._proxy,
            cut=True,
        )
        response = await self._fetcher.fetch(request)
        if isinstance(response, FetchFailure):
            raise OperatorError(f"{url[:200]}: {response.failure}: {response.detail}")
        return response

    async def _wait(self, url: str) -> None:
        if self._sent:
            await trio.sleep(self._delay_s)
        self._sent += 1
        print(f"asking for {printable(url[:120])}", file=sys.stderr)


def _redirected(location: str, url: str) -> str:
    try:
        return canonicalize(location, url, of_page=False)
    except InvalidUrlError as error:
        raise OperatorError(f"{url} redirects to {location[:200]!r}, which is no URL") from error
