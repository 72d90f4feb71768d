"""Event streams as hint sources: one long connection that tells of each change as it happens.

What comes is read in small pieces, a pause for others after each, so that a flood moves no fetch
slot. Changes wait in a bounded gathering, those of one page together, and go into the file in parts
with the id behind them; while the file is busy nothing more is read, and the flood waits in the
server. A connection that is silent for too long is given up; each break is answered by a new
connection that goes on behind the last id in the file.

A stream that cannot go back that far has left something out. Where the wiki can be probed, its
probe is called to make that good (`crawld/daemon/hints/wikis.py`); else the share of changes that
the stream missed says so.

One connection serves all hosts of a site: what it tells of the others goes to a source of theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

import structlog
import trio

from crawld.core.url import canonicalize, parse
from crawld.daemon.clock import Clock
from crawld.daemon.hints.documents import Documents, Wanted
from crawld.daemon.hints.source import Deliver, Hint, Poll, PollTrouble
from crawld.net.exchange import Headers, Sink, header_value
from crawld.sources.entry import CLOCK_TOLERANCE_S
from crawld.sources.eventstream import (
    EventReader,
    PageChange,
    instant_of,
    is_gap,
    moved_from,
    read_change,
)
from crawld.sources.mediawiki_changes import Place
from crawld.store import hint_source
from crawld.store.database import Database
from crawld.store.hint_source import SourceRow

log = structlog.get_logger(__name__)

SILENCE_S: Final = 60.0
"""Longest silence: Wikimedia's streams say something every few seconds, canaries included."""

GATHER_S: Final = 1.0
"""How long changes wait for others before they go into the file."""

MAX_GATHERED: Final = 2_000
"""Pages with changes that wait; with more, reading stops until they are in the file."""

PIECE_BYTES: Final = 4 * 1024
"""Read between two pauses: a few events, a quarter of a millisecond."""

AGAIN_S, MAX_DOUBLINGS, SOUND_S = 1.0, 6, 30.0
"""Pause before the next connection, doubling with each in a row that lasted no longer."""

SECOND_S: Final = 1.0
"""Instants are whole seconds, cut."""

DISORDER_S: Final = 10.0
"""Events come a little out of order: so long before the latest, all have been told."""

_SAFE: Final = ";@$!*(),/~:"
"""What MediaWiki leaves as it is in the path of a page."""

_ANEW: Final[dict[str, Any]] = {"after": 0, "began_at": 0.0, "urgent": True}

Take = Callable[[SourceRow, Poll], Awaitable[None]]


@dataclass(slots=True)
class _Gathered:
    """What waits for its way into the file.

    Attributes:
        hints: by host and URL. last_id: behind the last event. at: instant of the last event.
        gap: whether something was left out before it.
    """

    hints: dict[str, dict[str, Hint]]
    last_id: str
    at: float | None = None
    gap: bool = False

    def add(self, url: str, at: float) -> None:
        """Take a change of a page."""
        of_host = self.hints[parse(url).host]
        known = of_host.get(url)
        if known is not None:
            first_at, last_at = min(at, known.first_at), max(at + SECOND_S, known.last_at)
            of_host[url] = Hint(url, first_at, last_at)
        else:
            of_host[url] = Hint(url, at, at + SECOND_S)

    def __len__(self) -> int:
        return sum(len(of_host) for of_host in self.hints.values())


class EventStream:
    """One stream, as one site uses it.

    Attributes:
        row: of the host its cursor is kept for.
    """

    def __init__(
        self,
        row: SourceRow,
        beside: Mapping[str, SourceRow],
        documents: Documents,
        database: Database,
        clock: Clock,
        take: Take,
    ) -> None:
        """Take what a stream is listened to with.

        Args:
            row: its source, which has the cursor.
            beside: sources of all hosts of the site, by host, that of `row` included.
            documents: connects.
            database: of the sources.
            clock: for instants that lie in the future.
            take: takes what is said of hosts other than that of `row`.
        """
        self.row = row
        self.polite_host = parse(row.url).host
        self._beside = beside
        self._documents = documents
        self._database = database
        self._clock = clock
        self._take = take
        self._broken = 0

    async def listen(self, row: SourceRow, deliver: Deliver) -> PollTrouble:
        """Connect behind the last id, and hand on what comes until the connection is over."""
        reader = EventReader(row.cursor or "")
        hearing = _Hearing(self, row, reader, deliver)
        began_at = trio.current_time()
        over: list[PollTrouble] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hearing.hand_on_again_and_again)
            over.append(
                await self._documents.listen(
                    self._wanted(row), hearing.receive, silence_s=SILENCE_S
                )
            )
            nursery.cancel_scope.cancel()
        await hearing.hand_on()
        return self._over(over[0], reader, hearing.heard, trio.current_time() - began_at)

    def _over(
        self, over: PollTrouble, reader: EventReader, heard: int, lasted_s: float
    ) -> PollTrouble:
        """Say how long the stream is left alone: briefly after a connection that said something."""
        self._broken = 0 if lasted_s >= SOUND_S else self._broken + 1
        if over.pause_s is not None or not heard:
            return over
        pause_s = AGAIN_S * 2.0 ** min(self._broken, MAX_DOUBLINGS)
        return replace(over, pause_s=max(pause_s, reader.retry_s or 0.0))

    def _wanted(self, row: SourceRow) -> Wanted:
        headers = [("Accept", "text/event-stream"), ("Cache-Control", "no-cache")]
        url = row.url
        if row.cursor:
            headers.append(("Last-Event-ID", row.cursor))
        elif row.told_until is not None:
            since = datetime.fromtimestamp(row.told_until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            url = f"{url}{'&' if '?' in url else '?'}{urlencode({'since': since})}"
        return Wanted(row.site_id, url, 0, headers=tuple(headers))

    def concerns(self, url: str) -> bool:
        """Whether a page may be one of the site's."""
        return parse(url).host in self._beside

    async def tell(self, row: SourceRow, gathered: _Gathered, deliver: Deliver) -> None:
        """Put what was gathered into the file, the cursor with the last of it."""
        now = self._clock.now()
        for host, hints in gathered.hints.items():
            if host != row.host and host in self._beside:
                said = Poll(at=now, hints=list(hints.values()), told_until=gathered.at, requests=0)
                await self._take(self._beside[host], said)
        await deliver(
            Poll(
                at=now,
                hints=list(gathered.hints.get(row.host, {}).values()),
                cursor=gathered.last_id or row.cursor,
                told_until=None if gathered.gap else gathered.at,
                requests=0,
                handed_on=await self._probes() if gathered.gap else (),
            )
        )

    async def _probes(self) -> list[tuple[int, str | None]]:
        """Return what the probes of the wikis told of are to do: make good a gap."""
        places = {(each.site_id, each.host_id) for each in self._beside.values()}
        return [
            (
                row.hint_source_id,
                replace(Place.from_json(row.cursor), after=0, urgent=True).to_json(),
            )
            for row in await self._database.read(hint_source.list_sources)
            if row.kind == "probe" and (row.site_id, row.host_id) in places
        ]


class _Hearing:
    """One connection: from bytes to changes, and from there to whoever takes them.

    Attributes:
        heard: events of any kind so far.
    """

    def __init__(
        self, stream: EventStream, row: SourceRow, reader: EventReader, deliver: Deliver
    ) -> None:
        self.heard = 0
        self._stream = stream
        self._row = row
        self._reader = reader
        self._deliver = deliver
        self._gathered = self._empty()
        self._handing_on = trio.Lock()
        self._told_until = row.told_until

    def _empty(self) -> _Gathered:
        return _Gathered(defaultdict(dict), self._reader.last_id)

    def receive(self, status: int, headers: Headers) -> Sink | None:
        """Take the body of an answer that is a stream of events."""
        kind = (header_value(headers, "content-type") or "").partition(";")[0].strip().lower()
        return self._read if status == 200 and kind == "text/event-stream" else None

    async def _read(self, piece: bytes) -> None:
        for start in range(0, len(piece), PIECE_BYTES):
            for event in self._reader.feed(piece[start : start + PIECE_BYTES]):
                self._event(event.data, event.last_id)
            self._gathered.last_id = self._reader.last_id
            await trio.lowlevel.checkpoint()
            if len(self._gathered) >= MAX_GATHERED:
                await self.hand_on()

    def _event(self, data: bytes, last_id: str) -> None:
        read = instant_of(data)
        if read is None:
            return
        said, at = read
        now = self._stream._clock.now()
        if at is not None and at <= now + CLOCK_TOLERANCE_S:
            if not self.heard and is_gap(self._told_until, at):
                log.warning("stream_gap", url=self._row.url, since=self._told_until, first=at)
                self._gathered.gap = True
            self.heard += 1
            self._gathered.at = max(at - DISORDER_S, self._gathered.at or 0.0)
        change = read_change(said)
        if change is not None and change.url is not None:
            self._changed(change, said, min(change.at or now, now))

    def _changed(self, change: PageChange, said: Mapping[str, object], at: float) -> None:
        assert change.url is not None
        for url in (change.url, _other_end(change, said)):
            if url is not None and self._stream.concerns(url):
                self._gathered.add(url, at)

    async def hand_on_again_and_again(self) -> None:
        """Hand on what has gathered, each second, until cancelled."""
        while True:
            await trio.sleep(GATHER_S)
            await self.hand_on()

    async def hand_on(self) -> None:
        """Hand on what has gathered; returns when it is in the file."""
        async with self._handing_on:
            gathered, self._gathered = self._gathered, self._empty()
            if gathered.hints or gathered.at is not None:
                with trio.CancelScope(shield=True):
                    await self._stream.tell(self._row, gathered, self._deliver)


def _other_end(change: PageChange, said: Mapping[str, object]) -> str | None:
    """Return the URL of the other page of a move: both show another text now."""
    moved = moved_from(said)
    if moved is None or change.url is None:
        return None
    old, new = (title.replace(" ", "_") for title in moved)
    shown = change.title.replace(" ", "_")
    other = new if shown == old else old
    # The address of the one page, with the title of the other in its place.
    head, slash, _ = change.url.rpartition("/wiki/")
    return canonicalize(f"{head}{slash}{quote(other, safe=_SAFE)}") if slash else None
