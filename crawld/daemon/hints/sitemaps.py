"""Sitemaps as hint sources: fetch each file when it is due and report its entries in parts.

One poll fetches one file of the tree or reports the next part of the open file; a part is small
enough to delay no fetch slot. Its dates are counted first, since a date that nearly all pages share
belongs to the file and says nothing about them (`DateStatistics`); then its entries are reported. A
file of one part keeps its entries until then, a larger one is read a second time. Parts wait for
commits, so a large file is kept packed meanwhile. The state of a file, validators included, is
stored with its last part. After a kill the file is fetched again, and
hints already reported are not new. A file with today's date is read again after the day ends,
changed or not: only then is the date complete.

The interval of a file halves after a change and doubles otherwise, within the share of requests
that polls may use; while pages of a replica rest it is a day at most, if that costs little of what
they save. An index with dates saves the requests for unchanged files.

Pages without a usable date but with a `changefreq` belong to a source of their own, since these
frequencies are mostly wishful and must not cost the dates their trust.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import structlog
import trio
import xxhash

from crawld.core.replica.sampling import longest_report_pause_s
from crawld.core.units import DAY_S
from crawld.core.url import split_url
from crawld.daemon.analyser import FEED_WEIGHT
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.hints.documents import Document, DocumentFetcher, DocumentRequest
from crawld.daemon.hints.source import HELD, AcceptPoll, Hint, Poll, PollTrouble
from crawld.daemon.pacing import parts_of
from crawld.sources.feed import MAX_FEED_BYTES, FeedError, read_feed
from crawld.sources.listed_page import ListedPage, TimeSpan, change_bounds
from crawld.sources.sitemap import (
    MAX_WIRE_BYTES,
    PIECE_BYTES,
    DateStatistics,
    SitemapError,
    SitemapKind,
    SitemapReader,
    pack,
    unpack,
)
from crawld.store.changes import sitemap
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.sitemap import ListedFile, SitemapRow
from crawld.store.replica import reported

log = structlog.get_logger(__name__)

PART_ENTRIES: Final = 4_000
"""Entries reported by one poll; a part waits for two or three commits."""

KEPT_BYTES: Final = 256 * 1024
"""A larger file is packed while its entries are reported: 64 MB of URLs take 5 MB."""

FIRST_EVERY_S: Final = 3_600.0
LEAST_EVERY_S, MOST_EVERY_S = 300.0, 7 * DAY_S
"""Interval of a file: the first, the shortest and the longest."""

MAX_FILES: Final = 50_000
"""Most files of one sitemap: as many as one index may name."""

MAX_INDEX_DEPTH: Final = 3
"""Most nested indexes; the format allows one."""

FILE_PAUSE_S: Final = 3_600.0
"""Back-off of a file after a failure, doubled with each in a row; other files continue."""

EARLY_S: Final = 1.0
"""A poll earlier than this before it is due was requested by the operator."""


@dataclass(slots=True)
class _OpenFile:
    """A fetched file whose entries are being reported.

    Attributes:
        document: as fetched; the body of a large one is packed.
        digest: of the body as fetched.
        kind: format of the file; None: unknown.
        trouble: why it cannot be read to its end, None if it can.
        rest: the entries not reported yet, in parts.
        listed_at: time the reading began, Unix seconds.
    """

    file: SitemapRow
    document: Document
    digest: bytes
    kind: SitemapKind | None
    dates: DateStatistics
    trouble: str | None
    rest: Iterator[Sequence[ListedPage]]
    listed_at: float


class SitemapSource(BackgroundWork):
    """One sitemap (a tree of files) that reports on the pages of one host."""

    is_free = False

    def __init__(
        self,
        context: CrawlContext,
        row: SourceRow,
        changefreq: Callable[[], Awaitable[SourceRow]],
        documents: DocumentFetcher,
        accept: AcceptPoll,
    ) -> None:
        """Create a source; `changefreq` returns the row for entries with only a changefreq."""
        super().__init__(context)
        self.row = row
        self._changefreq_row = changefreq
        self.polite_host = split_url(row.url).host
        self._documents = documents
        self._accept = accept
        self._open_file: _OpenFile | None = None

    def is_waiting(self, row: SourceRow) -> bool:
        """Whether a poll is due at once after a start: never, the files have their own times."""
        return False

    async def poll(self, row: SourceRow) -> Poll | PollTrouble:
        """Report the next part of the open file, or fetch the next file."""
        if self._open_file is None:
            result = await self._fetch_next(row)
            if result is not None:
                return result
        open_file = self._open_file
        assert open_file is not None
        part = await self._next_part(open_file)
        if part is None:
            part = await self._last_part(open_file)
            self._open_file = None
        return part

    async def _idle_poll(self) -> Poll:
        """Return an empty poll that waits until the next file is due."""
        now = self._clock.now()
        first = await self._database.read(sitemap.next_file, self.row.hint_source_id)
        wait_s = max(first.next_at - now, 0.0) if first else MOST_EVERY_S
        return Poll(at=now, cursor=None, requests=0, wait_s=min(wait_s, MOST_EVERY_S))

    # --- fetching --------------------------------------------------------------------------------

    async def _fetch_next(self, row: SourceRow) -> Poll | PollTrouble | None:
        """Fetch the file that is due; None: it is open and ready to be reported."""
        now = self._clock.now()
        file = await self._database.read(sitemap.next_file, row.hint_source_id)
        if file is None:
            await self._database.write(sitemap.ensure, row.hint_source_id, row.url, now)
            return await self._idle_poll()
        # A due time far ahead means the clock was set back; an early poll was requested.
        asked_for = row.next_poll_at is not None and now < row.next_poll_at - EARLY_S
        if 0 < file.next_at - now <= MOST_EVERY_S and not asked_for:
            return await self._idle_poll()
        day_is_over = file.open_until is not None and file.open_until <= now
        wanted = DocumentRequest(
            row.site_id, file.url, MAX_WIRE_BYTES, file.etag, file.last_modified
        )
        document = await self._documents.get(wanted.unconditional() if day_is_over else wanted)
        if isinstance(document, PollTrouble):
            return await self._back_off(file, document)
        same = document.body is None or xxhash.xxh3_128_digest(document.body) == file.digest
        if same and (document.body is None or not day_is_over):
            known = file._replace(etag=document.etag, last_modified=document.last_modified)
            return await self._close(document, known, changed=False)
        self._open_file = await self._open(file, document)
        return None

    async def _back_off(self, file: SitemapRow, trouble: PollTrouble) -> Poll | PollTrouble:
        """Back off from a file; trouble with the root file is trouble of the source."""
        if trouble.trouble == HELD:
            return trouble
        count = file.trouble_count + 1
        pause_s = trouble.pause_s or min(FILE_PAUSE_S * 2.0 ** min(count - 1, 10), MOST_EVERY_S)
        at = self._clock.now()
        troubled = file._replace(
            trouble=f"{trouble.trouble}: {trouble.detail}"[:200],
            trouble_count=count,
            next_at=at + pause_s,
        )
        await self._database.write(sitemap.update, troubled)
        if file.parent is None:
            return replace(trouble, pause_s=pause_s)
        log.warning("sitemap_trouble", url=file.url, why=trouble.trouble, detail=trouble.detail)
        return Poll(at=at, requests=trouble.requests)

    async def _close(self, document: Document, file: SitemapRow, *, changed: bool) -> Poll:
        """Return the poll that closes a file and stores its state."""
        every_s = file.every_s or FIRST_EVERY_S
        every_s = every_s / 2.0 if changed else every_s * 2.0
        every_s = min(max(every_s, LEAST_EVERY_S), await self._most_every_s())
        next_at = document.at + every_s
        if file.open_until is not None:
            next_at = min(next_at, max(file.open_until, document.at + LEAST_EVERY_S))
        done = file._replace(read_at=document.at, every_s=every_s, next_at=next_at)
        others = await self._database.read(
            sitemap.newest_dates, file.hint_source_id, file.url, document.at
        )
        # When the files were written, all changes before their latest date were known.
        told_until = max((file.newest_at or 0.0, *others)) if others is not None else 0.0
        return Poll(
            at=document.at,
            cursor=file.url,
            requests=document.requests,
            told_until=told_until or None,
            also_write=partial(sitemap.update, row=done),
        )

    async def _most_every_s(self) -> float:
        """Return the longest interval of a file: shorter while pages of the host rest."""
        host_id, now = self.row.host_id, self._clock.now()
        saved = await self._database.read(reported.saved_per_day, host_id, now)
        files = await self._database.read(sitemap.count, self.row.hint_source_id)
        return min(longest_report_pause_s(saved, files), MOST_EVERY_S)

    # --- reading ---------------------------------------------------------------------------------

    async def _open(self, file: SitemapRow, document: Document) -> _OpenFile:
        """Count the dates of a file and open it."""
        assert document.body is not None
        dates, reader, trouble = DateStatistics(document.at), SitemapReader(), None
        digest = xxhash.xxh3_128_digest(document.body)
        found: list[ListedPage] | None = []
        try:
            read = _entries(document, reader)
            while (entries := await self._next_piece(document.url, read)) is not None:
                dates.add(entries)
                if found is not None:
                    found.extend(entries)
                    found = found if len(found) <= PART_ENTRIES else None
                if reader.kind is SitemapKind.FEED:
                    found = await self._read_feed(document.body, document.url)
                    dates.add(found)
                    break
        except SitemapError as error:
            trouble = str(error)
        if document.cut and trouble is None:
            trouble = f"more than {MAX_WIRE_BYTES} bytes"
        if trouble is not None:
            log.warning("sitemap_trouble", url=file.url, why=trouble, entries=dates.count)
        kept = await self._packed(document, needed=found is None)
        is_ours = kept.body is not document.body
        rest = (
            _entries(kept, SitemapReader(), packed_here=is_ours)
            if found is None
            else parts_of(found, PART_ENTRIES)
        )
        return _OpenFile(file, kept, digest, reader.kind, dates, trouble, rest, self._clock.now())

    async def _packed(self, document: Document, *, needed: bool) -> Document:
        """Return a document with its body packed if it is large, or dropped if not needed."""
        body, lease = document.body, document.lease
        assert body is not None
        if not needed:
            body = b""
        elif len(body) > KEPT_BYTES:
            body = await self._analyser.pack(pack, body, url=document.url, body=body)
        if lease is not None:
            lease.shrink(len(body))
        return replace(document, body=body)

    async def _next_piece(
        self, url: str, entries: Iterator[Sequence[ListedPage]]
    ) -> Sequence[ListedPage] | None:
        """Read the next piece of a file; None: there is no more."""
        await trio.lowlevel.checkpoint()
        return await self._analyser.run(next, entries, None, url=url, size_bytes=PIECE_BYTES)

    async def _read_feed(self, body: bytes, url: str) -> list[ListedPage]:
        return await self._analyser.read(
            _feed_entries, body, url, url=url, bodies=(body,), weight=FEED_WEIGHT
        )

    async def _next_part(self, open_file: _OpenFile) -> Poll | None:
        """Return the next part of the open file, None at its end."""
        shared, part = open_file.dates.shared_date(), _EntryBatch()
        try:
            url, rest = open_file.document.url, open_file.rest
            while (entries := await self._next_piece(url, rest)) is not None:
                if open_file.kind is SitemapKind.INDEX:
                    await self._store_index(open_file.file, entries, open_file.listed_at)
                    continue
                part.add(entries, shared, open_file.document.at, self.row.host)
                if len(part.urls) >= PART_ENTRIES:
                    break
        except SitemapError:
            pass  # at the same place as in the first reading
        return await self._report(open_file.document, part) if part.urls else None

    async def _last_part(self, open_file: _OpenFile) -> Poll:
        """Close the file: return the poll that stores its state."""
        file, document, dates = open_file.file, open_file.document, open_file.dates
        dated = dates.dated - dates.future > dates.count / 2 and dates.shared_date() is None
        newest_at = dates.newest if dated else None
        seen = (file.entry_count, file.newest_at)
        changed = file.read_at is None or seen != (dates.count, newest_at)
        is_complete = open_file.trouble is None
        if is_complete and await self._database.read(sitemap.count, file.hint_source_id) > 1:
            await self._database.write(sitemap.delete_unlisted, file, open_file.listed_at)
        done = file._replace(
            # A file that was not read to its end is fetched in full next time.
            etag=document.etag if is_complete else None,
            last_modified=document.last_modified if is_complete else None,
            digest=open_file.digest,
            entry_count=dates.count,
            newest_at=newest_at,
            open_until=dates.open_until,
            trouble=open_file.trouble,
            trouble_count=0 if is_complete else file.trouble_count + 1,
        )
        return await self._close(document, done, changed=changed)

    async def _report(self, document: Document, part: _EntryBatch) -> Poll:
        if part.changefreq:
            await self._accept(
                await self._changefreq_row(),
                Poll(at=document.at, hints=part.changefreq, requests=0),
            )
        return Poll(at=document.at, hints=part.dated, requests=0, more=True, found_urls=part.urls)

    async def _store_index(
        self, file: SitemapRow, entries: Sequence[ListedPage], at: float
    ) -> None:
        if file.depth >= MAX_INDEX_DEPTH:
            return
        found = [ListedFile(url, changed.first if changed else None) for url, changed, _ in entries]
        await self._database.write(sitemap.add_listed, by=file, files=found, at=at, most=MAX_FILES)


@dataclass(slots=True)
class _EntryBatch:
    """Some entries of a file.

    Attributes:
        dated: changes by date, of URLs on the source's host.
        changefreq: changes by changefreq, of the others on that host.
    """

    urls: list[str] = field(default_factory=list)
    dated: list[Hint] = field(default_factory=list)
    changefreq: list[Hint] = field(default_factory=list)

    def add(
        self, entries: Iterable[ListedPage], shared: TimeSpan | None, now: float, host: str
    ) -> None:
        """Add entries; a date equal to `shared` says nothing."""
        for entry in entries:
            self.urls.append(entry.url)
            dated = entry.changed is not None and entry.changed != shared
            hint = dated_hint(entry, now) if dated else None
            every_s = entry.every_s
            if hint is None and (every_s is None or every_s >= now):
                continue
            if split_url(entry.url).host != host:
                continue
            if hint is not None:
                self.dated.append(hint)
            elif every_s is not None:
                self.changefreq.append(Hint(entry.url, now - every_s, now - every_s))


def dated_hint(entry: ListedPage, now: float) -> Hint | None:
    """Return the hint from the date of an entry, None without a usable date."""
    bounds = change_bounds(entry.changed, now) if entry.changed is not None else None
    return None if bounds is None else Hint(entry.url, *bounds)


def _entries(
    document: Document, reader: SitemapReader, *, packed_here: bool = False
) -> Iterator[list[ListedPage]]:
    """Yield the entries of a document in small lists.

    Args:
        packed_here: whether the body was packed after a first reading.

    Raises:
        SitemapError: it is not a sitemap, or is broken after the entries already yielded.
    """
    assert document.body is not None
    try:
        for piece in unpack(document.body, packed_here=packed_here):
            try:
                yield reader.feed(piece)
            except SitemapError:
                yield reader.take_entries()
                raise
        if not document.cut:
            yield reader.close()
    finally:
        reader.let_go()


def _feed_entries(body: bytes, url: str) -> list[ListedPage]:
    try:
        return list(read_feed(body[:MAX_FEED_BYTES], url).entries.values())
    except FeedError as error:
        raise SitemapError(str(error)) from error
