"""What runs beside the turns of a daemon: jobs, hint polls, policies' models, notifications.

A one-off mirror runs none of it. There it is made, and its 150 modules are imported, only when a
client of the control socket asks about it.
"""

from __future__ import annotations

import trio

from crawld.daemon.crawl.api_client import ApiClient
from crawld.daemon.crawl.context import CrawlContext
from crawld.daemon.crawl.loop import Crawl
from crawld.daemon.crawl.policy_loader import PolicyLoader
from crawld.daemon.hints.documents import DocumentFetcher
from crawld.daemon.hints.finders import HintParts, finders_of
from crawld.daemon.hints.poller import HintPoller
from crawld.daemon.hints.source import Poll
from crawld.daemon.jobs.allocate import AllocateJob
from crawld.daemon.jobs.analyse_copies import AnalyseCopiesJob
from crawld.daemon.jobs.audit import AuditJob
from crawld.daemon.jobs.canonical_urls import CanonicalUrlsJob
from crawld.daemon.jobs.dust.job import DustJob
from crawld.daemon.jobs.hints import HintsJob
from crawld.daemon.jobs.plugin_pages import PluginPagesJob
from crawld.daemon.jobs.present_freshness import PresentFreshness
from crawld.daemon.jobs.refit_models import RefitModelsJob
from crawld.daemon.jobs.refresh import RefreshJob
from crawld.daemon.jobs.replicas.job import ReplicasJob
from crawld.daemon.jobs.retention import RetentionJob
from crawld.daemon.jobs.runner import Job, JobRunner
from crawld.daemon.jobs.search_index import SearchIndexJob
from crawld.daemon.jobs.wiki_history.job import WikiHistoryJob
from crawld.daemon.jobs.wiki_parts.categories import WikiCategoriesJob
from crawld.daemon.jobs.wiki_parts.events import WikiEventsJob
from crawld.daemon.jobs.wiki_parts.job import WikiMembersJob
from crawld.daemon.notify.notifier import Notifier
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.daemon.supervise import supervise
from crawld.net.network import Network
from crawld.net.resolver import Resolver
from crawld.plugin_host.in_use import PluginsInUse
from crawld.store.changes.hint_source import SourceRow


class BackgroundParts:
    """The parts of a daemon that run beside its turns.

    Attributes:
        documents: fetches sitemaps, feeds and event streams.
        hint_poller: polls hint sources.
        jobs: runs jobs.
        notifier: tells receivers about events.
        present_freshness: the freshness of the mirror now.
    """

    def __init__(
        self,
        context: CrawlContext,
        crawl: Crawl,
        plugins: PluginsInUse,
        connectivity: Connectivity,
        resolver: Resolver,
        network: Network,
    ) -> None:
        self._context = context
        self._crawl = crawl
        self._plugins = plugins
        self.present_freshness = PresentFreshness(context)
        self.notifier = Notifier(context, resolver, network, plugins.supplied.notifiers)
        client = ApiClient(context, crawl, connectivity)
        self.documents = DocumentFetcher(context, crawl, connectivity)
        self._members = WikiMembersJob(context, client)
        self._wiki_categories = WikiCategoriesJob(context, client, list_again=self._list_members)
        self._wiki_events = WikiEventsJob(
            context, client, list_again=self._list_members, doubt=self._doubt_categories
        )
        self.hint_poller = self._hint_sources(client)
        crawl.robots.on_sitemaps = self.hint_poller.find_soon
        self._policy_loader = PolicyLoader(
            context, on_switched=self.hint_poller.acceptance.delivery.restore
        )
        self._allocate = AllocateJob(context, plugins.estimator(context.config()))
        self.jobs = JobRunner(context.database, context.clock, self._jobs(client), rng=context.rng)

    def _hint_sources(self, client: ApiClient) -> HintPoller:
        parts = HintParts(
            *(self._context, client, self._wiki_changed, self._accept_hints),
            *(self._crawl.robots, self.documents),
        )
        return HintPoller(self._context, finders_of(self._plugins.host, parts))

    def _jobs(self, client: ApiClient) -> list[Job]:
        context = self._context
        return [
            WikiHistoryJob(context, client, on_facts=self._sites_or_wikis_changed),
            HintsJob(self.hint_poller, context.database),
            self._members,
            self._wiki_events,
            self._wiki_categories,
            RetentionJob(context),
            AnalyseCopiesJob(context),
            RefitModelsJob(context, on_refitted=self._models_refitted),
            self._allocate,
            RefreshJob(context),
            AuditJob(context, self.present_freshness),
            ReplicasJob(context, self._crawl.leases),
            DustJob(context),
            SearchIndexJob(context),
            CanonicalUrlsJob(context),
            *self._plugin_jobs(),
        ]

    def _plugin_jobs(self) -> list[Job]:
        hooks = self._plugins.host.hooks("find_pages")
        return [PluginPagesJob(self._context, hooks)] if hooks else []

    # --- life ------------------------------------------------------------------------------------

    async def load_members(self) -> None:
        """Load the titles of the parts of wikis, before pages are handed out."""
        await self._members.load()

    async def begin(self, nursery: trio.Nursery) -> None:
        """Start everything in a nursery."""
        await self.hint_poller.restore()
        nursery.start_soon(self.jobs.run)
        nursery.start_soon(supervise, "hint_poller", self.hint_poller.run)
        nursery.start_soon(supervise, "policy_loader", self._policy_loader.run)
        nursery.start_soon(supervise, "notifier", self.notifier.run)
        nursery.start_soon(supervise, "present_freshness", self.present_freshness.run)

    def config_changed(self) -> None:
        """Look at the config again after a reload."""
        self.notifier.config_changed()
        self._sites_or_wikis_changed()
        self.jobs.run_soon(RefreshJob.name)

    # --- what one part tells another -------------------------------------------------------------

    async def _accept_hints(self, row: SourceRow, result: Poll) -> None:
        await self.hint_poller.accept(row, result)

    def _wiki_changed(self, gap: bool) -> None:
        self._wiki_events.note_reports()
        names = (self._wiki_events.name, "backfill", *([self._members.name] if gap else []))
        for name in names:
            self.jobs.run_soon(name)

    def _list_members(self) -> None:
        self.jobs.run_soon(self._members.name)

    def _doubt_categories(self, wiki_id: int) -> None:
        self._wiki_categories.doubt(wiki_id)
        self.jobs.run_soon(self._wiki_categories.name)

    def _sites_or_wikis_changed(self) -> None:
        """Notify subscribers that a wiki was identified or sites changed."""
        self.hint_poller.find_soon()
        self.jobs.run_soon(self._members.name)

    def _models_refitted(self) -> None:
        """Reload policies and prices after a refit of the models."""
        self._policy_loader.reload()
        self._allocate.reset()
