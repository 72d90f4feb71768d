"""Event streams as hint sources: one long connection that reports each change as it happens.

The stream is read in small pieces with checkpoints between them, so that a flood delays no fetch.
Changes wait in a bounded batch, merged per page, and are stored in one transaction with the last
event id. Nothing is read while a commit is pending, so a flood waits at the server. A silent
connection is closed. Each new connection continues after the stored id.

If the server cannot go back that far, changes were missed and the pages of that time are reconciled
(`crawld/daemon/hints/gap.py`). If it refuses the id, the next connection continues from a time.

One connection serves all hosts of a site; each host has a source row of its own.
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

from crawld.core.url import canonicalize, split_url
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
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

log = structlog.get_logger(__name__)

SILENCE_S: Final = 60.0
"""Longest silence. Wikimedia's streams send something every few seconds, canaries included."""

BATCH_S: Final = 1.0
"""How long changes are collected before a commit."""

MAX_BATCH_PAGES: Final = 2_000
"""Most pages in a batch; with more, reading stops until the batch is committed."""

PIECE_BYTES: Final = 4 * 1024
"""Bytes parsed between two reads of the clock: a few events, 0.25 ms at most."""

SLICE_S: Final = 0.001
"""Longest time of parsing without a checkpoint."""

RECONNECT_S, MAX_DOUBLINGS, STABLE_S = 1.0, 6, 30.0
"""Pause before a reconnect: the first; how often it doubles at most, once for each connection in a
row that failed within `STABLE_S`."""

SECOND_S: Final = 1.0
"""Event times are truncated to whole seconds."""

DISORDER_S: Final = 10.0
"""Events may be out of order by this much; before the latest event minus this, all are known."""

_ID_REFUSED: Final = frozenset({"status_400", "status_410", "status_412", "status_416"})
"""Responses by which a server refuses an event id that it does not know, or no longer."""

_UNQUOTED: Final = ";@$!*(),/~:"
"""Characters that MediaWiki does not quote in the path of a page."""


@dataclass(slots=True)
class _Batch:
    """Changes collected for the next commit.

    Attributes:
        told_until: time up to which every change is known; None: unchanged.
        gap: start and end of a time with missed events; None: none.
    """

    hints: dict[str, dict[str, Hint]]
    last_id: str
    told_until: float | None = None
    gap: tuple[float, float] | None = None

    def add(self, url: str, at: float) -> None:
        """Add a change of a page."""
        hints = self.hints[split_url(url).host]
        known = hints.get(url)
        if known is not None:
            first_at, last_at = min(at, known.first_at), max(at + SECOND_S, known.last_at)
            hints[url] = Hint(url, first_at, last_at)
        else:
            hints[url] = Hint(url, at, at + SECOND_S)

    def __len__(self) -> int:
        return sum(len(hints) for hints in self.hints.values())


class EventStream(BackgroundWork):
    """One event stream of one site.

    Attributes:
        hosts: hosts whose pages the stream reports on.
        continuity: detects gaps after a reconnect.
        may_name: whether the data of an event may name a page of these hosts.
    """

    def __init__(
        self,
        context: CrawlContext,
        row: SourceRow,
        rows: Mapping[str, SourceRow],
        documents: DocumentFetcher,
        accept: AcceptPoll,
    ) -> None:
        """Create a stream.

        Args:
            row: the source that holds the cursor.
            rows: the sources of all hosts of the site, by host, including `row`.
            accept: stores hints for hosts other than that of `row`.
        """
        super().__init__(context)
        self.row = row
        self.polite_host = split_url(row.url).host
        self.hosts = frozenset(rows)
        self._rows = rows
        self._documents = documents
        self._accept = accept
        self._failures = 0
        self.continuity = GapDetector()
        self.may_name = host_filter(rows)

    async def listen(self, row: SourceRow, deliver: Deliver) -> PollTrouble:
        """Connect after the last stored id and deliver changes until the connection ends."""
        self.continuity.start(row.told_until)
        reader = EventReader(row.cursor or "")
        connection = _Connection(self, row, reader, deliver)
        began_at = trio.current_time()
        troubles: list[PollTrouble] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.flush_periodically)
            wanted = self._request(row)
            troubles.append(
                await self._documents.listen(wanted, connection.receive, silence_s=SILENCE_S)
            )
            nursery.cancel_scope.cancel()
        await connection.flush()
        [ended], lasted_s = troubles, trio.current_time() - began_at
        refused = row.cursor is not None and ended.trouble in _ID_REFUSED
        if refused:
            log.warning("event_id_refused", url=row.url, why=ended.trouble)
            await deliver(Poll(at=self._clock.now(), requests=0))
        self._failures = 0 if connection.saw_event and lasted_s >= STABLE_S else self._failures + 1
        if ended.pause_s is not None or not (connection.opened or refused):
            return ended
        # Reconnect soon after a connection that was accepted, even a silent one.
        pause_s = RECONNECT_S * 2.0 ** min(self._failures, MAX_DOUBLINGS)
        return replace(ended, pause_s=max(pause_s, reader.retry_s or 0.0))

    def _request(self, row: SourceRow) -> DocumentRequest:
        headers = [("Accept", "text/event-stream"), ("Cache-Control", "no-cache")]
        url = row.url
        if row.cursor:
            headers.append(("Last-Event-ID", row.cursor))
        elif row.told_until is not None:
            since = datetime.fromtimestamp(row.told_until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            url = f"{url}{'&' if '?' in url else '?'}{urlencode({'since': since})}"
        return DocumentRequest(row.site_id, url, 0, headers=tuple(headers))

    def now(self) -> float:
        """Return the time, Unix seconds."""
        return self._clock.now()

    def covers(self, url: str) -> bool:
        """Whether a page is on a host of the site."""
        return split_url(url).host in self._rows

    async def store(self, row: SourceRow, batch: _Batch, deliver: Deliver) -> None:
        """Store a batch; the cursor is committed with the last part."""
        told_until, gap = batch.told_until, batch.gap
        result = Poll(at=self._clock.now(), told_until=told_until, requests=0)
        for host, hints in batch.hints.items():
            if host != row.host and host in self._rows:
                await self._accept(self._rows[host], replace(result, hints=list(hints.values())))
        rows = self._rows.values()
        await deliver(
            replace(
                result,
                hints=list(batch.hints.get(row.host, {}).values()),
                cursor=batch.last_id or row.cursor,
                cursor_updates=await reconcile_gap(self._database, rows, *gap) if gap else (),
            )
        )


class _Connection:
    """One connection: parses bytes into changes and delivers them in batches.

    Attributes:
        opened: whether the response is an event stream.
    """

    def __init__(
        self, stream: EventStream, row: SourceRow, reader: EventReader, deliver: Deliver
    ) -> None:
        self.opened = self.saw_event = False
        self._stream = stream
        self._row = row
        self._reader = reader
        self._deliver = deliver
        self._batch = self._empty()
        self._last_skipped = b""
        self._stored_id = reader.last_id
        self._flush_lock = trio.Lock()
        self._pause_at = 0.0

    def _empty(self) -> _Batch:
        return _Batch(defaultdict(dict), self._reader.last_id)

    def receive(self, status: int, headers: Headers) -> Sink | None:
        """Return the sink for the body if the response is an event stream."""
        kind = (header_value(headers, "content-type") or "").partition(";")[0].strip().lower()
        self.opened = status == 200 and kind == "text/event-stream"
        return self._read if self.opened else None

    async def _read(self, piece: bytes) -> None:
        for start in range(0, len(piece), PIECE_BYTES):
            for event in self._reader.feed(piece[start : start + PIECE_BYTES]):
                self._parse_event(event.data)
            self._batch.last_id = self._reader.last_id
            # A checkpoint after each event would cost more than the event.
            if trio.current_time() >= self._pause_at:
                await trio.lowlevel.checkpoint()
                self._pause_at = trio.current_time() + SLICE_S
            if len(self._batch) >= MAX_BATCH_PAGES:
                await self.flush()

    def _parse_event(self, data: bytes) -> None:
        self.saw_event = True
        # Of events about other pages only the times of the first and the last matter.
        if self._stream.continuity.since is None and not self._stream.may_name(data):
            self._last_skipped = data
            return
        fields = self._record_time(data)
        change = read_change(fields) if fields is not None else None
        if change is not None and change.url is not None:
            now = self._stream.now()
            self._add_changes(change, fields or {}, min(change.at or now, now))

    def _record_time(self, data: bytes) -> Mapping[str, object] | None:
        """Record the time of an event; return its fields, None if it is not a JSON object."""
        read = parse_event(data)
        if read is None:
            return None
        fields, at = read
        now, continuity = self._stream.now(), self._stream.continuity
        if at is not None and at <= now + CLOCK_TOLERANCE_S:
            gap = continuity.observe(at)
            if gap is not None:
                log.warning("event_stream_gap", url=self._row.url, since=gap[0], until=gap[1])
                self._batch.gap = gap
            if continuity.since is None:
                told_until = min(at, now) - DISORDER_S
                self._batch.told_until = max(told_until, self._batch.told_until or 0.0)
        return fields

    def _add_changes(self, change: PageChange, fields: Mapping[str, object], at: float) -> None:
        for url in (change.url, _other_page(change, fields)):
            if url is not None and self._stream.covers(url):
                self._batch.add(url, at)

    async def flush_periodically(self) -> None:
        """Deliver the batch every `BATCH_S` until cancelled."""
        while True:
            await trio.sleep(BATCH_S)
            await self.flush()

    async def flush(self) -> None:
        """Deliver the batch and return after its commit."""
        async with self._flush_lock:
            if self._last_skipped:
                self._record_time(self._last_skipped)
                self._last_skipped = b""
            batch, self._batch = self._batch, self._empty()
            moved = batch.told_until is not None or batch.last_id != self._stored_id
            if batch.hints or batch.gap or moved:
                self._stored_id = batch.last_id
                with trio.CancelScope(shield=True):
                    await self._stream.store(self._row, batch, self._deliver)


def _other_page(change: PageChange, fields: Mapping[str, object]) -> str | None:
    """Return the URL of the other page of a move: both pages changed."""
    moved = renamed_titles(fields)
    if moved is None or change.url is None:
        return None
    old, new = (title.replace(" ", "_") for title in moved)
    shown = change.title.replace(" ", "_")
    other = new if shown == old else old
    # The URL of the one page with the title of the other.
    head, slash, _ = change.url.rpartition("/wiki/")
    try:
        return canonicalize(f"{head}{slash}{quote(other, safe=_UNQUOTED)}") if slash else None
    except (InvalidUrlError, UnicodeError):  # JSON may hold half a surrogate pair
        return None
