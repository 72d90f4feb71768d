"""What background work on a crawl shares: state, file, clock, threads, config and the like."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from crawld.config.model import Config
from crawld.daemon.analyser import Analyser
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.state import CrawlState
from crawld.store.engine.database import Database
from crawld.workers import Workers


@dataclass(frozen=True, slots=True)
class CrawlContext:
    """The parts of a daemon that its background work uses.

    Attributes:
        config: returns the config in force.
    """

    state: CrawlState
    database: Database
    clock: Clock
    workers: Workers
    analyser: Analyser
    rng: random.Random
    config: Callable[[], Config]


class BackgroundWork:
    """Base of jobs, hint sources and loaders: keeps the parts of their context."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self._state = context.state
        self._database = context.database
        self._clock = context.clock
        self._workers = context.workers
        self._analyser = context.analyser
        self._rng = context.rng
        self._config = context.config

    def has_work(self) -> bool:
        """Whether a run of a job may find anything; see `Job.has_work`."""
        return True
