"""One look at a site: its robots.txt, one page, and the description of its wiki if it has one.

A few requests, `PAUSE_S` apart, with the rules of a crawl: what robots.txt forbids is not
requested, and private addresses only if the operator named them.
"""

from __future__ import annotations

from typing import Final

import trio

from crawld.cli.polite_requests import PoliteRequests, is_same_domain, open_fetcher
from crawld.config.derive import is_public_host, user_agent
from crawld.config.model import Config, DaemonConfig
from crawld.config.starter import SiteLook, WikiLook
from crawld.core.content import html
from crawld.core.robots import Robots
from crawld.core.url import canonicalize, canonicalize_given, registrable_domain, split_url
from crawld.errors import InvalidUrlError, OperatorError
from crawld.sources.mediawiki_api import ApiTrouble, query_url, read_response
from crawld.sources.mediawiki_site import SITEINFO, find_api, read_siteinfo
from crawld.sources.mediawiki_title import CATEGORY_SPACE, SPECIAL_SPACE

PAUSE_S: Final = 1.0
"""Pause between two requests."""

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
    host = split_url(url).host
    private = {host} if allow_private or not is_public_host(config, host) else set()
    async with open_fetcher(config) as fetcher:
        requests = PoliteRequests(
            fetcher,
            user_agent(config),
            delay_s=PAUSE_S,
            permits_private=private.__contains__,
        )
        url, response = await requests.get_page(url)
        robots = await requests.robots_of(split_url(url).origin)
        page = html.parse(response.body)
        return SiteLook(
            url=url,
            title=page.title,
            crawl_delay_s=robots.crawl_delay_s,
            sitemaps=robots.sitemaps,
            media_hosts=_media_hosts(page, url),
            is_private=split_url(url).host in private,
            wiki=await _look_at_wiki(requests, page, url, robots),
        )


async def _look_at_wiki(
    requests: PoliteRequests, page: html.ParsedPage, url: str, robots: Robots
) -> WikiLook | None:
    """Query the wiki that a page names; None if there is none, or if it gives no answer."""
    api = find_api(page, url)
    if api is None or not is_same_domain(api, url):
        return None
    query = query_url(api, SITEINFO, maxlag_s=MAXLAG_S)
    if robots.names_agent and not robots.allowed(query):
        return None
    try:
        response = await requests.get(query)
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
