"""Queue visits, commit them in batches, and run their callbacks.

A turn queues its record and ends; the record is committed with its neighbours within
`batch_max_age_s`. The queue is bounded: while the disk is full or slow, `put` waits, turns do not
end, and the crawl stops without losing data. A record or callback that fails (a bug) is logged and
skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import structlog
import trio

from crawld.memory import MIB, MemoryLease
from crawld.store import visit as visit_rows
from crawld.store.engine.database import Database
from crawld.store.visit import RecordResult, VisitRecord

log = structlog.get_logger(__name__)

BATCH = 256
"""A batch of this size is committed without waiting for more."""

WAITING = 1024
"""Records that may wait; one more makes its turn wait."""

WAITING_BYTES = 64 * MIB
"""The same in bytes, where no memory budget says less."""

LINK_BYTES = 300
"""Memory of a link in a record, beside its URL."""

SLICE_S = 0.004
"""Longest run of callbacks without a pause; those of a large batch would otherwise stop every slot
for a tenth of a second."""

NOT_RECORDED = RecordResult(None, None, [])

LongCallback: TypeAlias = Callable[[], Awaitable[None]]
"""The rest of a callback that takes long; runs while later visits are committed."""


@dataclass(frozen=True, slots=True)
class PendingVisit:
    """A record, and the callback for its commit (or for `NOT_RECORDED`).

    Attributes:
        lease: on the memory of its body; None if that is small.
    """

    record: VisitRecord
    on_recorded: Callable[[RecordResult], LongCallback | None]
    lease: MemoryLease | None = None

    @property
    def size_bytes(self) -> int:
        """Memory that it takes beside the lease, about."""
        links = (*self.record.discoveries, *(self.record.requisites or ()))
        size_bytes = sum(LINK_BYTES + len(link.url) for link in links)
        if self.lease is None and self.record.body is not None:
            size_bytes += len(self.record.body.data)
        return size_bytes


class Recorder:
    """The queue between turns and the writer."""

    def __init__(
        self, database: Database, *, gather_s: float, max_bytes: int = WAITING_BYTES
    ) -> None:
        """Make an empty queue.

        Args:
            gather_s: how long the first record of a batch waits for others.
            max_bytes: records of so many bytes may wait; one more makes its turn wait.
        """
        self._database = database
        self._gather_s = gather_s
        self._waiting: list[PendingVisit] = []
        self._writing = 0
        self._long: deque[LongCallback] = deque()
        self._long_waits = trio.Event()
        self._waiting_bytes = 0
        self._writing_bytes = 0
        self._max_bytes = max_bytes
        self._arrived = trio.Event()
        self._full = trio.Event()
        self._room = trio.Event()

    @property
    def unrecorded(self) -> int:
        """Number of visits made and not yet committed, or whose callback has not ended."""
        return len(self._waiting) + self._writing + len(self._long)

    @property
    def _held_bytes(self) -> int:
        return self._waiting_bytes + self._writing_bytes

    async def put(self, entry: PendingVisit) -> None:
        """Queue a record; wait while the queue is full."""
        while len(self._waiting) >= WAITING or self._held_bytes >= self._max_bytes:
            await self._room.wait()
        self._waiting.append(entry)
        self._waiting_bytes += entry.size_bytes
        self._arrived.set()
        if len(self._waiting) >= BATCH or self._held_bytes >= self._max_bytes // 2:
            self._full.set()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write batches until cancelled; `drain` first if nothing may be lost."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_long_callbacks)
            task_status.started()
            while True:
                await self._arrived.wait()
                with trio.move_on_after(self._gather_s):
                    await self._full.wait()
                await self._write()

    async def _run_long_callbacks(self) -> None:
        """Run the long callbacks, one after the other."""
        while True:
            while self._long:
                try:
                    await self._long[0]()
                except Exception:
                    log.exception("pages_not_entered")
                self._long.popleft()
            self._long_waits = trio.Event()
            await self._long_waits.wait()

    async def drain(self) -> None:
        """Return when every queued record is committed and its callback has ended."""
        while self.unrecorded:
            if self._writing or not self._waiting:
                await trio.sleep(self._gather_s / 8)
            else:
                await self._write()

    async def _write(self) -> None:
        batch, self._waiting = self._waiting, []
        self._arrived, self._full = trio.Event(), trio.Event()
        batch_bytes, self._waiting_bytes = self._waiting_bytes, 0
        self._writing += len(batch)
        self._writing_bytes += batch_bytes
        try:
            with trio.CancelScope(shield=True):
                await self._commit(batch)
        finally:
            self._writing -= len(batch)
            self._writing_bytes -= batch_bytes
            for entry in batch:
                if entry.lease is not None:
                    entry.lease.release()
            self._room.set()
            self._room = trio.Event()

    async def _commit(self, batch: list[PendingVisit]) -> None:
        records = [entry.record for entry in batch]
        outcomes = await self._database.write_each(visit_rows.record_in_parts, records)
        until = trio.current_time() + SLICE_S
        for entry, outcome in zip(batch, outcomes, strict=True):
            if trio.current_time() >= until:
                await trio.lowlevel.checkpoint()
                until = trio.current_time() + SLICE_S
            if isinstance(outcome, Exception):
                log.error("visit_not_recorded", page=entry.record.page_id, exc_info=outcome)
                outcome = NOT_RECORDED
            try:
                callback = entry.on_recorded(outcome)
                if callback is not None:
                    self._long.append(callback)
                    self._long_waits.set()
            except Exception:  # the callbacks of the other records must still run
                log.exception("page_not_put_back", page=entry.record.page_id)
