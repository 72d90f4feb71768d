"""The daemon: loads its state from an open file, runs all tasks, and shuts down cleanly.

Start: store sites and seeds ▸ load hosts and page queues ▸ serve turns, and start listeners beside
them. Every known host waits its full delay first, counted from the lock of the file.

Shutdown: start no more turns, serve no more readers ▸ wait for turns under way ▸ commit their
visits ▸ cancel the rest, waiting for no thread that only computes. A second signal cancels turns.

`Daemon.run` holds the nursery of all long-lived tasks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import structlog
import trio

from crawld.config.derive import user_agent
from crawld.config.load import load
from crawld.config.model import Config
from crawld.config.reload import restart_needed, runtime_changes
from crawld.daemon.analyser import Analyser
from crawld.daemon.crawl.context import CrawlContext
from crawld.daemon.crawl.dust_rules import load_dust_rules
from crawld.daemon.crawl.growth_keeper import GrowthKeeper
from crawld.daemon.crawl.hand_over import hand_over_members
from crawld.daemon.crawl.host_loader import HostLoader
from crawld.daemon.crawl.link_verdicts import LinkVerdicts
from crawld.daemon.crawl.loop import Crawl
from crawld.daemon.crawl.page_profiles import PageProfiles
from crawld.daemon.crawl.restore import restore_hosts
from crawld.daemon.crawl.site_registry import SiteRegistry
from crawld.daemon.disk_watch import watch_space, watch_writes
from crawld.daemon.fetch.metered_fetcher import month_of
from crawld.daemon.freeze_watch import Evidence, FreezeWatch
from crawld.daemon.freshness_reader import FreshnessReader
from crawld.daemon.jobs.search_index import SearchIndexJob
from crawld.daemon.memory_keeper import end_slow_bodies, memory_budget, return_stale_memory
from crawld.daemon.phase import Phase
from crawld.daemon.plugged import guarded
from crawld.daemon.process import raise_file_limit, share_files
from crawld.daemon.quarantine import Quarantine
from crawld.daemon.schedule.connectivity import Connectivity
from crawld.daemon.signals import obey_signals
from crawld.daemon.stall_meter import StallMeter
from crawld.daemon.start import Start, crawl_settings
from crawld.daemon.supervise import supervise
from crawld.daemon.tidy import tidy
from crawld.errors import ConfigError
from crawld.marks import MarksFile
from crawld.net.fetcher import MAX_CONNECTIONS, Fetcher
from crawld.net.lookup_slots import LOOKUPS_AT_ONCE
from crawld.net.resolver import CachedResolver
from crawld.plugin_host.in_use import PluginsInUse
from crawld.store.engine.database import Database
from crawld.store.frontier import event, traffic
from crawld.version import crawld_version

if TYPE_CHECKING:
    from crawld.daemon.background import BackgroundParts

log = structlog.get_logger(__name__)

MAX_CONTROL_CONNECTIONS = 256
"""Open connections to the control socket, most of them of `crawlctl watch`."""

DRAIN_S = 5.0
"""How long turns may take to end after a signal; an ordinary one takes less than a second."""

DONE_CHECK_S = 0.1
"""How often a one-off mirror checks whether it is done."""

ONCE_WAIT_S = 120.0
"""A one-off mirror does not wait longer than this for a host that is closed or failing."""


class Daemon:
    """One running daemon; made by `run_daemon`.

    Attributes:
        start: config, seeds and environment at start.
        state: sites, hosts and page queues.
        context: shared with background work.
        analyser: runs every analysis of remote bytes.
        budget: memory of what is fetched and analysed.
        plugins: the plug-ins in use.
        stall_meter: how long the event loop stood still, and what held it.
        freshness: the freshness of the mirror over the last day and week.
        quarantine: what must not be analysed.
        files: shares of connections and lookups in the limit of open files.
        started_at: Unix seconds.
        web_url: address of the web listener; None: it has none, or not yet.
        phase: `starting`, `running`, `draining` or `stopping`.
        readers_scope: what only serves readers of the mirror; cancelled when it drains.
    """

    def __init__(
        self,
        start: Start,
        database: Database,
        marks: MarksFile,
        evidence: Evidence | None,
        plugins: PluginsInUse,
        *,
        fresh: bool,
    ) -> None:
        self.start = start
        self.database = database
        self.clock = clock = start.environment.clock
        self.started_at = clock.now()
        self.web_url: str | None = None
        self.phase: Phase = "starting"
        self._config = start.config
        self._workers = workers = start.environment.workers
        self.network = start.environment.network_for(start.config)
        self.files = share_files(
            raise_file_limit(),
            lookups=LOOKUPS_AT_ONCE,
            control=MAX_CONTROL_CONNECTIONS,
            web=start.config.web.max_connections if start.config.web.listen else 0,
        )
        self.resolver = resolver = CachedResolver(
            self.network, hosts=start.config.dns.hosts, at_once=self.files.lookups
        )
        self.budget = memory_budget(start.config)
        self.fetcher = Fetcher(
            user_agent=user_agent(start.config),
            resolver=resolver,
            network=self.network,
            http2=start.config.fetch.http2,
            max_connections=min(MAX_CONNECTIONS, self.files.outbound),
            budget=self.budget,
            marks=marks,
        )
        self.connectivity = Connectivity(resolver)
        locked_at = None if fresh else database.opened_at
        self.plugins = plugins
        settings = crawl_settings(start, self.budget, self.files, plugins, locked_at=locked_at)
        self._marks = marks
        self._evidence = evidence
        self.quarantine = Quarantine(database, clock)
        self.stall_meter = StallMeter()
        self.analyser = Analyser(workers, marks, self.stall_meter, self.budget, clock.cpu)
        rng, agent = start.environment.rng, user_agent(start.config)
        self.crawl = Crawl(
            *(database, self.fetcher, self.connectivity, clock),
            *(settings, self.analyser, self.quarantine),
            PageProfiles(database, self.analyser, workers, rng),
            plugins,
            agent,
        )
        self.state = self.crawl.state
        self.site_registry = SiteRegistry(
            self.state, database, clock, source=start.source, workers=workers, plugins=plugins
        )
        self._growth_keeper = GrowthKeeper(self.state.growth, database)
        self._link_verdicts = LinkVerdicts(self.state, database)
        self._host_loader = HostLoader(self.state, database)
        self.freshness = FreshnessReader(database, clock)
        self.context = CrawlContext(
            *(self.state, database, clock, workers, self.analyser, rng),
            lambda: self._config,
        )
        self._turns_scope = trio.CancelScope()
        self._opening_scope = trio.CancelScope()
        self.readers_scope = trio.CancelScope()

    @cached_property
    def background(self) -> BackgroundParts:
        """What runs beside the turns; in a one-off mirror it is made only if a client asks."""
        from crawld.daemon.background import BackgroundParts

        parts = self.connectivity, self.resolver, self.network
        return BackgroundParts(self.context, self.crawl, self.plugins, *parts)

    @property
    def version(self) -> str:
        """The version of crawld."""
        return crawld_version()

    @property
    def config(self) -> Config:
        """The config in force."""
        return self._config

    @property
    def socket_path(self) -> Path:
        """The path of the control socket."""
        return self.start.socket_path

    # --- life ----------------------------------------------------------------------------------

    async def run(
        self,
        listeners: Sequence[ListenerTask],
        watch: Watch,
        task_status: trio.TaskStatus[Daemon] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run until shut down; report started once the listeners accept clients.

        Args:
            listeners: servers to start beside the first turns, in this order.
            watch: runs from the start report until the end, while the file is still open.
        """
        measures = not self.clock.is_simulated
        with (
            self.stall_meter.installed(measures=measures),
            guarded(self.plugins, self.stall_meter),
        ):
            await self._run(listeners, watch, task_status)

    async def _run(
        self, listeners: Sequence[ListenerTask], watch: Watch, task_status: trio.TaskStatus[Daemon]
    ) -> None:
        async with contextlib.aclosing(self.fetcher), trio.open_nursery() as nursery:
            if self._evidence is not None:
                watch_loop = FreezeWatch(
                    self._evidence, self.start.config.daemon.freeze_s, self._marks.beat
                )
                nursery.start_soon(watch_loop.run)
            await nursery.start(self.database.run_writer)
            await self._settle_quarantine()
            await self._fill()
            nursery.start_soon(self.resolver.run)
            nursery.start_soon(supervise, "arrivals", self.fetcher.arrivals.run)
            nursery.start_soon(self.connectivity.run, self.crawl.schedule)
            nursery.start_soon(watch_writes, self.database, self.crawl.schedule)
            nursery.start_soon(
                watch_space,
                self.database,
                self.crawl.schedule,
                lambda: self._config.store.min_free_bytes,
            )
            nursery.start_soon(supervise, "growth_keeper", self._growth_keeper.run)
            nursery.start_soon(supervise, "link_verdicts", self._link_verdicts.run)
            nursery.start_soon(supervise, "host_loader", self._host_loader.run)
            if not self.clock.is_simulated:
                nursery.start_soon(self.stall_meter.beat)
            parts = self.fetcher, self.database, self.crawl.robots, self.site_registry
            nursery.start_soon(tidy, *parts, self._workers, self.clock)
            nursery.start_soon(return_stale_memory, self.budget, self._workers)
            nursery.start_soon(end_slow_bodies, self.budget)
            if not self.clock.is_simulated:
                nursery.start_soon(obey_signals, self)
            await nursery.start(self.crawl.recorder.run)
            nursery.start_soon(self.site_registry.add_seeds)
            if not self.start.once:
                await self.background.begin(nursery)
                nursery.start_soon(supervise, "freshness_reader", self.freshness.run)
            elif self.state.settings.search and self.state.settings.analyse:
                job = SearchIndexJob(self.context)
                nursery.start_soon(supervise, "search_index", job.follow)
            nursery.start_soon(self._open, listeners, watch, nursery, task_status)
            with self._turns_scope:
                await self.crawl.schedule.run()
            self.phase = "stopping"
            self.analyser.drop(running_until=trio.current_time())
            with trio.CancelScope(shield=True):
                await self.crawl.recorder.drain()
                # While the disk is full a write waits: the socket and the signals are served.
                await self._growth_keeper.store()
                await self.database.flush()
            nursery.cancel_scope.cancel()
        log.info("stopped")

    async def _open(
        self,
        listeners: Sequence[ListenerTask],
        watch: Watch,
        nursery: trio.Nursery,
        task_status: trio.TaskStatus[Daemon],
    ) -> None:
        """Start the listeners and report started; a shutdown before that ends it."""
        with self._opening_scope:
            for listener in listeners:
                await nursery.start(listener, self)
        task_status.started(self)
        if self.phase != "starting":
            return
        self.phase = "running"
        log.info("started", db=str(self.database.path), socket=str(self.socket_path))
        nursery.start_soon(watch, self)
        if self.start.once:
            nursery.start_soon(self._end_when_done)

    async def _settle_quarantine(self) -> None:
        evidence = self._evidence
        await self.quarantine.settle(self._marks, evidence.left if evidence else "")
        if evidence is not None:
            evidence.begin()

    async def _fill(self) -> None:
        await self._link_verdicts.prepare()
        month = month_of(self.clock.now())
        self.state.traffic.load(month, await self.database.read(traffic.of_month, month))
        await self.database.write(event.lift_ids, self.clock.now())
        await self.site_registry.adopt(self._config, self.start.seeds)
        if self.start.once:
            await self.state.wiki_scope.load(self.database, self.state.sites)
            await hand_over_members(self.state, self.database)
        else:
            await self.background.load_members()
        await self._growth_keeper.restore()
        await restore_hosts(self.state, self.database, self.clock)
        await load_dust_rules(self.state, self.database)

    def shutdown(self) -> None:
        """Start no more turns; `run` returns when the turns under way are recorded.

        Turns that take longer than `DRAIN_S` are cancelled, since a server may trickle for minutes.
        """
        if self.phase in ("draining", "stopping"):
            return
        self._turns_scope.deadline = trio.current_time() + DRAIN_S
        self.phase = "draining"
        self._opening_scope.cancel()
        self.readers_scope.cancel()
        self.crawl.schedule.stop()
        self.analyser.drop(running_until=self._turns_scope.deadline)

    def stop_now(self) -> None:
        """Shut down without waiting for turns; completed fetches are recorded if there is space."""
        self.shutdown()
        self._turns_scope.cancel()
        self.analyser.drop(running_until=trio.current_time())
        if self.database.stalled is not None:
            self.database.give_up()

    def set_paused(self, *, paused: bool) -> None:
        """Pause or resume everything, also after a drain; a restart resumes."""
        if paused:
            self.crawl.schedule.pause("operator")
            return
        self.crawl.schedule.resume("operator")
        self.crawl.schedule.resume("drain")

    async def drain(self) -> None:
        """Pause, and return when nothing is under way and everything is in the file."""
        self.crawl.schedule.pause("drain")
        await self.crawl.schedule.wait_idle()
        await self.crawl.recorder.drain()

    async def reload(self) -> list[str]:
        """Read the config file again and apply it as a whole.

        Returns:
            The keys that changed.

        Raises:
            ConfigError: there is no file, it is invalid, or a change needs a restart; nothing has
                changed.
        """
        path = self.start.config_path
        if path is None:
            raise ConfigError("no config file to reload", hint="start with: crawld run -c FILE")
        loaded = await self._workers.run(load, path)
        if needed := restart_needed(self._config, loaded.config):
            raise ConfigError(
                f"only a restart can change {', '.join(needed)}", hint="nothing was reloaded"
            )
        changed = runtime_changes(self._config, loaded.config)
        await self.site_registry.adopt(loaded.config, loaded.seeds)
        self._config = loaded.config
        self.background.config_changed()
        await self.site_registry.add_seeds()
        log.info("reloaded", changed=changed)
        return changed

    # --- watching ------------------------------------------------------------------------------

    async def _end_when_done(self) -> None:
        while True:
            await trio.sleep(DONE_CHECK_S)
            is_done = self.site_registry.seeded and await self.crawl.is_done(ONCE_WAIT_S)
            if is_done and not await self._link_verdicts.settle_all():
                self.shutdown()
                return


class ListenerTask(Protocol):
    """A server that the daemon starts, such as the control socket."""

    async def __call__(self, daemon: Daemon, task_status: trio.TaskStatus[None]) -> None:
        """Serve until cancelled; report once clients can connect."""


Watch: TypeAlias = Callable[[Daemon], Awaitable[None]]
"""A task that runs beside a daemon, for example a progress view."""
