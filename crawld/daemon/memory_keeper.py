"""The memory budget of the daemon: how large it is, and freed memory that must leave the process.

glibc keeps freed blocks in its heaps: after a page of a million tags hundreds of megabytes. They
count as used (`MemoryPool.stale_bytes`) until they are returned to the system, which is done on a
thread: at once when a fetch or an analysis waits for them, else some seconds later.
"""

from __future__ import annotations

from typing import Final

import structlog
import trio

from crawld.config.model import Config
from crawld.daemon.machine_memory import DEFAULT_SHARE, machine_memory_bytes
from crawld.daemon.process import return_heap_memory
from crawld.memory import LEAST_BYTES, MIB, MemoryBudget, MemoryShares
from crawld.workers import Workers

log = structlog.get_logger(__name__)

PATIENCE_S: Final = 5.0
"""How long freed memory is kept for the next page before it is returned."""

SLOW_S: Final = 1.0
"""How long a body is watched before it is called slow."""


def memory_budget(config: Config) -> MemoryBudget:
    """Return the budget of a config; the log says which other limits it lowers."""
    limit_bytes = config.daemon.max_memory
    if limit_bytes is None:
        limit_bytes = max(machine_memory_bytes() // DEFAULT_SHARE, LEAST_BYTES)
    shares = MemoryShares.of(
        limit_bytes, config.daemon.max_in_flight, has_readers=config.web.listen is not None
    )
    wanted_bytes = config.fetch.max_body_bytes
    budget = MemoryBudget(shares, max_body_bytes=wanted_bytes, returns_stale=True)
    limit_mb = limit_bytes // MIB
    if shares.max_in_flight < config.daemon.max_in_flight:
        log.warning(
            "fetches_limited_by_memory",
            max_in_flight=shares.max_in_flight,
            configured=config.daemon.max_in_flight,
            hint=f"raise [daemon] max_memory, now {limit_mb} MiB",
        )
    if budget.max_body_bytes < wanted_bytes:
        log.warning(
            "bodies_limited_by_memory",
            max_body_bytes=budget.max_body_bytes,
            configured=wanted_bytes,
            hint=f"raise [daemon] max_memory, now {limit_mb} MiB",
        )
    return budget


async def return_stale_memory(budget: MemoryBudget, workers: Workers) -> None:
    """Return freed memory to the system whenever it matters; runs until cancelled."""
    while True:
        await budget.wait_stale(PATIENCE_S)
        stale = budget.begin_trim()
        await workers.run(return_heap_memory)
        budget.trimmed(*stale)


async def end_slow_bodies(budget: MemoryBudget) -> None:
    """End bodies that come slowly while others wait for their memory; runs until cancelled."""
    pool = budget.bodies
    while True:
        await pool.wait_lacking()
        before = pool.received()
        await trio.sleep(SLOW_S)
        if ended := pool.evict_slow(before, SLOW_S):
            log.info("slow_bodies_ended", fetches=ended, waiting=pool.waiting)
