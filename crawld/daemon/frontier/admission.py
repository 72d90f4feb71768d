"""Decide which URLs become pages: check scope, traps and robots.txt, and report refusals.

Most pages of a site have the same links, so recently judged URLs are remembered and skipped. The
memory is bounded; a forgotten URL only costs time, since the file adds no known URL again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from crawld.core.robots import Robots
from crawld.core.traps import detect_trap
from crawld.core.url import Url, split_url, url_hash
from crawld.core.url_growth import UrlGrowth
from crawld.core.value_type import value_type
from crawld.daemon.frontier.domain_hosts import DomainHosts
from crawld.daemon.frontier.dust_rules import DustRules
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.frontier.wiki_scope import WikiScope
from crawld.daemon.pacing import LoopSlices, parts_of
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.refusal import Refusal

GENERATION = 150_000
"""URLs remembered in the younger of the two generations."""

NAMED_AGAIN = 16_384
"""URLs in the younger generation of those that are skipped without computing their key: links that
all pages of a site have. 2 MB, beside the texts, which the caller's cache of links holds too."""

MAX_HOSTS_PER_PAGE = 200
"""Hosts of which one visit may add URLs: a page of made-up subdomains names 10,000, each of which
takes 4 KB of memory, a lookup and a robots.txt. The next visit adds as many again.
"""

TOO_MANY_HOSTS = "max_hosts_per_page"
"""The reason of the URLs beyond."""

DOMAIN_FULL = "max_hosts_per_domain"
"""The reason of URLs of new hosts in a domain of which many hosts are known."""

REPLACED = "replaced"
"""Not a refusal: by a rule another URL stands for the URL, and was judged in its place."""

GROWTH = "growth"
"""The reason of links to patterns of URLs that grow without new content."""

PLUGIN = "plugin"
"""The reason of URLs that a plug-in refuses."""

_PASSING = frozenset({TOO_MANY_HOSTS, DOMAIN_FULL, REPLACED, GROWTH})
"""Reasons that need not hold when a URL is named again."""

DEPTH_SHIFT = 40
"""Shift of the depth in a 64-bit key, clear of the low bits that hold the site."""

KnownRobots = Callable[[str], Robots | None]
"""Returns the robots.txt rules of an origin if they are in memory."""


Key = TypeVar("Key", int, tuple[int, str])


class RecentUrls(Generic[Key]):
    """A bounded set of recent keys, in two generations.

    Attributes:
        young, old: the generations; a loop over all links of a page asks them itself.
    """

    __slots__ = ("_generation", "old", "young")

    def __init__(self, generation: int = GENERATION) -> None:
        self._generation = generation
        self.young: set[Key] = set()
        self.old: set[Key] = set()

    def __contains__(self, key: Key) -> bool:
        return key in self.young or key in self.old

    def has_either(self, one: Key, other: Key) -> bool:
        """Return whether one of two keys is in the set: one call of two, for each link."""
        young, old = self.young, self.old
        return one in young or one in old or other in young or other in old

    def add(self, key: Key) -> None:
        """Add a key; the older generation is dropped when the younger is full."""
        self.young.add(key)
        if len(self.young) >= self._generation:
            self.old, self.young = self.young, set()

    def discard(self, key: Key) -> None:
        """Forget a key."""
        self.young.discard(key)
        self.old.discard(key)


@value_type
class Referrer:
    """The page that names the URLs.

    Attributes:
        page_id: its number; None for seeds.
        depth: depth of the named URLs.
    """

    page_id: int | None
    depth: int
    seed: bool = False


@dataclass(slots=True)
class Admitted:
    """The result for the URLs of a page."""

    found: list[Discovery] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    _hosts: set[str] = field(default_factory=set)

    def has(self, host: str) -> bool:
        """Return whether the page has added URLs of a host."""
        return host in self._hosts

    def takes(self, host: str) -> bool:
        """Count a host; return whether the page may add URLs of it."""
        if len(self._hosts) < MAX_HOSTS_PER_PAGE:
            self._hosts.add(host)
        return host in self._hosts


class Admission:
    """Admits URLs for all sites.

    Attributes:
        dust: rules by which another URL stands for a URL.
    """

    def __init__(
        self,
        known_robots: KnownRobots,
        wikis: WikiScope | None = None,
        domain_hosts: DomainHosts | None = None,
        growth: UrlGrowth | None = None,
    ) -> None:
        self._known_robots = known_robots
        self._domain_hosts = domain_hosts or DomainHosts()
        self._wikis = wikis or WikiScope()
        self.dust = DustRules()
        self._growth = growth or UrlGrowth()
        self.forget()

    def forget(self) -> None:
        """Forget all decisions: scopes or robots rules have changed."""
        # New objects: an admission under way adds its decisions, by the old rules, to the old ones.
        self._recent = RecentUrls[int]()
        self._named_again = RecentUrls[tuple[int, str]](NAMED_AGAIN)
        self._refused_requisites = RecentUrls[int]()

    async def admit(
        self, site: ActiveSite, urls: Sequence[str], source: Referrer, now: float
    ) -> Admitted:
        """Admit or refuse canonical URLs; other tasks run after each few hundred of them.

        Args:
            site: the site of the page that names them.
            urls: canonical URLs.
            source: the page that names them.
        """
        admitted, recent, named_again = Admitted(), self._recent, self._named_again
        slices = LoopSlices()
        # A URL too deep here may be admitted from a page nearer to the seeds.
        too_deep = source.depth + 1 << DEPTH_SHIFT
        for part in parts_of(urls):
            for url in site.spelled(part):
                name = site.site_id, url
                # Seeds are few, and are judged even if a page has named them.
                if (name in named_again.young or name in named_again.old) and not source.seed:
                    continue
                hashed = url_hash(url)
                key = hashed ^ site.site_id
                if recent.has_either(key, key ^ too_deep) and not source.seed:
                    if key in recent:
                        named_again.add(name)
                    continue
                reason = self._judge(site, url, hashed, source, now, admitted)
                if reason not in _PASSING:
                    recent.add(key ^ too_deep if reason == "depth" else key)
            await slices.pause()
        return admitted

    def _judge(
        self,
        site: ActiveSite,
        url: str,
        hashed: int,
        source: Referrer,
        now: float,
        admitted: Admitted,
        *,
        named: bool = True,
    ) -> str | None:
        """Append a URL to `found` or `refusals`; return the reason of a refusal.

        Args:
            named: whether the source names it; False: it stands for one that the source names.
        """
        parsed = split_url(url)
        if not source.seed:
            same = self.dust.stand_in(url, parsed.origin, site.site_id, source.depth, named=named)
            if same is not None:
                self._judge_once(site, same, source, now, admitted)
                return REPLACED
        reason = site.scope.refusal(url, parsed.host, source.depth)
        if reason is None:
            reason = detect_trap(url, site.traps, now)
        if reason is None and not source.seed:
            reason = self._wikis.refusal(site, url)
        if reason is None and not source.seed:
            reason = self._limit(url, parsed, admitted)
        # What the operator, a sitemap or an API names is no link.
        is_link = source.page_id is not None and not source.seed
        if reason is None and is_link and self._growth.refusing(parsed.host, parsed.target, now):
            reason = GROWTH
        if reason is None and site.queue is not None and not source.seed:
            reason = None if site.queue.refusal(url, source.depth) is None else PLUGIN
        if reason is not None:
            admitted.refusals.append(Refusal(parsed.host, reason, url, now))
            return reason
        admitted.found.append(
            Discovery(
                url=url,
                url_hash=hashed,
                site_id=site.site_id,
                host=parsed.host,
                origin=parsed.origin,
                depth=source.depth,
                importance=site.importance(url) if site.is_weighted else 1.0,
                seed=source.seed,
                referrer_id=source.page_id,
                at=now,
            )
        )
        return None

    def _judge_once(
        self, site: ActiveSite, url: str, source: Referrer, now: float, admitted: Admitted
    ) -> None:
        """Judge a URL that stands for another one, unless it was judged lately."""
        hashed = url_hash(url)
        key = hashed ^ site.site_id
        if key in self._recent:
            return
        reason = self._judge(site, url, hashed, source, now, admitted, named=False)
        if reason in (None, REPLACED):
            self._recent.add(key)

    def _limit(self, url: str, parsed: Url, admitted: Admitted) -> str | None:
        """Return why robots.txt or a limit of hosts refuses a link or a requisite, else None."""
        robots = self._known_robots(parsed.origin)
        if robots is not None and not robots.allowed(url):
            return "robots"
        if admitted.has(parsed.host):
            return None
        if not self._domain_hosts.takes(parsed.host):
            return DOMAIN_FULL
        return None if admitted.takes(parsed.host) else TOO_MANY_HOSTS

    def take_back(self, admitted: Admitted) -> None:
        """Let URLs be admitted again that will not be stored: their visit is not recorded."""
        for each in admitted.found:
            self._recent.discard(each.url_hash ^ each.site_id)
            self._named_again.discard((each.site_id, each.url))

    async def admit_requisites(
        self, site: ActiveSite, urls: Sequence[str], source: Referrer, now: float
    ) -> Admitted:
        """Admit or refuse the canonical URLs of requisites, as `admit` does.

        Unlike links, admitted requisites are returned each time, since the file keeps which page
        needs which.
        """
        admitted, refused = Admitted(), self._refused_requisites
        slices = LoopSlices()
        for part in parts_of(urls):
            for url in site.spelled(part):
                hashed = url_hash(url)
                key = hashed ^ site.site_id
                if key in refused:
                    continue
                reason = self._judge_requisite(site, url, hashed, source, now, admitted)
                if reason is not None and reason not in _PASSING:
                    refused.add(key)
            await slices.pause()
        return admitted

    def _judge_requisite(
        self,
        site: ActiveSite,
        url: str,
        hashed: int,
        source: Referrer,
        now: float,
        admitted: Admitted,
    ) -> str | None:
        """Append a URL to `found` or `refusals`; return the reason of a refusal."""
        parsed = split_url(url)
        reason = site.refuses_requisite(url, parsed.host)
        if reason is None:
            reason = self._limit(url, parsed, admitted)
        if reason is not None:
            admitted.refusals.append(Refusal(parsed.host, reason, url, now))
            return reason
        admitted.found.append(
            Discovery(
                url=url,
                url_hash=hashed,
                site_id=site.site_id,
                host=parsed.host,
                origin=parsed.origin,
                depth=source.depth,
                referrer_id=source.page_id,
                requisite=True,
                at=now,
            )
        )
        return None
