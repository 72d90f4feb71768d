"""Poll hint sources, listen to streams, and store and deliver their hints.

The database holds when each source is due. One source of a host is polled at a time: the recent
changes of a wiki when they are due, else the one that is due first. All others together keep to the
share of the host's requests that polls may use. A probe waits while copies are known to be stale, a
listing while edited pages wait, both for a limited time.
After a failure a source waits for a back-off that doubles, or as long as the server asks; a restart
does not shorten it. Each stream has a task that reconnects.

Hints are stored in one transaction with the cursor, then delivered to the policies. Nothing else
is in memory: after a kill, the next start delivers the stored hints.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import structlog
import trio

from crawld.core.politeness import MAX_BACKOFF_DELAY_S
from crawld.core.units import DAY_S
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.hints.acceptance import HintAcceptance
from crawld.daemon.hints.budget import PollBudget
from crawld.daemon.hints.host_sources import (
    HELD_PAUSE_S,
    HostSources,
    ScheduledSource,
    restored,
)
from crawld.daemon.hints.source import HELD, Finder, Poll, PollTrouble, Source, Stream
from crawld.store.changes import hint_source
from crawld.store.changes.hint_source import SourceRow

log = structlog.get_logger(__name__)

FIND_EVERY_S: Final = 3_600.0
"""Pause between two searches for sources; a new robots.txt, wiki or config also starts one."""

FIRST_PAUSE_S, MAX_PAUSE_S = 60.0, DAY_S
"""Back-off after a failure: the first, doubled with each failure in a row, and the longest. While
the whole host fails, it is that of the host at most."""

MIN_HELD_PAUSE_S: Final = 1.0

SLOWED_LOOK_S: Final = 60.0
"""How often hosts in back-off are looked at: their sources wait less when it has fallen."""


class _StreamTask:
    """A stream and the cancel scope of its task."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.scope = trio.CancelScope()


class HintPoller(BackgroundWork):
    """Polls all hint sources.

    Attributes:
        acceptance: stores and delivers what the sources report.
        budget: decides how often each source is polled.
    """

    def __init__(self, context: CrawlContext, finders: Iterable[Finder]) -> None:
        """Create a poller; `finders` list the sources."""
        super().__init__(context)
        self.acceptance = HintAcceptance(context)
        self.budget = PollBudget(context)
        self._finders = list(finders)
        self._found: dict[Finder, Sequence[Source | Stream]] = {}
        self._hosts: dict[str, HostSources] = {}
        self._heap: list[tuple[float, str]] = []
        self._slowed: set[str] = set()
        self._streams: dict[int, _StreamTask] = {}
        self._rescheduled = trio.Event()
        self._find_requested = trio.Event()
        self._is_restored = False

    # --- sources ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Deliver the stored hints, then find sources and poll them until cancelled."""
        self._hosts, self._heap, self._streams, self._slowed = {}, [], {}, set()
        if not self._is_restored:
            await self.restore()
        self._is_restored = False  # for the next run, after a failure
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._poll_due, nursery)
            nursery.start_soon(self.budget.run)
            while True:
                self._find_requested = trio.Event()
                await self.find(nursery)
                with trio.move_on_after(FIND_EVERY_S):
                    await self._find_requested.wait()

    async def restore(self) -> None:
        """Deliver the stored hints, so that the first turns are for what is known to be stale."""
        await self._publish_sources()
        restored = await self.acceptance.delivery.restore()
        if restored:
            log.info("hints_restored", hints=restored)
        self._is_restored = True

    def find_soon(self) -> None:
        """Search for sources as soon as possible, after sites or wikis changed."""
        self._find_requested.set()

    def poll_all(self) -> int:
        """Poll every source as soon as its host allows, even during a back-off; return how many."""
        now = trio.current_time()
        for name, host in self._hosts.items():
            for polled in host.polled.values():
                polled.next_at = now
            self._push(name)
        return sum(len(host.polled) for host in self._hosts.values())

    async def find(self, nursery: trio.Nursery) -> None:
        """Ask all finders; start new sources and drop those that are gone."""
        for finder in self._finders:
            try:
                self._found[finder] = await finder.find()
            except Exception:  # a failing finder must not stop the others
                log.exception("hint_source_search_failed", finder=type(finder).__name__)
        found = [source for sources in self._found.values() for source in sources]
        if not self._config().jobs.poll_share:
            found = [source for source in found if not isinstance(source, Source) or source.is_free]
        await self._publish_sources()
        present = {source.row.hint_source_id for source in found}
        for host in self._hosts.values():
            for number in host.polled.keys() - present:
                del host.polled[number]
        for number in self._streams.keys() - present:
            self._streams.pop(number).scope.cancel()
        for source in found:
            self._start(source, nursery)

    def _start(self, source: Source | Stream, nursery: trio.Nursery) -> None:
        row = source.row
        if not isinstance(source, Source):
            known = self._streams.get(row.hint_source_id)
            if known is None or known.stream.hosts != source.hosts:
                if known is not None:
                    known.scope.cancel()
                task = self._streams[row.hint_source_id] = _StreamTask(source)
                nursery.start_soon(self._listen, source, task.scope)
            return
        host = self._hosts.setdefault(source.polite_host, HostSources())
        polled = host.polled.get(row.hint_source_id)
        if polled is not None:
            polled.source = source
            return
        # Only a failure closes a source over a restart. Otherwise what waits decides: a source that
        # had nothing to do may be due in a day, and be given work by another one.
        allowed_at = self._plausible_at(row.closed_until)
        due_at = None if source.is_waiting(row) else row.next_poll_at
        next_at = max(self._plausible_at(due_at), allowed_at)
        host.polled[row.hint_source_id] = restored(source, next_at, allowed_at, self._clock)
        self._push(source.polite_host)

    def _plausible_at(self, stored_at: float | None) -> float:
        """Return a stored time on trio's clock, at most `MAX_PAUSE_S` from now."""
        wait_s = (stored_at or 0.0) - self._clock.now()
        return trio.current_time() + max(0.0, min(wait_s, MAX_PAUSE_S))

    async def _publish_sources(self) -> None:
        """Publish the sources that cover each site and host."""
        known: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row in await self._database.read(hint_source.list_sources):
            for site_id in row.site_ids:
                sources = known[site_id, row.host_id]
                # Only a source that is complete up to some time can miss a change.
                if row.told_until is not None:
                    sources.append(row.hint_source_id)
        self._state.hint_sources = {key: tuple(numbers) for key, numbers in known.items()}
        self.budget.look_soon()

    # --- polls -----------------------------------------------------------------------------------

    def _push(self, name: str) -> None:
        host = self._hosts[name]
        state = self._state.hosts.get(name)
        host.relax(trio.current_time(), self.budget.min_pause_s(name, 1))
        if state is not None:
            state.poll_at = host.first_at()
            if state.backoff.level:
                self._slowed.add(name)
        if not host.busy and (first := host.next(trio.current_time())) is not None:
            heapq.heappush(self._heap, (host.due_at(first), name))
            self._rescheduled.set()

    async def _poll_due(self, nursery: trio.Nursery) -> None:
        look_at = -math.inf
        while True:
            self._rescheduled = trio.Event()
            if trio.current_time() >= look_at:
                self._look_at_slowed()
                look_at = trio.current_time() + SLOWED_LOOK_S
            self._start_due(nursery)
            until = self._heap[0][0] if self._heap else math.inf
            with trio.move_on_at(min(until, look_at) if self._slowed else until):
                await self._rescheduled.wait()

    def _look_at_slowed(self) -> None:
        """Poll the sources sooner whose host has a shorter back-off than before."""
        now = trio.current_time()
        for name in tuple(self._slowed):
            state = self._state.hosts.get(name)
            if self._hosts[name].relax(now, self.budget.min_pause_s(name, 1)):
                self._push(name)
            if state is None or not state.backoff.level:
                self._slowed.discard(name)

    def _start_due(self, nursery: trio.Nursery) -> None:
        """Start the polls that are due. In the waiting loop a variable would hold a gone source."""
        while self._heap and self._heap[0][0] <= trio.current_time():
            _, name = heapq.heappop(self._heap)
            host = self._hosts[name]
            now = trio.current_time()
            first = None if host.busy else host.next(now)
            if first is not None and host.due_at(first) <= now:
                host.busy = True
                nursery.start_soon(self._poll, name, host, first)

    async def _poll(self, name: str, host: HostSources, polled: ScheduledSource) -> None:
        number, result = polled.source.row.hint_source_id, None
        polled_at = trio.current_time()
        planned_at = polled.next_at
        try:
            row = await self._database.read(hint_source.get, number)
            stale, edited = self.budget.has_stale(name), self.budget.has_edited(name)
            wait_s = host.puts_off(polled, row, polled_at, stale=stale, edited=edited)
            if wait_s is not None:
                pause_s = wait_s
            else:
                result = await polled.source.poll(row)
                polled_at = self.budget.asked_at(name, polled_at)
                pause_s = await self._accept_result(polled.source, row, result)
        except Exception:  # a failing source must not stop the others
            log.exception("hint_poll_failed", source=number, kind=polled.source.row.kind)
            pause_s = FIRST_PAUSE_S
        finally:
            host.busy = False
        was_requested = polled.next_at != planned_at
        # The commit of what it reported is no part of the pause.
        polled.next_at = polled.allowed_at = polled_at + pause_s
        if result is not None:
            min_pause_s = self.budget.min_pause_s(name, result.requests)
            polled.allowed_at = polled_at + min_pause_s
            polled.is_priced = isinstance(result, Poll) and result.wait_s is None
            if not (isinstance(result, PollTrouble) and result.trouble == HELD):
                polled.asked = result.requests > 0
            if result.requests:
                host.pay(polled, polled_at, min_pause_s)
            if isinstance(result, Poll):
                polled.advance(result.cursor)
        if was_requested:  # during the poll, which used the old cursor
            polled.next_at = min(polled.next_at, polled.allowed_at)
        self._push(name)

    async def _accept_result(
        self, source: Source, row: SourceRow, result: Poll | PollTrouble
    ) -> float:
        """Store the result of a poll; return the pause before the next, seconds."""
        if isinstance(result, PollTrouble):
            return await self._record_trouble(row, result)
        pause_s = self._pause_s(source.polite_host, row, result, new_hints=0)
        if result == Poll(at=result.at, cursor=row.cursor, requests=0, wait_s=result.wait_s):
            return pause_s  # there was nothing to ask for
        new_hints = await self.accept(row, result, next_poll_at=result.at + pause_s)
        return self._pause_s(source.polite_host, row, result, new_hints=new_hints)

    async def _record_trouble(self, row: SourceRow, result: PollTrouble) -> float:
        pause_s = result.pause_s
        if result.trouble == HELD:
            # A host that was closed is asked first for what changed meanwhile.
            held_s = HELD_PAUSE_S if pause_s is None else max(pause_s, MIN_HELD_PAUSE_S)
            return min(held_s, MAX_PAUSE_S)
        if pause_s is None:
            most_s = MAX_BACKOFF_DELAY_S if result.of_host else MAX_PAUSE_S
            pause_s = min(FIRST_PAUSE_S * 2.0 ** min(row.trouble_count, 20), most_s)
        at = self._clock.now()
        log.warning(
            "hint_poll_trouble",
            kind=row.kind,
            url=row.url,
            why=result.trouble,
            detail=result.detail,
        )
        trouble = hint_source.PollFailure(
            at, result.trouble, result.detail, result.requests, at + pause_s
        )
        await self._database.write(hint_source.record_failure, row.hint_source_id, trouble)
        return pause_s

    def _pause_s(self, host_name: str, row: SourceRow, result: Poll, *, new_hints: int) -> float:
        if result.more:
            return 0.0
        if result.wait_s is not None:
            min_pause_s = (
                self.budget.min_pause_s(host_name, result.requests) if result.requests else 0.0
            )
            return max(result.wait_s, min_pause_s)
        if result.pause_factor != 1.0:
            return self.budget.min_pause_s(host_name, result.requests) * result.pause_factor
        since_s = max(result.at - (row.last_poll_at or result.at), 0.0)
        return self.budget.pause_s(
            row, host_name, result.requests, new_hints=new_hints, since_s=since_s
        )

    # --- streams ---------------------------------------------------------------------------------

    async def _listen(self, stream: Stream, scope: trio.CancelScope) -> None:
        number = stream.row.hint_source_id
        with scope:
            while True:
                row = await self._database.read(hint_source.get, number)
                try:
                    result = await stream.listen(row, partial(self._deliver, number))
                    pause_s = await self._record_trouble(row, result)
                except Exception:  # a failing source must not stop the others
                    log.exception("hint_stream_failed", source=number, kind=row.kind)
                    pause_s = FIRST_PAUSE_S
                await trio.sleep(pause_s)

    async def _deliver(self, number: int, result: Poll) -> None:
        await self.accept(await self._database.read(hint_source.get, number), result)

    # --- results ---------------------------------------------------------------------------------

    async def accept(
        self, row: SourceRow, result: Poll, *, next_poll_at: float | None = None
    ) -> int:
        """Accept what a source reported; return how many hints were new.

        Args:
            next_poll_at: when the source is due again, Unix seconds; None for a stream.
        """
        new_hints = await self.acceptance.accept(row, result, next_poll_at=next_poll_at)
        for number, cursor in result.cursor_updates:
            self._poll_soon(number, cursor)
        await self.acceptance.admit(row, result.found_urls)
        if row.told_until is None:
            await self._publish_sources()
        return new_hints

    def _poll_soon(self, number: int, cursor: str | None) -> None:
        """Poll a source as soon as its budget allows: its cursor was updated by another source."""
        for name, host in self._hosts.items():
            if (polled := host.polled.get(number)) is not None:
                polled.reschedule(cursor, trio.current_time())
                self._push(name)
                return
        self.find_soon()  # it has just been created
