"""Put the rules of URLs that show one page in force."""

from __future__ import annotations

from crawld.daemon.crawl.state import CrawlState
from crawld.store.engine.database import Database
from crawld.store.frontier import dust


async def load_dust_rules(state: CrawlState, database: Database) -> None:
    """Put the rules in force; origins of sites that want none have none."""
    rules = await database.read(dust.applied_rules)
    changed = {
        origin: found
        for origin, found in rules.items()
        if wants_dust_rules(state, origin.partition("://")[2].partition(":")[0])
    }
    state.admission.dust.set(changed)


def wants_dust_rules(state: CrawlState, host_name: str) -> bool:
    """Return whether all sites of a host want rules."""
    host = state.hosts.get(host_name)
    sites = [] if host is None else [state.sites.get(key) for key in host.pages]
    return bool(sites) and all(site is None or site.config.dust for site in sites)
