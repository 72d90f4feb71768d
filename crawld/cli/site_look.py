"""One look at a site: its robots.txt, one page, and the description of its wiki if it has one.

At most `MAX_REDIRECTS` + 3 requests, `PAUSE_S` apart, with the rules of a crawl: what robots.txt
forbids is not requested, and private addresses only if the operator named them.
"""

from __future__ import annotations

import sys
from typing import Final

import trio

from crawld.cli.output import printable
from crawld.config.derive import is_public_host, user_agent
from crawld.config.model import Config, DaemonConfig
from crawld.config.starter import SiteLook, WikiLook
from crawld.core.content import html
from crawld.core.robots import Robots, RobotsVerdict
from crawld.core.url import canonicalize, canonicalize_given, registrable_domain, split_url
from crawld.errors import InvalidUrlError, OperatorError
from crawld.net.exchange import FetchFailure, FetchRequest, FetchResponse
from crawld.net.fetcher import Fetcher
from crawld.net.resolver import CachedResolver
from crawld.net.robots import fetch_robots
from crawld.sources.mediawiki_api import ApiTrouble, query_url, read_response
from crawld.sources.mediawiki_site import SITEINFO, find_api, read_siteinfo
from crawld.sources.mediawiki_title import CATEGORY_SPACE, SPECIAL_SPACE

PAUSE_S: Final = 1.0
"""Pause between two requests."""

MAX_REDIRECTS: Final = 5
MAX_MEDIA_HOSTS: Final = 8
MAXLAG_S: Final = 5.0


def look_at(url: str, *, contact: str | None, allow_private: bool) -> SiteLook:
    """Fetch a page of a site and describe it.

    A host given as a private address literal may be fetched, one that only resolves to such an
    address if `allow_private`.

    Raises:
        InvalidUrlError: not a URL that can be visited.
        OperatorError: the page cannot be fetched, with the reason.
    """
    return trio.run(_look_at, canonicalize_given(url), contact, allow_private)


async def _look_at(url: str, contact: str | None, allow_private: bool) -> SiteLook:
    config = Config(daemon=DaemonConfig(contact=contact))
    resolver = CachedResolver()
    fetcher = Fetcher(user_agent=user_agent(config), resolver=resolver)
    host = split_url(url).host
    private = {host} if allow_private or not is_public_host(config, host) else set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(resolver.run)
        try:
            return await _Look(fetcher, user_agent(config), frozenset(private)).look(url)
        finally:
            await fetcher.aclose()
            nursery.cancel_scope.cancel()


class _Look:
    """The requests of one look."""

    def __init__(self, fetcher: Fetcher, agent: str, private: frozenset[str]) -> None:
        self._fetcher = fetcher
        self._agent = agent
        self._private = private
        self._sent = 0

    async def look(self, url: str) -> SiteLook:
        """Fetch robots.txt and the page, follow redirects, and query the wiki."""
        for _ in range(MAX_REDIRECTS + 1):
            origin = split_url(url).origin
            robots = await self._robots(origin)
            if not robots.allowed(url):
                raise OperatorError(f"{origin}/robots.txt forbids {url}")
            response = await self._get(url)
            location = response.header("location") if 300 <= response.status < 400 else None
            if location is None:
                break
            url = _redirected(location, url)
        else:
            raise OperatorError(f"{url}: more than {MAX_REDIRECTS} redirects")
        if response.status != 200:
            raise OperatorError(f"{url} has status {response.status}", hint="check the address")
        page = html.parse(response.body)
        return SiteLook(
            url=url,
            title=page.title,
            crawl_delay_s=robots.crawl_delay_s,
            sitemaps=robots.sitemaps,
            media_hosts=_media_hosts(page, url),
            is_private=split_url(url).host in self._private,
            wiki=await self._wiki(page, url, robots),
        )

    async def _robots(self, origin: str) -> Robots:
        found = await fetch_robots(
            self._fetcher.fetch, origin, wait_turn=self._wait, permits_private=self._permits
        )
        if found.verdict is RobotsVerdict.CLOSED:
            raise OperatorError(f"{origin}/robots.txt cannot be fetched: {found.detail}")
        return Robots.parse(found.text or b"", self._agent)

    async def _wiki(self, page: html.ParsedPage, url: str, robots: Robots) -> WikiLook | None:
        """Query the wiki that a page names; None if there is none, or if it gives no answer."""
        api = find_api(page, url)
        if api is None or registrable_domain(split_url(api).host) != registrable_domain(
            split_url(url).host
        ):
            return None
        query = query_url(api, SITEINFO, maxlag_s=MAXLAG_S)
        if robots.names_agent and not robots.allowed(query):
            return None
        try:
            response = await self._get(query)
        except OperatorError:
            return None
        found = read_response(response.status, None, response.body, now=0.0)
        if isinstance(found, ApiTrouble):
            return None
        try:
            facts = read_siteinfo(found.query)
        except ValueError:
            return None
        names = {each.number: each.name for each in facts.titles.namespaces.values()}
        general = found.query["general"]
        assert isinstance(general, dict)
        return WikiLook(
            name=str(general.get("sitename", ""))[:100],
            software=facts.generator,
            article_path=facts.titles.article_path,
            special=names.get(SPECIAL_SPACE, "").replace(" ", "_"),
            category=names.get(CATEGORY_SPACE, "Category"),
        )

    async def _get(self, url: str) -> FetchResponse:
        await self._wait(url)
        request = FetchRequest(url=url, permits_private=self._permits, cut=True)
        response = await self._fetcher.fetch(request)
        if isinstance(response, FetchFailure):
            raise OperatorError(f"{url}: {response.failure}: {response.detail}")
        return response

    async def _wait(self, url: str) -> None:
        if self._sent:
            await trio.sleep(PAUSE_S)
        self._sent += 1
        print(f"asking for {printable(url)}", file=sys.stderr)

    def _permits(self, host: str) -> bool:
        return host in self._private


def _redirected(location: str, url: str) -> str:
    try:
        return canonicalize(location, url)
    except InvalidUrlError as error:
        raise OperatorError(f"{url} redirects to {location[:200]!r}, which is no URL") from error


def _media_hosts(page: html.ParsedPage, url: str) -> tuple[str, ...]:
    """Return further hosts of images and styles, outside of the site's registrable domain."""
    own = registrable_domain(split_url(url).host)
    found: dict[str, None] = {}
    for each in page.requisites():
        try:
            host = split_url(canonicalize(each, page.base or url)).host
        except InvalidUrlError:
            continue
        if registrable_domain(host) != own:
            found[host] = None
    return tuple(found)[:MAX_MEDIA_HOSTS]
