"""The `dust` job: learn which URLs of an origin show the same page, and hide all but one.

A run, for each origin of enough pages: compare pages that were visited for it ▸ go on with the
trials, if its URLs have grown or trials are open ▸ hide what the rules in force hide, resume what
they hide no more ▸ look again at some of the hidden pages.
"""

from __future__ import annotations

from typing import Final

import structlog

from crawld.core.dust.rules import DustRule, HostRules
from crawld.core.units import DAY_S
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.dust_rules import load_dust_rules, wants_dust_rules
from crawld.daemon.jobs.dust.asking import PageAsking
from crawld.daemon.jobs.dust.hiding import IDS_AT_ONCE, OriginHiding
from crawld.daemon.jobs.dust.looking import OriginLooks
from crawld.daemon.jobs.dust.origin_urls import MOST_READ, OriginUrls
from crawld.daemon.jobs.dust.page_texts import PageTexts
from crawld.daemon.jobs.dust.plan import OriginPlan
from crawld.daemon.jobs.dust.trials import OriginTrials
from crawld.daemon.pacing import PacedReader
from crawld.store.frontier import dust, dust_page
from crawld.store.frontier.dust import DustOrigin
from crawld.store.frontier.dust_page import KnownUrl

log = structlog.get_logger(__name__)

LEAST_PAGES: Final = 100
"""Pages of a host from which on its URLs are searched for rules."""

GROWTH: Final = 1.25
"""Growth of a host from one search for likely rewrites to the next."""

RETRY_S: Final = 28 * DAY_S
"""After this time a rule that failed may be tried again."""

REST_FACTOR: Final = 2.0


class DustJob(BackgroundWork):
    """The `dust` job."""

    name = "dust"

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._paced = PacedReader(context.database, REST_FACTOR)
        self._texts = PageTexts(context)
        self._asking = PageAsking(context)
        self._trials = OriginTrials(context, self._texts, self._asking)
        self._hiding = OriginHiding(context, self._asking)
        self._looks = OriginLooks(context, self._texts, self._asking, self._trials)
        self._plan = OriginPlan(context.clock)
        self._in_force: dict[int, frozenset[DustRule]] = {}
        self._seen: dict[int, int] = {}
        self._counts = {"origins": 0, "rules": 0, "trials": 0, "hidden": 0}

    @property
    def every_s(self) -> float:
        """Pause between two runs, seconds."""
        return self._plan.every_s

    async def progress(self) -> dict[str, int]:
        """Return counts of origins, rules, trials and hidden pages."""
        return dict(self._counts)

    async def run(self) -> str:
        """Search for rules once; does nothing in a one-off mirror."""
        if self._state.settings.once:
            return "skipped in a one-off mirror"
        before = self._clock.now() - RETRY_S
        if await self._database.read(dust.has_refused, before):
            await self._database.write(dust.drop_refused, before)
        origins = await self._database.read(dust.list_origins, LEAST_PAGES)
        asked = 0
        for origin in self._plan.due(origins):
            await self._examine(origin)
            self._texts.forget()
            visits = self._trials.take_asked()
            self._plan.examined(origin, visits)
            asked += visits
        self._plan.end_run(origins)
        await load_dust_rules(self._state, self._database)
        await self._count(len(origins))
        return (
            f"{self._counts['origins']} origins, {self._counts['rules']} rules,"
            f" {self._counts['trials']} trials, {self._counts['hidden']} pages hidden,"
            f" {asked} visits asked for"
        )

    async def _count(self, origins: int) -> None:
        rows = await self._database.read(dust.list_rules)
        hidden = await self._database.read(dust_page.count_hidden)
        self._counts = {
            "origins": origins,
            "rules": sum(row.applies for row in rows),
            "trials": sum(row.status == "trial" for row in rows),
            "hidden": sum(hidden.values()),
        }

    async def _examine(self, origin: DustOrigin) -> None:
        if not wants_dust_rules(self._state, origin.host):
            if origin.has_rules:
                await self._hiding.reconsider(origin, HostRules())
                self._in_force.pop(origin.origin_id, None)
            return
        rows = await self._database.read(dust.list_rules, origin.origin_id)
        before = HostRules((row.rule for row in rows if row.applies), origin.sections)
        if before:
            await self._hiding.count_urls(origin)  # the daemon has started with rules
            await self._looks.compare_visited(origin, before)
        await self._looks.settle(origin, rows, before)
        rows = await self._database.read(dust.list_rules, origin.origin_id)
        rules = HostRules((row.rule for row in rows if row.applies), origin.sections)
        has_grown = origin.pages >= GROWTH * origin.read_pages
        if has_grown or any(row.status == "trial" for row in rows):
            urls = await self._read_urls(origin)
            await self._trials.run(origin, rows, urls)
            rows = await self._database.read(dust.list_rules, origin.origin_id)
            [origin] = [
                one
                for one in await self._database.read(dust.list_origins, LEAST_PAGES)
                if one.origin_id == origin.origin_id
            ] or [origin]
            rules = HostRules((row.rule for row in rows if row.applies), origin.sections)
        if rules.rules != before.rules:
            log.info("dust_rules_changed", origin=origin.origin, rules=len(rules.rules))
        replaced = self._state.admission.dust.take_replaced(origin.origin)
        if rules:
            await self._hiding.count_urls(origin)
        await load_dust_rules(self._state, self._database)
        is_new = self._in_force.get(origin.origin_id) != rules.rules
        if is_new:
            # The operator may have revoked a rule since the last run.
            await self._hiding.reconsider(origin, rules)
        if rules:
            await self._hiding.keep_replaced(origin, rules, replaced)
            seen = 0 if is_new else self._seen.get(origin.origin_id, 0)
            self._seen[origin.origin_id] = await self._hiding.hide(origin, rules, seen)
            await self._looks.look(origin, rows, rules)
        self._in_force[origin.origin_id] = rules.rules

    async def _read_urls(self, origin: DustOrigin) -> OriginUrls:
        first, last = await self._database.read(dust_page.page_range, origin.host_id)
        pages: list[KnownUrl] = []
        for after in range(first - 1, last, IDS_AT_ONCE):
            up_to = min(after + IDS_AT_ONCE, last)
            pages += await self._paced.read(dust_page.urls, origin.origin_id, after, up_to)
            if len(pages) >= MOST_READ:
                break
        return await self._workers.run(OriginUrls, pages, abandon_on_cancel=True)
