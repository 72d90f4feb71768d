"""Which sites use a wiki: they say `api = true`, and have seeds or pages on its origin.

A wiki is asked once for all of them. Sites with pages join when the wiki is detected; sites with
seeds join here, so that a site whose only seed is a page of another site finds its wiki too.
"""

from __future__ import annotations

from collections.abc import Mapping

from crawld.daemon.frontier.site import ActiveSite
from crawld.store.changes import wiki
from crawld.store.changes.wiki import WikiRow
from crawld.store.engine.database import Database


async def update_wiki_sites(database: Database, sites: Mapping[int, ActiveSite]) -> list[WikiRow]:
    """Let sites join and leave the known wikis, as configured now; return all wikis."""
    rows = await database.read(wiki.list_wikis)
    permitted = {site_id for site_id, site in sites.items() if site.config.api}
    seeded: dict[str, set[int]] = {row.origin: set() for row in rows}
    for site_id in permitted:
        for origin in seeded.keys() & sites[site_id].seed_origins:
            seeded[origin].add(site_id)
    changed = False
    for row in rows:
        joining, before = seeded[row.origin], set(row.site_ids)
        if not (joining <= before <= permitted):
            changed = True
            await database.write(
                wiki.update_sites, row.wiki_id, permitted=permitted, joining=joining
            )
    return await database.read(wiki.list_wikis) if changed else rows
