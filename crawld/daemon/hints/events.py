"""Event streams as hint sources: one long connection that tells of each change as it happens.

What comes is read in small pieces, a pause for others after each, so that a flood moves no fetch
slot. Changes wait in a bounded gathering, those of one page together, and go into the file in parts
with the id behind them; while the file is busy nothing more is read, and the flood waits in the
server. A connection that is silent for too long is given up; each break is answered by a new
connection that goes on behind the last id in the file.

A stream that cannot go back that far has left something out, and what is held is reconciled
(`crawld/daemon/hints/gap.py`). One that refuses the id it gave goes on from an instant.

One connection serves all hosts of a site: what it tells of the others goes to a source of theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

import structlog
import trio

from crawld.core.url import canonicalize, parse
from crawld.daemon.clock import Clock
from crawld.daemon.hints.documents import DocumentFetcher, DocumentRequest
from crawld.daemon.hints.gap import reconcile_gap
from crawld.daemon.hints.source import AcceptPoll, Deliver, Hint, Poll, PollTrouble
from crawld.errors import InvalidUrlError
from crawld.net.exchange import Headers, Sink, header_value
from crawld.sources.event_stream import (
    EventReader,
    GapDetector,
    PageChange,
    host_filter,
    parse_event,
    read_change,
    renamed_titles,
)
from crawld.sources.listed_page import CLOCK_TOLERANCE_S
from crawld.store.changes.hint_source import SourceRow
from crawld.store.engine.database import Database

log = structlog.get_logger(__name__)

SILENCE_S: Final = 60.0
"""Longest silence: Wikimedia's streams say something every few seconds, canaries included."""

GATHER_S: Final = 1.0
"""How long changes wait for others before they go into the file."""

MAX_GATHERED: Final = 2_000
"""Pages with changes that wait; with more, reading stops until they are in the file."""

PIECE_BYTES: Final = 4 * 1024
"""Read between two looks at the clock: a few events, a quarter of a millisecond at most."""

SLICE_S: Final = 0.001
"""Longest time that a stream is read before other tasks have their turn."""

AGAIN_S, MAX_DOUBLINGS, SOUND_S = 1.0, 6, 30.0
"""Pause before the next connection, doubling with each in a row that lasted no longer."""

SECOND_S: Final = 1.0
"""Instants are whole seconds, cut."""

DISORDER_S: Final = 10.0
"""Events come a little out of order: so long before the latest, all have been told."""

_REFUSED: Final = frozenset({"status_400", "status_410", "status_412", "status_416"})
"""So a server may answer to an id that it does not know, or no longer."""

_SAFE: Final = ";@$!*(),/~:"
"""What MediaWiki leaves as it is in the path of a page."""


@dataclass(slots=True)
class _Batch:
    """What waits for its way into the file.

    Attributes:
        hints: by host and URL. last_id: behind the last event.
        told_until: up to when all changes have been told; None: as before.
        gap: the time in which something was left out; None: nothing was.
    """

    hints: dict[str, dict[str, Hint]]
    last_id: str
    told_until: float | None = None
    gap: tuple[float, float] | None = None

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
        row: of the host its cursor is kept for. hosts: those whose pages it tells of.
        continuity: whether it goes on where it ended.
        may_name: whether the data of an event may name a page of the site's hosts.
    """

    def __init__(
        self,
        row: SourceRow,
        beside: Mapping[str, SourceRow],
        documents: DocumentFetcher,
        database: Database,
        clock: Clock,
        accept: AcceptPoll,
    ) -> None:
        """Take what a stream is listened to with.

        Args:
            row: its source, which has the cursor.
            beside: sources of all hosts of the site, by host, that of `row` included.
            documents: connects.
            database: of the sources.
            clock: for instants that lie in the future.
            accept: takes what is said of hosts other than that of `row`.
        """
        self.row = row
        self.polite_host = parse(row.url).host
        self.hosts = frozenset(beside)
        self._beside = beside
        self._documents = documents
        self._database = database
        self._clock = clock
        self._accept = accept
        self._broken = 0
        self.continuity = GapDetector()
        self.may_name = host_filter(beside)

    async def listen(self, row: SourceRow, deliver: Deliver) -> PollTrouble:
        """Connect behind the last id, and hand on what comes until the connection is over."""
        self.continuity.start(row.told_until)
        reader = EventReader(row.cursor or "")
        hearing = _Connection(self, row, reader, deliver)
        began_at = trio.current_time()
        said: list[PollTrouble] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hearing.hand_on_again_and_again)
            wanted = self._wanted(row)
            said.append(await self._documents.listen(wanted, hearing.receive, silence_s=SILENCE_S))
            nursery.cancel_scope.cancel()
        await hearing.hand_on()
        [over], lasted_s = said, trio.current_time() - began_at
        refused = row.cursor is not None and over.trouble in _REFUSED
        if refused:
            log.warning("stream_id_refused", url=row.url, why=over.trouble)
            await deliver(Poll(at=self._clock.now(), requests=0))
        self._broken = 0 if hearing.heard and lasted_s >= SOUND_S else self._broken + 1
        if over.pause_s is not None or not (hearing.opened or refused):
            return over
        # Briefly after a connection that stood, be it a silent one.
        pause_s = AGAIN_S * 2.0 ** min(self._broken, MAX_DOUBLINGS)
        return replace(over, pause_s=max(pause_s, reader.retry_s or 0.0))

    def _wanted(self, row: SourceRow) -> DocumentRequest:
        headers = [("Accept", "text/event-stream"), ("Cache-Control", "no-cache")]
        url = row.url
        if row.cursor:
            headers.append(("Last-Event-ID", row.cursor))
        elif row.told_until is not None:
            since = datetime.fromtimestamp(row.told_until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            url = f"{url}{'&' if '?' in url else '?'}{urlencode({'since': since})}"
        return DocumentRequest(row.site_id, url, 0, headers=tuple(headers))

    def now(self) -> float:
        """Return the time of day, Unix seconds."""
        return self._clock.now()

    def concerns(self, url: str) -> bool:
        """Whether a page may be one of the site's."""
        return parse(url).host in self._beside

    async def tell(self, row: SourceRow, gathered: _Batch, deliver: Deliver) -> None:
        """Put what was gathered into the file, the cursor with the last of it."""
        told_until, gap = gathered.told_until, gathered.gap
        said = Poll(at=self._clock.now(), told_until=told_until, requests=0)
        for host, hints in gathered.hints.items():
            if host != row.host and host in self._beside:
                await self._accept(self._beside[host], replace(said, hints=list(hints.values())))
        rows = self._beside.values()
        await deliver(
            replace(
                said,
                hints=list(gathered.hints.get(row.host, {}).values()),
                cursor=gathered.last_id or row.cursor,
                cursor_updates=await reconcile_gap(self._database, rows, *gap) if gap else (),
            )
        )


class _Connection:
    """One connection: from bytes to changes, and from there to whoever takes them.

    Attributes:
        opened: whether it is a stream of events. heard: whether any came.
    """

    def __init__(
        self, stream: EventStream, row: SourceRow, reader: EventReader, deliver: Deliver
    ) -> None:
        self.opened = self.heard = False
        self._stream = stream
        self._row = row
        self._reader = reader
        self._deliver = deliver
        self._gathered = self._empty()
        self._passed_over = b""
        self._told_id = reader.last_id
        self._handing_on = trio.Lock()
        self._pause_at = 0.0

    def _empty(self) -> _Batch:
        return _Batch(defaultdict(dict), self._reader.last_id)

    def receive(self, status: int, headers: Headers) -> Sink | None:
        """Take the body of an answer that is a stream of events."""
        kind = (header_value(headers, "content-type") or "").partition(";")[0].strip().lower()
        self.opened = status == 200 and kind == "text/event-stream"
        return self._read if self.opened else None

    async def _read(self, piece: bytes) -> None:
        for start in range(0, len(piece), PIECE_BYTES):
            for event in self._reader.feed(piece[start : start + PIECE_BYTES]):
                self._event(event.data)
            self._gathered.last_id = self._reader.last_id
            # Where each event is a piece of its own, a pause after each would cost more than they.
            if trio.current_time() >= self._pause_at:
                await trio.lowlevel.checkpoint()
                self._pause_at = trio.current_time() + SLICE_S
            if len(self._gathered) >= MAX_GATHERED:
                await self.hand_on()

    def _event(self, data: bytes) -> None:
        self.heard = True
        # Of other pages only the instants of the first events and of the last one matter.
        if self._stream.continuity.since is None and not self._stream.may_name(data):
            self._passed_over = data
            return
        said = self._instant(data)
        change = read_change(said) if said is not None else None
        if change is not None and change.url is not None:
            now = self._stream.now()
            self._changed(change, said or {}, min(change.at or now, now))

    def _instant(self, data: bytes) -> Mapping[str, object] | None:
        """Take the instant of an event; return what it says, None where it is none."""
        read = parse_event(data)
        if read is None:
            return None
        said, at = read
        now, continuity = self._stream.now(), self._stream.continuity
        if at is not None and at <= now + CLOCK_TOLERANCE_S:
            gap = continuity.observe(at)
            if gap is not None:
                log.warning("stream_gap", url=self._row.url, since=gap[0], until=gap[1])
                self._gathered.gap = gap
            if continuity.since is None:
                told_until = min(at, now) - DISORDER_S
                self._gathered.told_until = max(told_until, self._gathered.told_until or 0.0)
        return said

    def _changed(self, change: PageChange, said: Mapping[str, object], at: float) -> None:
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
            if self._passed_over:
                self._instant(self._passed_over)
                self._passed_over = b""
            gathered, self._gathered = self._gathered, self._empty()
            moved = gathered.told_until is not None or gathered.last_id != self._told_id
            if gathered.hints or gathered.gap or moved:
                self._told_id = gathered.last_id
                with trio.CancelScope(shield=True):
                    await self._stream.tell(self._row, gathered, self._deliver)


def _other_end(change: PageChange, said: Mapping[str, object]) -> str | None:
    """Return the URL of the other page of a move: both show another text now."""
    moved = renamed_titles(said)
    if moved is None or change.url is None:
        return None
    old, new = (title.replace(" ", "_") for title in moved)
    shown = change.title.replace(" ", "_")
    other = new if shown == old else old
    # The address of the one page, with the title of the other in its place.
    head, slash, _ = change.url.rpartition("/wiki/")
    try:
        return canonicalize(f"{head}{slash}{quote(other, safe=_SAFE)}") if slash else None
    except (InvalidUrlError, UnicodeError):  # half a character, as JSON can have
        return None
