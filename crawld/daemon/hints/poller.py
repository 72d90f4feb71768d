"""When which hint source is polled, and what becomes of its answers.

One source of a host is polled at a time; which is next is said by the instants in the file. A
source that gives trouble is left alone for a time that doubles, or as long as it asks; a restart
does not shorten that. Streams have a task each that connects again and again.

What a poll told goes into the file with its cursor, then to the policies. Nothing else is in
memory: killed in between, the process hands out the hints of the file at its next start.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

import structlog
import trio

from crawld.config.model import JobsConfig
from crawld.core.url import parse, url_hash
from crawld.daemon.clock import Clock
from crawld.daemon.crawl.loop import Crawl
from crawld.daemon.frontier.admission import Referrer as Origin
from crawld.daemon.hints.budget import PollBudget
from crawld.daemon.hints.delivery import SLICE_S, HintDelivery
from crawld.daemon.hints.source import HELD, Finder, Hint, Poll, PollTrouble, Source, Stream
from crawld.store.changes import hint, hint_source
from crawld.store.changes.hint import PageHint, PollResult, UrlHint
from crawld.store.changes.hint_source import SourceRow
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, refusal
from crawld.store.frontier.frontier import Discovery
from crawld.store.frontier.refusal import Refusal
from crawld.workers import Workers

log = structlog.get_logger(__name__)

FIND_EVERY_S: Final = 600.0
"""Pause between two looks for sources, besides those after a reload."""

FIRST_PAUSE_S: Final = 60.0
MAX_PAUSE_S: Final = 86_400.0
"""Pause after a trouble, doubling with each in a row."""

HELD_PAUSE_S: Final = 15.0
"""A source that may not be asked now is asked for again after this."""

TAKEN: Final = 2_000
"""Hints taken into the file in one transaction."""

MAX_FOUND: Final = 10_000
"""URLs that one poll may bring in."""

JUDGED: Final = 250
"""URLs judged by the scope at one go: a few milliseconds."""

FOUND_DEPTH: Final = 1
"""What a source names is as near as what a seed links."""


class _ScheduledSource:
    """A source in its place in time."""

    def __init__(self, source: Source, next_at: float) -> None:
        self.source = source
        self.next_at = self.rested_at = next_at


class _StreamTask:
    """A stream that is listened to."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.scope = trio.CancelScope()


class _HostSources:
    """The sources of one host: one of them is polled at a time."""

    __slots__ = ("busy", "polled")

    def __init__(self) -> None:
        self.polled: dict[int, _ScheduledSource] = {}
        self.busy = False

    def next(self) -> _ScheduledSource | None:
        return min(self.polled.values(), key=lambda each: each.next_at, default=None)


class HintPoller:
    """Polls all sources.

    Attributes:
        delivery: hands hints to policies.
        budget: how often polls pay.
    """

    def __init__(
        self,
        crawl: Crawl,
        database: Database,
        clock: Clock,
        *,
        workers: Workers,
        settings: Callable[[], JobsConfig],
        finders: Iterable[Finder] = (),
    ) -> None:
        """Take the crawl whose policies are told, and who knows sources."""
        self.delivery = HintDelivery(crawl, database)
        self.budget = PollBudget(crawl, database, workers=workers, settings=settings)
        self._crawl = crawl
        self._database = database
        self._clock = clock
        self._settings = settings
        self._finders = list(finders)
        self._found: dict[Finder, Sequence[Source | Stream]] = {}
        self._hosts: dict[str, _HostSources] = {}
        self._heap: list[tuple[float, str]] = []
        self._streams: dict[int, _StreamTask] = {}
        self._woken = trio.Event()
        self._wanted = trio.Event()

    # --- which sources there are ---------------------------------------------------------------

    async def run(self) -> None:
        """Hand out what is outstanding, then look for sources and poll them until cancelled."""
        self._hosts, self._heap, self._streams = {}, [], {}
        await self._publish_sources()
        restored = await self.delivery.restore()
        if restored:
            log.info("hints_restored", hints=restored)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._poll_due, nursery)
            nursery.start_soon(self.budget.run)
            while True:
                self._wanted = trio.Event()
                await self.find(nursery)
                with trio.move_on_after(FIND_EVERY_S):
                    await self._wanted.wait()

    def find_soon(self) -> None:
        """Look for sources as soon as possible: sites were named anew, or a wiki was found."""
        self._wanted.set()

    def poll_all(self) -> int:
        """Poll every source as soon as its host allows, those in trouble too; return how many."""
        now = trio.current_time()
        for name, host in self._hosts.items():
            for polled in host.polled.values():
                polled.next_at = now
            self._push(name)
        return sum(len(host.polled) for host in self._hosts.values())

    async def find(self, nursery: trio.Nursery) -> None:
        """Ask all finders, take up new sources and leave those that are no more."""
        for finder in self._finders:
            try:
                self._found[finder] = await finder.find()
            except Exception:  # one kind of source must not end the others, nor the crawl
                log.exception("find_failed", finder=type(finder).__name__)
        found = [source for sources in self._found.values() for source in sources]
        if not self._settings().poll_share:
            found = [source for source in found if not isinstance(source, Source) or source.is_free]
        await self._publish_sources()
        present = {source.row.hint_source_id for source in found}
        for host in self._hosts.values():
            for number in host.polled.keys() - present:
                del host.polled[number]
        for number in self._streams.keys() - present:
            self._streams.pop(number).scope.cancel()
        for source in found:
            self._take_up(source, nursery)

    def _take_up(self, source: Source | Stream, nursery: trio.Nursery) -> None:
        row = source.row
        if not isinstance(source, Source):
            known = self._streams.get(row.hint_source_id)
            if known is None or known.stream.hosts != source.hosts:
                if known is not None:
                    known.scope.cancel()
                listening = self._streams[row.hint_source_id] = _StreamTask(source)
                nursery.start_soon(self._listen, source, listening.scope)
            return
        host = self._hosts.setdefault(source.polite_host, _HostSources())
        polled = host.polled.get(row.hint_source_id)
        if polled is not None:
            polled.source = source
            return
        host.polled[row.hint_source_id] = _ScheduledSource(source, self._first_at(row))
        self._push(source.polite_host)

    def _first_at(self, row: SourceRow) -> float:
        """Return the instant (trio clock) of the first poll: as the file says, if that is sane."""
        wait_s = (row.next_poll_at or 0.0) - self._clock.now()
        return trio.current_time() + max(0.0, min(wait_s, MAX_PAUSE_S))

    async def _publish_sources(self) -> None:
        """Tell the crawl which sources its visits are held against."""
        known: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row in await self._database.read(hint_source.list_sources):
            of_place = known[row.site_id, row.host_id]
            # What never told of all changes up to some instant cannot have missed one.
            if row.told_until is not None:
                of_place.append(row.hint_source_id)
        self._crawl.hint_sources = {place: tuple(numbers) for place, numbers in known.items()}

    # --- polls ---------------------------------------------------------------------------------

    def _push(self, name: str) -> None:
        host = self._hosts[name]
        if not host.busy and (first := host.next()) is not None:
            heapq.heappush(self._heap, (first.next_at, name))
            self._woken.set()

    async def _poll_due(self, nursery: trio.Nursery) -> None:
        while True:
            self._woken = trio.Event()
            while self._heap and self._heap[0][0] <= trio.current_time():
                _, name = heapq.heappop(self._heap)
                host = self._hosts[name]
                first = None if host.busy else host.next()
                if first is not None and first.next_at <= trio.current_time():
                    host.busy = True
                    nursery.start_soon(self._poll, name, host, first)
            with trio.move_on_at(self._heap[0][0] if self._heap else math.inf):
                await self._woken.wait()

    async def _poll(self, name: str, host: _HostSources, polled: _ScheduledSource) -> None:
        number, said = polled.source.row.hint_source_id, None
        begun_for = polled.next_at
        try:
            row = await self._database.read(hint_source.get, number)
            said = await polled.source.poll(row)
            pause_s = await self._accept_answer(polled.source, row, said)
        except Exception:  # one source must not end the others
            log.exception("poll_failed", source=number, kind=polled.source.row.kind)
            pause_s = FIRST_PAUSE_S
        finally:
            host.busy = False
        called = polled.next_at != begun_for
        polled.next_at = trio.current_time() + pause_s
        polled.rested_at = polled.next_at if said is None else self._rested_at(name, said)
        if called:  # while it was polled: what it was handed, it has not asked for yet
            polled.next_at = min(polled.next_at, polled.rested_at)
        self._push(name)

    def _rested_at(self, name: str, said: Poll | PollTrouble) -> float:
        """Return the first instant at which the budget allows another poll."""
        return trio.current_time() + self.budget.least_pause_s(name, said.requests)

    async def _accept_answer(
        self, source: Source, row: SourceRow, said: Poll | PollTrouble
    ) -> float:
        """Take an answer; return when to ask again, seconds from now."""
        if isinstance(said, PollTrouble):
            return await self._troubled(row, said)
        pause_s = self._pause_s(source.polite_host, row, said, heard=0)
        if said == Poll(at=said.at, cursor=row.cursor, requests=0, wait_s=said.wait_s):
            return pause_s  # it had nothing to ask for
        heard = await self.accept(row, said, next_poll_at=said.at + pause_s)
        return self._pause_s(source.polite_host, row, said, heard=heard)

    async def _troubled(self, row: SourceRow, said: PollTrouble) -> float:
        pause_s = said.pause_s
        if pause_s is None:
            pause_s = min(FIRST_PAUSE_S * 2.0 ** min(row.trouble_count, 20), MAX_PAUSE_S)
        if said.trouble == HELD:
            return min(max(pause_s, HELD_PAUSE_S), MAX_PAUSE_S)
        at = self._clock.now()
        log.warning(
            "poll_trouble", kind=row.kind, url=row.url, why=said.trouble, detail=said.detail
        )
        trouble = hint_source.PollFailure(
            at, said.trouble, said.detail, said.requests, at + pause_s
        )
        await self._database.write(hint_source.record_failure, row.hint_source_id, trouble)
        return pause_s

    def _pause_s(self, host_name: str, row: SourceRow, said: Poll, *, heard: int) -> float:
        if said.more:
            return 0.0
        if said.wait_s is not None:
            rest_s = self.budget.least_pause_s(host_name, said.requests) if said.requests else 0.0
            return max(said.wait_s, rest_s)
        if said.patience != 1.0:
            return self.budget.least_pause_s(host_name, said.requests) * said.patience
        since_s = max(said.at - (row.last_poll_at or said.at), 0.0)
        return self.budget.pause_s(row, host_name, said.requests, heard=heard, since_s=since_s)

    # --- streams -------------------------------------------------------------------------------

    async def _listen(self, stream: Stream, scope: trio.CancelScope) -> None:
        number = stream.row.hint_source_id
        with scope:
            while True:
                row = await self._database.read(hint_source.get, number)
                try:
                    said = await stream.listen(row, partial(self._deliver, number))
                    pause_s = await self._troubled(row, said)
                except Exception:  # one source must not end the others
                    log.exception("stream_failed", source=number, kind=row.kind)
                    pause_s = FIRST_PAUSE_S
                await trio.sleep(pause_s)

    async def _deliver(self, number: int, said: Poll) -> None:
        await self.accept(await self._database.read(hint_source.get, number), said)

    # --- what was said -------------------------------------------------------------------------

    async def accept(self, row: SourceRow, said: Poll, *, next_poll_at: float | None = None) -> int:
        """Put what a source said into the file, then tell the policies.

        Of very much, parts are committed one after the other and the cursor with the last: what a
        killed process had already taken is no news when it is told again.

        Args:
            row: the source.
            said: what it said.
            next_poll_at: when it is asked again, Unix seconds; None: it is a stream.

        Returns:
            How many changes of pages held were news.
        """
        heard = 0
        pages, urls = _gathered(said.pages), await self._keyed(said.hints)
        while len(pages) + len(urls) > TAKEN:
            part = PollResult(
                at=said.at,
                of_pages=pages[:TAKEN],
                of_urls=urls[: max(TAKEN - len(pages), 0)],
                cursor=row.cursor,
                cursor_before=row.cursor,
                next_poll_at=row.next_poll_at,
                requests=0,
            )
            pages, urls = pages[TAKEN:], urls[len(part.of_urls) :]
            heard += await self._store(row, part)
        last = PollResult(
            at=said.at,
            of_pages=pages,
            of_urls=urls,
            cursor=said.cursor,
            cursor_before=row.cursor,
            told_until=said.told_until,
            next_poll_at=next_poll_at,
            requests=said.requests,
            cursor_updates=said.cursor_updates,
            also_write=said.also_write,
        )
        heard += await self._store(row, last)
        for number, _ in said.cursor_updates:
            self._poll_soon(number)
        if said.found_urls:
            await self._admit(row, said.found_urls[:MAX_FOUND])
        if row.told_until is None:
            await self._publish_sources()
        return heard

    async def _store(self, row: SourceRow, news: PollResult) -> int:
        heard = await self._database.write(hint.accept, row.hint_source_id, news)
        await self.delivery.deliver(row, heard)
        return len(heard)

    async def _keyed(self, hints: Sequence[Hint]) -> list[UrlHint]:
        """Return hints by the keys of their pages, those of one page together; in slices."""
        found: dict[str, UrlHint] = {}
        hosts: dict[str, int | None] = {}
        until = trio.current_time() + SLICE_S
        for url, first_at, last_at in hints:
            if trio.current_time() >= until:
                await trio.lowlevel.checkpoint()
                until = trio.current_time() + SLICE_S
            known = found.get(url)
            if known is not None:
                first_at, last_at = min(first_at, known.first_at), max(last_at, known.last_at)
                found[url] = known._replace(first_at=first_at, last_at=last_at, told=known.told + 1)
                continue
            origin = url[: url.find("/", len("https://"))]
            if origin not in hosts:
                host = self._crawl.hosts.get(parse(url).host)
                hosts[origin] = host.host_id if host else None
            if (host_id := hosts[origin]) is not None:
                found[url] = UrlHint(host_id, url_hash(url), first_at, last_at)
        return list(found.values())

    async def _admit(self, row: SourceRow, urls: Sequence[str]) -> None:
        """Let in what the scope of the site admits, as if it were linked from a seed."""
        site = self._crawl.sites.get(row.site_id)
        if site is None:
            return
        origin, now = Origin(None, FOUND_DEPTH), self._clock.now()
        found: list[Discovery] = []
        refusals: list[Refusal] = []
        for start in range(0, len(urls), JUDGED):
            admitted = self._crawl.admission.admit(site, urls[start : start + JUDGED], origin, now)
            found += admitted.found
            refusals += admitted.refusals
            await trio.lowlevel.checkpoint()
        if refusals:
            await self._database.write(refusal.record, refusals)
        for start in range(0, len(found), TAKEN):
            part = found[start : start + TAKEN]
            new = await self._database.write(frontier.discover, part, self._crawl.caps)
            self._crawl.enter_pages(new)

    def _poll_soon(self, number: int) -> None:
        """Poll a source at once: another has handed it something."""
        for name, host in self._hosts.items():
            if (polled := host.polled.get(number)) is not None:
                polled.next_at = max(trio.current_time(), polled.rested_at)
                self._push(name)
                return
        self.find_soon()  # it is new


def _gathered(pages: Sequence[PageHint]) -> list[PageHint]:
    """Return changes, those of one page together."""
    found: dict[int, PageHint] = {}
    for page in pages:
        known = found.get(page.page_id)
        if known is not None:
            first_at = min(known.first_at, page.first_at)
            last_at = max(known.last_at, page.last_at)
            page = PageHint(page.page_id, first_at, last_at, known.told + page.told)
        found[page.page_id] = page
    return list(found.values())
