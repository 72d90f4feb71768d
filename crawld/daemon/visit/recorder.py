"""Queue visits, commit them in batches, and run their callbacks.

A turn queues its record and ends; the record is committed with its neighbours within
`batch_max_age_s`. The queue is bounded: while the disk is full or slow, `put` waits, turns do not
end, and the crawl stops without losing data. A record or callback that fails (a bug) is logged and
skipped.

The links of a page that names thousands are committed in parts, each in another transaction; the
visit follows with the last part. Records of other pages are committed between them, and do not wait
for thousands of rows. After a crash between two parts the page is visited again, and the links that
are stored already do no harm. While the daemon stops, what is left is written at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import structlog
import trio

from crawld.core.value_type import value_type
from crawld.memory import MIB, MemoryLease
from crawld.store import visit as visit_rows
from crawld.store.engine.database import Database
from crawld.store.frontier.caps import NewPage
from crawld.store.visit import LinkPart, RecordResult, VisitRecord

log = structlog.get_logger(__name__)

BATCH = 256
"""A batch of this size is committed without waiting for more."""

WAITING = 1024
"""Records that may wait; one more makes its turn wait."""

WAITING_BYTES = 64 * MIB
"""The same in bytes, where no memory budget says less."""

LINK_BYTES = 300
"""Memory of a link in a record, beside its URL."""

LINKS_AT_ONCE = 2_048
"""Links of a page in one transaction: 10 to 30 ms of work. A page has at most 10,000."""

LINKS_PER_BATCH = 16_384
"""A batch with so many links is not extended; 256 ordinary pages have as many."""

SLICE_S = 0.004
"""Longest run of callbacks without a pause; those of a large batch would otherwise stop every slot
for a tenth of a second."""

NOT_RECORDED = RecordResult(None, None, [])

OnQuietVisit: TypeAlias = Callable[[int, VisitRecord], None]
"""Called with the site and the record of a visit to a page that no source has reported."""

LongCallback: TypeAlias = Callable[[], Awaitable[None]]
"""The rest of a callback that takes long; runs while later visits are committed."""


@value_type
class PendingVisit:
    """A record, and the callback for its commit (or for `NOT_RECORDED`).

    Attributes:
        lease: on the memory of its body; None if that is small.
        size_bytes: memory that it takes beside the lease, about.
    """

    record: VisitRecord
    on_recorded: Callable[[RecordResult], LongCallback | None]
    lease: MemoryLease | None = None
    size_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        links = (*self.record.discoveries, *(self.record.requisites or ()))
        size_bytes = sum(LINK_BYTES + len(link.url) for link in links)
        if self.lease is None and self.record.body is not None:
            size_bytes += len(self.record.body.data)
        object.__setattr__(self, "size_bytes", size_bytes)

    @property
    def is_large(self) -> bool:
        """Whether its links are committed in parts."""
        return len(self.record.discoveries) > LINKS_AT_ONCE


@dataclass(slots=True)
class _LargeVisit:
    """A visit whose links are being committed.

    Attributes:
        stored: how many of them are.
        new_pages: those that were not known.
    """

    entry: PendingVisit
    stored: int
    new_pages: list[NewPage]

    def rest(self) -> VisitRecord:
        """Return the record with the links that are left; the host's state is stored already."""
        record = self.entry.record
        return replace(record, host=None, discoveries=record.discoveries[self.stored :])


class Recorder:
    """The queue between turns and the writer."""

    def __init__(
        self,
        database: Database,
        *,
        gather_s: float,
        max_bytes: int = WAITING_BYTES,
        on_quiet_visit: OnQuietVisit | None = None,
    ) -> None:
        """Make an empty queue.

        Args:
            gather_s: how long the first record of a batch waits for others.
            max_bytes: records of so many bytes may wait; one more makes its turn wait.
            on_quiet_visit: called for committed visits to pages that no source has reported.
        """
        self._on_quiet_visit = on_quiet_visit
        self._database = database
        self._gather_s = gather_s
        self._waiting: list[PendingVisit] = []
        self._writing = 0
        self._long: deque[LongCallback] = deque()
        self._long_waits = trio.Event()
        self._large: deque[_LargeVisit] = deque()
        self._large_waits = trio.Event()
        self._drains = 0
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
            nursery.start_soon(self._run_large)
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
        self._drains += 1
        try:
            while self.unrecorded:
                if self._writing or not self._waiting:
                    await trio.sleep(self._gather_s / 8)
                else:
                    await self._write()
        finally:
            self._drains -= 1

    async def _write(self) -> None:
        """Commit the records that wait; of large ones the first part."""
        batch = written = self._take()
        try:
            with trio.CancelScope(shield=True):
                written = await self._commit(batch)
        finally:
            self._release(written)

    def _take(self) -> list[PendingVisit]:
        """Take the records of the next batch from the queue."""
        links = taken = 0
        while taken < len(self._waiting) and links < LINKS_PER_BATCH:
            links += min(len(self._waiting[taken].record.discoveries), LINKS_AT_ONCE)
            taken += 1
        batch, self._waiting = self._waiting[:taken], self._waiting[taken:]
        self._arrived, self._full = trio.Event(), trio.Event()
        if self._waiting:
            self._arrived.set()
            self._full.set()
        batch_bytes = sum(entry.size_bytes for entry in batch)
        self._waiting_bytes -= batch_bytes
        self._writing += len(batch)
        self._writing_bytes += batch_bytes
        return batch

    def _release(self, written: list[PendingVisit]) -> None:
        """Give back the room of records that are committed."""
        for entry in written:
            self._writing -= 1
            self._writing_bytes -= entry.size_bytes
            if entry.lease is not None:
                entry.lease.release()
        self._room.set()
        self._room = trio.Event()

    async def _commit(self, batch: list[PendingVisit]) -> list[PendingVisit]:
        """Commit records, of large ones the first part; return those that are whole."""
        whole: list[PendingVisit] = []
        items: list[VisitRecord | LinkPart] = [
            LinkPart(entry.record, entry.record.discoveries[:LINKS_AT_ONCE], with_host=True)
            if entry.is_large and not self._drains
            else entry.record
            for entry in batch
        ]
        outcomes = await self._database.write_each(visit_rows.store_in_parts, items)
        until = trio.current_time() + SLICE_S
        for entry, item, outcome in zip(batch, items, outcomes, strict=True):
            if trio.current_time() >= until:
                await trio.lowlevel.checkpoint()
                until = trio.current_time() + SLICE_S
            if isinstance(item, LinkPart):
                new_pages = _result(item.visit, outcome).new_pages
                self._large.append(_LargeVisit(entry, len(item.links), [*new_pages]))
                self._large_waits.set()
            else:
                self._report(entry, _result(item, outcome))
                whole.append(entry)
        return whole

    async def _run_large(self) -> None:
        """Commit what is left of large records, one after the other."""
        while True:
            while self._large:
                large = self._large.popleft()
                try:
                    with trio.CancelScope(shield=True):
                        await self._write_rest(large)
                finally:
                    self._release([large.entry])
            self._large_waits = trio.Event()
            await self._large_waits.wait()

    async def _write_rest(self, large: _LargeVisit) -> None:
        record = large.entry.record
        while len(record.discoveries) - large.stored > LINKS_AT_ONCE and not self._drains:
            links = record.discoveries[large.stored : large.stored + LINKS_AT_ONCE]
            part = LinkPart(record, links, with_host=False)
            (outcome,) = await self._database.write_each(visit_rows.store_in_parts, [part])
            large.new_pages += _result(record, outcome).new_pages
            large.stored += len(links)
        rest = large.rest()
        (outcome,) = await self._database.write_each(visit_rows.store_in_parts, [rest])
        last = _result(rest, outcome)
        self._report(large.entry, replace(last, new_pages=large.new_pages + last.new_pages))

    def _report(self, entry: PendingVisit, result: RecordResult) -> None:
        try:
            if result.quiet_site_id is not None and self._on_quiet_visit is not None:
                self._on_quiet_visit(result.quiet_site_id, entry.record)
            callback = entry.on_recorded(result)
            if callback is not None:
                self._long.append(callback)
                self._long_waits.set()
        except Exception:  # the callbacks of the other records must still run
            log.exception("page_not_put_back", page=entry.record.page_id)


def _result(record: VisitRecord, outcome: RecordResult | Exception) -> RecordResult:
    if isinstance(outcome, Exception):
        log.error("visit_not_recorded", page=record.page_id, exc_info=outcome)
        return NOT_RECORDED
    return outcome
