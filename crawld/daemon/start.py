"""What a daemon is started with, and the settings of its core loop that follow from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crawld.config.checks import SiteSeeds
from crawld.config.model import Config
from crawld.daemon.crawl.state import CrawlSettings
from crawld.daemon.environment import Environment
from crawld.daemon.process import FileShares
from crawld.memory import MemoryBudget
from crawld.plugin_host.in_use import PluginsInUse
from crawld.store.engine.lock import DatabaseLock

KEYS_DIVISOR = 32
"""Keys of packed pages take one part in this many of `max_memory`: 1 million of 256 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a daemon is started with.

    Attributes:
        config: the config in force at start.
        seeds: its checked seeds, by site name.
        config_path: the file to reload; None: there is none.
        source: where the sites come from: `config` or `command_line`.
        once: end when every admitted page was visited.
        socket: path of the control socket; None: as configured.
        own_process: whether the process is the daemon's alone, and ends when it freezes.
        lock: of the database, if it is taken already; the daemon releases it.
        lock_held_s: for how long it has been held.
        environment: clock, randomness, network and threads.
    """

    config: Config
    seeds: Mapping[str, SiteSeeds]
    config_path: Path | None = None
    source: str = "config"
    once: bool = False
    socket: Path | None = None
    own_process: bool = False
    lock: DatabaseLock | None = None
    lock_held_s: float = 0.0
    environment: Environment = field(default_factory=Environment)

    @property
    def socket_path(self) -> Path:
        """The path of the control socket: named, configured, or beside the database."""
        daemon = self.config.daemon
        return self.socket or daemon.socket or daemon.db.with_suffix(".sock")


def crawl_settings(
    start: Start,
    budget: MemoryBudget,
    files: FileShares,
    plugins: PluginsInUse,
    *,
    locked_at: float | None,
) -> CrawlSettings:
    """Return the settings of the core loop.

    Args:
        budget: memory of what is fetched and analysed.
        files: shares of connections in the limit of open files.
        plugins: supply policies.
        locked_at: when (trio clock) the database was locked; None: it is new, so that no address
            had a request before.
    """
    config = start.config
    address_delay_s = config.politeness.address_delay_s
    if address_delay_s is None:
        address_delay_s = config.politeness.host_delay_s / 10
    return CrawlSettings(
        max_in_flight=min(budget.shares.max_in_flight, files.outbound),
        gather_s=config.store.batch_max_age_s / 2,
        records_bytes=budget.shares.records_bytes,
        robots_bytes=budget.shares.robots_bytes,
        keys_bytes=budget.shares.limit_bytes // KEYS_DIVISOR,
        discovery_share=config.schedule.discovery_share,
        min_revisit_s=config.schedule.min_revisit_s,
        once=start.once,
        address_open_at=-math.inf if locked_at is None else locked_at + address_delay_s,
        requisite_share=config.schedule.requisite_share,
        confirm_pages=0 if start.once else config.content.confirm_pages,
        check_share=config.content.check_share,
        analyse=config.content.analyse,
        search=config.content.search,
        policies=plugins.supplied.policies,
    )
