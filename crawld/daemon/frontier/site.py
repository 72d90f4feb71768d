"""Active sites: the operator's configuration as the crawl uses it, one value per site.

Derived from the config and, for sites added through the socket, from the file. A reload replaces
them all; look a site up again after an `await`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from crawld.config import derive
from crawld.config.headers import read_headers
from crawld.config.model import Config, FetchConfig
from crawld.config.site import SiteConfig
from crawld.config.views import PageViews
from crawld.core.content.difference import difference
from crawld.core.content.requisites import Needs
from crawld.core.hosts import HostPatterns, host_patterns
from crawld.core.politeness import DelayRules
from crawld.core.request_profiles import RequestProfile
from crawld.core.scope import Scope
from crawld.core.traps import TrapLimits
from crawld.core.url import registrable_domain, split_url
from crawld.core.url_parameters import with_sorted_query
from crawld.net.address import literal_address
from crawld.net.exchange import FetchLimits, SecretHeaders
from crawld.plugin_host.in_use import PluginsInUse, no_plugins
from crawld.plugin_host.queue_stage import QueueStage
from crawld.plugins import Difference


@dataclass(frozen=True, slots=True)
class ActiveSite:
    """One site under crawl.

    Attributes:
        config: its config as written by the operator.
        scope: which URLs belong to it.
        traps: limits against crawler traps.
        own_hosts: the hosts the operator named, as seeds or in `hosts`.
        seed_origins: the origins of its seeds: scheme, host and port.
        headers: request headers with passwords, for `header_origins` only.
        header_origins: the origins that get them: scheme, host and port.
        weights: patterns and the importance of the pages they match.
        views: how often pages are read; None: not known.
        max_links_per_page: links read from one page.
        respect_crawl_delay: whether robots.txt can lengthen the delay.
        requisite_hosts: further hosts that requisites may come from.
        measure: measures the difference of two texts.
        queue: plug-ins that are asked about its pages; None: there are none.
        profiles: ways to ask for its pages; empty: the usual one.
        needs: which requisites of its pages are mirrored; None: none.
    """

    site_id: int
    config: SiteConfig
    scope: Scope
    rules: DelayRules
    limits: FetchLimits
    traps: TrapLimits
    own_hosts: frozenset[str]
    seed_origins: frozenset[str]
    headers: SecretHeaders
    header_origins: frozenset[str]
    weights: tuple[tuple[Scope, float], ...]
    max_links_per_page: int
    respect_crawl_delay: bool
    requisite_hosts: HostPatterns
    policy: str
    views: PageViews | None = None
    paused: bool = False
    measure: Difference = difference
    queue: QueueStage | None = None
    profiles: tuple[RequestProfile, ...] = ()
    needs: Needs | None = None

    @property
    def name(self) -> str:
        """The operator's name for it."""
        return self.config.name

    def permits_private(self, host: str) -> bool:
        """Whether this host name may resolve to a private or loopback address."""
        return derive.allows_private(self.config, host)

    def headers_for(self, url: str) -> SecretHeaders:
        """Return the request headers for a URL: they go to the origins they were given for only."""
        if not self.headers or split_url(url).origin not in self.header_origins:
            return ()
        return self.headers

    @property
    def is_weighted(self) -> bool:
        """Whether its pages differ in importance."""
        weighers = self.queue is not None and self.queue.weighers
        return bool(self.weights or weighers) or self.views is not None

    @property
    def importance_rules(self) -> bytes | None:
        """Digest of what the importance of pages is computed from; None: every page has 1."""
        if not self.is_weighted:
            return None
        written = repr([each.model_dump() for each in self.config.weights]).encode()
        digest = blake2b(written, digest_size=16)
        if self.views is not None:
            digest.update(self.views.digest)
        if self.queue is not None and self.queue.weighers:
            digest.update(self.queue.rules)
        return digest.digest()

    def importance(self, url: str) -> float:
        """Return the importance of a page.

        It is the first weight that matches, times its views, times the factors of plug-ins.
        """
        weight = derive.importance(self.weights, url)
        if self.views is not None:
            weight *= self.views.weight(url)
        return weight if self.queue is None else weight * self.queue.weight(url)

    def spelled(self, urls: Sequence[str]) -> Sequence[str]:
        """Return canonical URLs as the site spells them: some sites sort the parameters."""
        if not self.config.sort_query:
            return urls
        return [with_sorted_query(url) for url in urls]

    def stores(self, media_type: str) -> bool:
        """Whether pages of a media type are stored."""
        return derive.wants_content_type(self.config, media_type)

    def refuses_requisite(self, url: str, host: str) -> str | None:
        """Return why a canonical URL is refused as a requisite; None: it is admitted.

        Unlike pages, requisites may be outside of the scope in depth, path and host.
        """
        if not self.config.requisites:
            return "requisite"
        if not url.startswith(("http://", "https://")):
            return "scheme"
        if not (self._is_near(host) or host in self.requisite_hosts):
            return "requisite_host"
        return None

    def _is_near(self, host: str) -> bool:
        hosts = self.scope.hosts
        return host in hosts or registrable_domain(host) in map(registrable_domain, hosts)

    def permits_private_requisite(self, host: str) -> bool:
        """Whether a requisite's host name may resolve to a private address.

        Pages can name any host, so the pattern "*" does not open the operator's network.
        """
        known = self._is_near(host) or host in self.requisite_hosts.exact
        return known and self.permits_private(host)

    def stores_requisite(self, media_type: str) -> bool:
        """Whether requisites of a media type are stored."""
        return derive.matches_media_type(media_type, self.config.requisite_types)

    @property
    def requisite_limits(self) -> FetchLimits:
        """Limits of one request for a requisite."""
        most = self.config.requisite_max_bytes
        limits = self.limits
        return replace(
            limits,
            max_wire_bytes=min(most, limits.max_wire_bytes),
            max_body_bytes=min(most, limits.max_body_bytes),
        )

    def admits_redirect(self, target: str, source: str, *, seed: bool) -> bool:
        """Whether the target of a redirect is admitted although its host is out of scope.

        A seed that redirects within its registrable domain (example.org to www.example.org) names
        the real host of the site.
        """
        if self.config.follow_redirects_out_of_scope:
            return True
        target_host, source_host = split_url(target).host, split_url(source).host
        if not seed or literal_address(target_host) or literal_address(source_host):
            return False
        return registrable_domain(target_host) == registrable_domain(source_host)

    def trusts(self, url: str, source: str) -> bool:
        """Whether a document at `source` may name `url` as an API, sitemap or feed of the site.

        Allowed are its own host, its registrable domain and the hosts of the site.
        """
        host, source_host = split_url(url).host, split_url(source).host
        if host == source_host or host in self.scope.hosts:
            return True
        return registrable_domain(host) == registrable_domain(source_host)

    def with_rules(self, config: Config, now: float) -> ActiveSite:
        """Return the site with its politeness recomputed: quiet hours follow summer time."""
        return replace(self, rules=derive.delay_rules(config, self.config, now))

    def with_host(self, host: str) -> ActiveSite:
        """Return the site with one more host in scope."""
        return replace(self, scope=replace(self.scope, hosts=self.scope.hosts | {host}))


def activate(
    config: Config,
    site: SiteConfig,
    seed_hosts: Iterable[str],
    seed_origins: Iterable[str],
    *,
    site_id: int,
    paused: bool,
    now: float,
    views: PageViews | None = None,
    plugins: PluginsInUse | None = None,
) -> ActiveSite:
    """Return the active site of a configured one.

    Args:
        config: the whole config, for its defaults.
        seed_hosts: the hosts of the site's seeds, and those the seeds were redirected to.
        seed_origins: the origins of the site's seeds.
        now: Unix seconds, for the offset of its time zone.
        views: how often its pages are read.
        plugins: those in use; None: there are none.

    Raises:
        ConfigError: its headers file cannot be read.
    """
    headers = read_headers(site.headers_file).pairs if site.headers_file else ()
    origins = frozenset(seed_origins)
    parts = plugins or no_plugins()
    scope = derive.site_scope(site, seed_hosts)
    return ActiveSite(
        site_id=site_id,
        config=site,
        scope=scope,
        rules=derive.delay_rules(config, site, now),
        limits=fetch_limits(config.fetch),
        traps=derive.trap_limits(config),
        own_hosts=scope.hosts,
        seed_origins=origins,
        headers=headers,
        header_origins=derive.headers_origins(config, site, origins),
        weights=derive.importance_rules(site),
        max_links_per_page=config.frontier.max_links_per_page,
        respect_crawl_delay=config.politeness.respect_crawl_delay,
        requisite_hosts=host_patterns(site.requisite_hosts),
        policy=site.policy or config.schedule.policy,
        views=views,
        paused=paused,
        measure=parts.supplied.differences.get(site.difference, difference),
        queue=parts.queue_of(site.name),
        profiles=tuple(each.profile() for each in site.profiles),
        needs=_needs_of(config, site) if site.requisites else None,
    )


def _needs_of(config: Config, site: SiteConfig) -> Needs:
    plays = any(each.startswith(("audio/", "video/")) for each in site.requisite_types)
    return Needs(config.frontier.max_links_per_page, media=plays)


def fetch_limits(fetch: FetchConfig) -> FetchLimits:
    """Return the limits of one request."""
    return FetchLimits(**fetch.model_dump(exclude={"http2"}))
