"""The `canonical_urls` job: rename stored pages after a change of the rules for canonical URLs.

It runs while the crawl goes on, in slices with rests, and goes on after a restart where it was:
first the rows, then the packed pages. A visit under way keeps the URL it has; the next takes the
new one. While all pages follow the rules, a run is one look-up.
"""

from __future__ import annotations

from typing import Final

from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.pacing import Pace
from crawld.store.frontier import packed_list, packed_urls
from crawld.store.versions import canonical_urls
from crawld.store.versions.canonical_urls import PART_PAGES

EVERY_S: Final = 600.0
"""Longest time until a reload that lets a site sort its parameters takes effect on known pages."""

REST_FACTOR: Final = 3.0
"""Rest after each slice, as a multiple of its work."""


class CanonicalUrlsJob(BackgroundWork):
    """The `canonical_urls` job."""

    name = "canonical_urls"
    every_s = EVERY_S

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._examined = self._renamed = self._joined = 0
        self._finished: str | None = None

    def has_work(self) -> bool:
        """Whether other rules are in force than those of the last run."""
        return canonical_urls.wanted_rules(self._sorting()) != self._finished

    def _sorting(self) -> frozenset[int]:
        sites = self._state.sites.items()
        return frozenset(key for key, site in sites if site.config.sort_query)

    async def run(self) -> str:
        """Rename every page whose URL does not follow the rules in force."""
        sorting = self._sorting()
        rules = canonical_urls.wanted_rules(sorting)
        after = self._database.look_up(canonical_urls.begin, rules)
        if after is None:
            self._finished = rules
            return "all URLs are canonical"
        before = self._renamed, self._joined
        pace = Pace(REST_FACTOR)
        while after < packed_list.FIRST_NUMBER:
            found = await self._database.read(canonical_urls.next_slice, after, sorting)
            if found.up_to is None:
                break
            for at in range(0, len(found.new_urls), PART_PAGES):
                part = found.new_urls[at : at + PART_PAGES]
                done = await self._database.write(canonical_urls.rename, part)
                self._renamed += done.renamed
                self._joined += done.joined
            after = found.up_to
            await self._database.write(canonical_urls.put_cursor, rules, after)
            self._examined += 1
            await pace.rest()
        await self._rename_packed(rules, max(after - packed_list.FIRST_NUMBER, 0), sorting)
        await self._database.write(canonical_urls.finish, rules)
        self._finished = rules
        renamed, joined = self._renamed - before[0], self._joined - before[1]
        return f"{renamed} pages renamed, {joined} joined with others"

    async def _rename_packed(self, rules: str, after: int, sorting: frozenset[int]) -> None:
        """Rename packed pages, block by block; their cursor is above all page_ids."""
        pace = Pace(REST_FACTOR)

        def new_url(site_id: int, url: str) -> str:
            return canonical_urls.in_force(url, in_order=site_id in sorting)

        while (
            found := await self._database.read(packed_urls.next_block, after, new_url)
        ) is not None:
            after, is_changed = found
            if is_changed:
                done = await self._database.write(packed_urls.rename_in, after, new_url)
                self._renamed += done.renamed
                self._joined += done.dropped
                cursor = packed_list.FIRST_NUMBER + after
                await self._database.write(canonical_urls.put_cursor, rules, cursor)
            self._examined += 1
            await pace.rest()

    async def progress(self) -> dict[str, int]:
        """Return counts since the start."""
        return {"slices": self._examined, "renamed": self._renamed, "joined": self._joined}
