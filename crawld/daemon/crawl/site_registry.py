"""The operator's sites: those of the config, those added through the socket, and their seeds.

The file stores the numbers of all sites, and the definitions of those that no config names. A
removed site keeps its pages and versions, but they are no longer visited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import structlog

from crawld.config.checks import SiteSeeds
from crawld.config.model import Config
from crawld.config.seeds import BadSeed, Seed, read_seeds
from crawld.config.site import SiteConfig
from crawld.config.views import PageViews, read_views
from crawld.core.units import DAY_S
from crawld.core.url import registrable_domain, split_url
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.importance import weigh_pages
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.frontier.site import ActiveSite, activate
from crawld.errors import OperatorError
from crawld.plugin_host.in_use import PluginsInUse, no_plugins
from crawld.store.engine.database import Database
from crawld.store.frontier import site as site_rows
from crawld.workers import THREADS, Workers

log = structlog.get_logger(__name__)

SEED_BATCH = 500
"""Seeds added in one write."""


class SiteRegistry:
    """The sites under crawl, from the config and from the socket.

    Attributes:
        config: the config in force.
        seeded: whether all seeds are in the frontier.
    """

    def __init__(
        self,
        state: CrawlState,
        database: Database,
        clock: Clock,
        *,
        source: str = "config",
        workers: Workers = THREADS,
        plugins: PluginsInUse | None = None,
    ) -> None:
        """Start without sites; `source` says where the sites of the config come from."""
        self.config = Config()
        self.seeded = False
        self._origins: dict[str, set[str]] = {}  # of the seeds of each site
        self._views: dict[str, PageViews] = {}
        self._state = state
        self._workers = workers
        self._database = database
        self._clock = clock
        self._day = clock.now() // DAY_S
        self._source = source
        self._plugins = plugins or no_plugins()

    async def adopt(self, config: Config, seeds_of: Mapping[str, SiteSeeds]) -> None:
        """Apply a config as a whole: add and update its sites, retire those it no longer names.

        Raises:
            ConfigError: a site cannot be activated; nothing is changed then.
        """
        self._plugins.check(config)
        now = self._clock.now()
        origins = {site.name: set(seeds_of[site.name].origins) for site in config.sites}
        # Read before the first write: a bad file must refuse the whole config.
        await self._workers.run(_check_sites, config, origins, now)
        views = await self._workers.run(_read_views, config.sites)
        definitions = {site.name: site.model_dump_json() for site in config.sites}
        await self._database.write(site_rows.adopt, definitions, source=self._source, at=now)
        self.config = config
        self._state.set_groups(config)
        self._origins, self._views = origins, views
        await self.refresh()

    async def refresh(self) -> None:
        """Apply the sites of the file and the config to the crawl."""
        now = self._clock.now()
        active = []
        for row in await self._database.read(site_rows.list_sites):
            definition = SiteConfig.model_validate_json(row.definition or "")
            origins = await self._seed_origins(definition)
            hosts = await self._seed_hosts(origins, row.site_id)
            active.append(
                activate(
                    self.config,
                    definition,
                    hosts,
                    origins,
                    site_id=row.site_id,
                    paused=row.paused,
                    now=now,
                    views=self._views.get(definition.name),
                    plugins=self._plugins,
                )
            )
        await self._state.set_sites(active)

    async def update_times(self) -> None:
        """Recompute what the time alone changes: quiet hours with summer time, quotas of a month.

        Sites are replaced only then: every URL that is named again would be judged again. This is
        done once a day, as limits of pages and of dates in URLs may permit what they refused.
        """
        now, state, active = self._clock.now(), self._state, self._state.active
        if now // DAY_S != self._day:
            self._day = now // DAY_S
            state.admission.forget()
        state.traffic.start_month(now)
        state.update_active()
        sites = [site.with_rules(self.config, now) for site in state.sites.values()]
        are_same = all(site.rules == state.sites[site.site_id].rules for site in sites)
        if not (are_same and state.active == active):
            await state.set_sites(sites)

    async def _seed_origins(self, definition: SiteConfig) -> set[str]:
        origins = self._origins.get(definition.name)
        if origins is None:
            origins = await self._workers.run(_origins_of, definition)
            self._origins[definition.name] = origins
        return origins

    async def _seed_hosts(self, origins: set[str], site_id: int) -> set[str]:
        """Return the hosts of a site's seeds, and those the seeds were redirected to."""
        own = _hosts_of(origins)
        domains = {registrable_domain(host) for host in own}
        stored = await self._database.read(site_rows.seed_hosts, site_id)
        return own | {host for host in stored if registrable_domain(host) in domains}

    async def add_seeds(self) -> None:
        """Add the seeds of every site to the frontier; a known one costs one look-up."""
        self.seeded = False
        waiting: list[tuple[ActiveSite, list[str]]] = []
        for site in list(self._state.sites.values()):
            iterator = read_seeds(site.config)
            while batch := await self._workers.run(_next_batch, iterator):
                waiting.append((site, [seed.url for seed in batch]))
                # A write waits a tenth of a second for others: sites with few seeds share one.
                if sum(len(urls) for _, urls in waiting) >= SEED_BATCH:
                    await self._add(waiting)
                    waiting = []
        await self._add(waiting)
        self.seeded = True

    async def _add(self, seeds: list[tuple[ActiveSite, list[str]]]) -> None:
        """Add seeds to the frontier, except those of sites that were removed meanwhile."""
        known = self._state.sites
        left = [(known[site.site_id], urls) for site, urls in seeds if site.site_id in known]
        await self._state.add_all_seeds(left)
        for site_id in list(self._state.sites):
            if (site := self._state.sites.get(site_id)) is not None:
                await weigh_pages(self._state, self._database, self._workers, site)

    # --- by the socket -------------------------------------------------------------------------

    async def add(self, definition: SiteConfig) -> ActiveSite:
        """Add a site that no config names; it survives a restart.

        Raises:
            OperatorError: there is a site of that name already.
        """
        known = await self._database.read(site_rows.by_name, definition.name)
        if known is not None and known.definition is not None:
            raise OperatorError(
                f"there is already a site {definition.name}",
                hint="add to it: crawlctl add --site NAME URL, or name another",
            )
        await self._database.write(
            site_rows.upsert,
            definition.name,
            definition.model_dump_json(),
            source="socket",
            at=self._clock.now(),
        )
        await self.refresh()
        site = self.by_name(definition.name)
        await self._state.add_seeds(site, [seed.url for seed in _good(read_seeds(definition))])
        return site

    async def remove(self, name: str) -> None:
        """Remove a site from the crawl; its pages and versions stay.

        Raises:
            OperatorError: no such site, or the config names it.
        """
        site = self.by_name(name)
        if any(each.name == name for each in self.config.sites):
            raise OperatorError(
                f"site {name} is in the config", hint="remove it there, then: crawlctl reload"
            )
        await self._database.write(site_rows.retire, site.name)
        await self.refresh()

    async def set_paused(self, name: str, *, paused: bool) -> None:
        """Pause or resume a site; the file remembers it.

        Raises:
            OperatorError: no such site.
        """
        self.by_name(name)
        await self._database.write(site_rows.set_paused, name, paused)
        await self.refresh()

    def by_name(self, name: str) -> ActiveSite:
        """Return an active site.

        Raises:
            OperatorError: no such site; names those there are.
        """
        for site in self._state.sites.values():
            if site.name == name:
                return site
        known = ", ".join(sorted(site.name for site in self._state.sites.values()))
        raise OperatorError(f"there is no site {name}", hint=f"known are: {known or 'none'}")


def _check_sites(config: Config, origins: Mapping[str, Iterable[str]], now: float) -> None:
    for site in config.sites:
        own = origins[site.name]
        activate(config, site, _hosts_of(own), own, site_id=0, paused=False, now=now)


def _read_views(sites: Iterable[SiteConfig]) -> dict[str, PageViews]:
    found = {}
    for site in sites:
        views = read_views(site)
        if views is None:
            continue
        found[site.name] = views
        for each in views.bad:
            log.warning("bad_views", source=each.source, line=each.line, reason=each.reason)
        log.info("views_read", site=site.name, pages=len(views.hashes), bad=views.bad_count)
    return found


def _origins_of(definition: SiteConfig) -> set[str]:
    return {split_url(seed.url).origin for seed in _good(read_seeds(definition))}


def _hosts_of(origins: Iterable[str]) -> set[str]:
    return {split_url(f"{origin}/").host for origin in origins}


def _good(found: Iterator[Seed | BadSeed]) -> Iterator[Seed]:
    return (seed for seed in found if isinstance(seed, Seed))


def _next_batch(iterator: Iterator[Seed | BadSeed]) -> list[Seed]:
    batch: list[Seed] = []
    for seed in iterator:
        if isinstance(seed, Seed):
            batch.append(seed)
        else:
            log.warning("bad_seed", source=seed.source, line=seed.line, reason=seed.reason)
        if len(batch) == SEED_BATCH:
            break
    return batch
