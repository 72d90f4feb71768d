"""The replicas job on a database without a crawl: its context, and what it asks of the crawl."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from crawld.config.model import Config
from crawld.daemon.analyser import Analyser
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.context import CrawlContext
from crawld.daemon.crawl.replica_leases import ReplicaLeases
from crawld.daemon.crawl.state import CrawlState
from crawld.daemon.jobs.replicas.job import ReplicasJob
from crawld.store.engine.database import Database


@dataclass(slots=True)
class RequestedPages:
    """Takes the place of the page queues: notes which pages the job wants to be visited soon."""

    page_ids: set[int] = field(default_factory=set)

    def add_new(self, page_ids: Iterable[int], *, soon: bool = False) -> None:
        """Note pages that were never visited."""
        if soon:
            self.page_ids.update(page_ids)

    def visit_until(self, page_id: int, due: object) -> None:
        """Note a page that is to be visited again."""
        self.page_ids.add(page_id)

    def take(self) -> set[int]:
        """Return the pages noted since the last call."""
        taken, self.page_ids = self.page_ids, set()
        return taken


class _EveryHost(dict[str, object]):
    """Has a host under every name."""

    def get(self, key: str, default: object = None) -> object:
        return SimpleNamespace(name=key, slot=None)

    def __contains__(self, key: object) -> bool:
        return True


def replicas_job(
    database: Database, site_id: int, wall: Callable[[], float], seed: int
) -> tuple[ReplicasJob, RequestedPages]:
    """Return the job without its storm limit, and the pages that it requests."""
    context, requested = replicas_context(database, site_id, wall, seed)
    leases = cast("ReplicaLeases", SimpleNamespace(grant=lambda rows: list(rows)))
    return ReplicasJob(context, leases), requested


def replicas_context(
    database: Database, site_id: int, wall: Callable[[], float], seed: int
) -> tuple[CrawlContext, RequestedPages]:
    """Return the context of the job, and the pages that it requests."""
    requested = RequestedPages()
    state: Any = SimpleNamespace(
        settings=SimpleNamespace(once=False),
        sites={site_id: SimpleNamespace(is_weighted=False)},
        hosts=_EveryHost(),
        pages_of=lambda host, site_id: requested,
        # The crawl sees in the database that a page rests no more.
        resume_pages=lambda host_name, resumed: None,
        schedule=SimpleNamespace(wake=lambda slot: None),
    )
    config = Config()
    limits = config.replicas.model_copy(update={"storm_share": 1.0})
    config = config.model_copy(update={"replicas": limits})
    context = CrawlContext(
        state=cast("CrawlState", state),
        database=database,
        clock=Clock(wall=wall),
        workers=database.workers,
        analyser=Analyser(database.workers),
        rng=random.Random(seed),
        config=lambda: config,
    )
    return context, requested
