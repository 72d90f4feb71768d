"""`crawld check-config --online`: ask wikis about the titles, categories and prefixes of a config.

Requests keep the delay of the site between two of them, and the rules of a crawl: what robots.txt
forbids is not requested, and the API asks for a pause when its databases lag.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import trio

from crawld.cli.polite_requests import PoliteRequests, is_same_domain, open_fetcher
from crawld.config.derive import allows_private, headers_origins, host_delay_s, user_agent
from crawld.config.headers import read_headers
from crawld.config.load import LoadedConfig
from crawld.config.model import Config
from crawld.config.seeds import BadSeed, read_seeds, read_wiki_titles
from crawld.config.site import SiteConfig
from crawld.core.content import html
from crawld.core.url import split_url
from crawld.daemon.jobs.wiki_parts.asking import TITLES_AT_ONCE, resolve_titles
from crawld.errors import ConfigError, OperatorError
from crawld.net.exchange import SecretHeaders
from crawld.net.fetcher import Fetcher
from crawld.sources.mediawiki_api import (
    REFUSALS,
    ApiResponse,
    ApiTrouble,
    Parameters,
    query_url,
    read_response,
)
from crawld.sources.mediawiki_listed import ListedTitle, TitleAnswer, TitleOutcome, sort_titles
from crawld.sources.mediawiki_members import MemberWalk
from crawld.sources.mediawiki_rows import rows_of
from crawld.sources.mediawiki_scope import normalize_prefixes
from crawld.sources.mediawiki_site import SITEINFO, WikiFacts, find_api, read_siteinfo
from crawld.sources.mediawiki_title import TitleRules

ATTEMPTS: Final = 2
"""Requests before a wiki that lags or fails is reported."""

MAX_PAUSE_S: Final = 120.0
"""Longest pause before such a request is repeated."""


@dataclass(slots=True)
class OnlineResult:
    """What a wiki says about a site.

    Attributes:
        software: the wiki's software and version; None: there was no answer.
        titles: how many listed titles have each outcome.
        problems: what the operator should know, each with a name.
        failure: why the wiki could not be asked; None: it could.
    """

    site: str
    software: str | None = None
    titles: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    failure: str | None = None


def check_online(loaded: LoadedConfig) -> list[OnlineResult]:
    """Ask the wikis of all sites that cover parts of wikis; return the results by site."""
    sites = [site for site in loaded.config.sites if site.wiki_scoped]
    return trio.run(_check, loaded.config, sites) if sites else []


async def _check(config: Config, sites: Sequence[SiteConfig]) -> list[OnlineResult]:
    results = []
    async with open_fetcher(config) as fetcher:
        for site in sites:
            result = OnlineResult(site.name)
            try:
                await _WikiCheck(config, site, fetcher, result).run()
            except (OperatorError, ConfigError) as error:
                result.failure = error.message
            results.append(result)
    return results


class _WikiCheck:
    """The requests about one site."""

    def __init__(
        self, config: Config, site: SiteConfig, fetcher: Fetcher, result: OnlineResult
    ) -> None:
        self._config = config
        self._site = site
        self._result = result
        self._requests = PoliteRequests(
            fetcher,
            user_agent(config),
            delay_s=host_delay_s(config, site),
            permits_private=partial(allows_private, site),
            obeys_delay=config.politeness.respect_crawl_delay,
            headers_of=self._headers,
            proxy=site.proxy,
        )
        self._api = ""

    async def run(self) -> None:
        """Find the wiki by a seed; ask for titles, categories and prefixes."""
        facts = await self._find_wiki()
        self._result.software = facts.generator
        await self._check_titles(facts.titles)
        await self._check_walks(facts.titles)

    # --- the wiki ------------------------------------------------------------------------------

    async def _find_wiki(self) -> WikiFacts:
        for seed in read_seeds(self._site):
            if isinstance(seed, BadSeed):
                continue
            url, response = await self._requests.get_page(seed.url)
            api = find_api(html.parse(response.body), url)
            if api is None:
                raise OperatorError(f"{url} is no page of a MediaWiki that names its API")
            if not is_same_domain(api, url):
                raise OperatorError(f"{url} names an API of another domain: {api[:200]}")
            self._api = api
            try:
                return read_siteinfo((await self._query(SITEINFO)).query)
            except ValueError as error:
                raise OperatorError(f"{api} does not describe a MediaWiki: {error}") from error
        raise OperatorError("the site has no seed")

    # --- titles, categories, prefixes ----------------------------------------------------------

    async def _check_titles(self, rules: TitleRules) -> None:
        listed = list(sort_titles(read_wiki_titles(self._site), rules))
        asked = [each.title for each in listed if each.outcome is TitleOutcome.UNRESOLVED]
        titles = [title for title in asked if title is not None]
        answers: dict[str, TitleAnswer] = {}
        for start in range(0, len(titles), TITLES_AT_ONCE):
            some = titles[start : start + TITLES_AT_ONCE]
            found = await resolve_titles(self._ask, some)
            if isinstance(found, ApiTrouble):
                raise OperatorError(f"{self._api}: {found.trouble}: {found.detail}")
            answers |= found
            if len(titles) > TITLES_AT_ONCE:
                done = start + len(some)
                print(f"{self._site.name}: {done:,} of {len(titles):,} titles", file=sys.stderr)
        counts: Counter[str] = Counter()
        seen: dict[str, str] = {}
        for each in listed:
            final = _answered(each, answers, seen)
            counts[str(final.outcome)] += 1
            if (problem := final.problem) is not None:
                self._result.problems.append(problem)
        self._result.titles = dict(counts)

    async def _check_walks(self, rules: TitleRules) -> None:
        site = self._site
        spelt = normalize_prefixes(site.wiki_prefixes, rules)
        if len(spelt) < len(site.wiki_prefixes):
            count = len(site.wiki_prefixes) - len(spelt)
            self._result.problems.append(f"{count} of wiki_prefixes begin no title of the wiki")
        walk = MemberWalk.start(site.wiki_categories, 0, site.wiki_prefixes, rules)
        if len(walk.categories) < len(site.wiki_categories):
            count = len(site.wiki_categories) - len(walk.categories)
            self._result.problems.append(
                f"{count} of wiki_categories are duplicates, or cannot be categories of the wiki"
            )
        while not walk.is_done:
            kind = "category" if walk.categories else "prefix"
            query = {**walk.query(rules), ("gcmlimit" if walk.categories else "gaplimit"): 1}
            response = await self._ask(query)
            if isinstance(response, ApiTrouble):
                if response.trouble not in REFUSALS:
                    raise OperatorError(f"{self._api}: {response.trouble}: {response.detail}")
                self._result.problems.append(f"{kind} {walk.subject!r}: {response.detail}")
            elif not rows_of(response.query, "pages"):
                self._result.problems.append(f"{kind} {walk.subject!r} has no pages")
            walk = walk.skip()

    # --- requests ------------------------------------------------------------------------------

    async def _query(self, parameters: Parameters) -> ApiResponse:
        response = await self._ask(parameters)
        if isinstance(response, ApiTrouble):
            raise OperatorError(f"{self._api}: {response.trouble}: {response.detail}")
        return response

    async def _ask(self, parameters: Parameters) -> ApiResponse | ApiTrouble:
        url = query_url(self._api, parameters, maxlag_s=self._config.jobs.api_maxlag_s)
        robots = await self._requests.robots_of(split_url(url).origin)
        if robots.names_agent and not robots.allowed(url):
            raise OperatorError(f"robots.txt names crawld and forbids {self._api}")
        for attempt in range(1, ATTEMPTS + 1):
            got = await self._requests.get(url)
            found = read_response(
                got.status,
                got.header("retry-after"),
                got.body,
                now=0.0,
                location=got.header("location"),
            )
            if isinstance(found, ApiResponse) or found.trouble in REFUSALS or attempt == ATTEMPTS:
                return found
            pause_s = found.pause_s(attempt)
            if pause_s > MAX_PAUSE_S:
                return found
            await trio.sleep(pause_s)
        raise AssertionError("unreachable")

    def _headers(self, url: str) -> SecretHeaders:
        site, origin = self._site, split_url(url).origin
        if site.headers_file is None or origin not in headers_origins(
            self._config, site, {origin, *site.headers_origins}
        ):
            return ()
        return read_headers(site.headers_file).pairs


def _answered(
    listed: ListedTitle, answers: dict[str, TitleAnswer], seen: dict[str, str]
) -> ListedTitle:
    """Return a listed title with the wiki's answer; `seen` has the first text of each title."""
    answer = answers.get(listed.title or "")
    if listed.outcome is not TitleOutcome.UNRESOLVED or answer is None:
        return listed
    first = seen.setdefault(answer.title, listed.written)
    if first != listed.written:
        return ListedTitle(listed.written, answer.title, TitleOutcome.DUPLICATE, first)
    return ListedTitle(listed.written, answer.title, answer.outcome, answer.detail)
