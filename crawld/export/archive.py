"""The mirror's history as WARC records: what was asked, what came, what was the same again.

    the visit                                 its records
    stored a copy                             response, request, metadata
    was answered 304                          revisit (server-not-modified), request, metadata
                                                with the status line and header of the 304
    met the same bytes again                  revisit (identical-payload-digest), request, metadata
    met the same content with other noise     metadata: the bytes were not kept
    was answered without a good copy          response without its body (truncated), request,
      (404, redirect, 500 ...)                metadata
    was not answered                          metadata

A revisit refers to the record of the copy it found unchanged. Identifiers follow from the mirror
and the number of version or visit, so that the reference holds across files: a weekly export with
`since` refers to the records of the weeks before. Requests are rebuilt from line and host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version as version_of
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote
from uuid import NAMESPACE_URL, UUID, uuid5

import apsw

from crawld.core.page import Outcome
from crawld.core.url import parse
from crawld.errors import CorruptDatabaseError
from crawld.export import warc
from crawld.export.atomic_file import atomic_file
from crawld.export.source import ExportResult, Progress, no_progress, open_source
from crawld.store.mirror import walk
from crawld.store.mirror.walk import ExportedCopy, PageEvent, PageHead
from crawld.store.versions import version
from crawld.store.versions.headers import unpack
from crawld.store.versions.response import StoredResponse

_HTTP_RESPONSE: Final = ("Content-Type", "application/http; msgtype=response")
_HTTP_REQUEST: Final = ("Content-Type", "application/http; msgtype=request")
_WARC_FIELDS: Final = ("Content-Type", "application/warc-fields")

_PROGRESS_EVERY: Final = 100


@dataclass(frozen=True, slots=True)
class ArchiveRecord:
    """A compressed record, and what an index says of it.

    Attributes:
        kind: its WARC-Type.
        data: the gzip member.
        url: of the page.
        at: its instant, Unix seconds.
        status: HTTP status, None without an answer.
        content_type: media type of the body.
        payload_digest: of the body.
        title: of the page, where this is its newest copy.
    """

    kind: str
    data: bytes
    url: str = ""
    at: float = 0.0
    status: int | None = None
    content_type: str | None = None
    payload_digest: str | None = None
    title: str | None = None


def export_warc(
    db: Path, out: Path, *, now: float, since: float | None = None, progress: Progress = no_progress
) -> ExportResult:
    """Write the history of the mirror as one WARC file, a gzip member a record.

    Args:
        db: the database; a daemon may be writing to it.
        out: the file, as `mirror.warc.gz`; must not exist.
        now: Unix seconds.
        since: leave out what happened before this instant.
        progress: told how far it is.

    Raises:
        OperatorError: the file cannot be written.
        StoreError: the database cannot be read.
    """
    summary = ExportResult()
    with atomic_file(out) as file:
        write_records(db, file, summary, now=now, since=since, progress=progress)
    return summary


def write_records(
    db: Path,
    file: BinaryIO,
    summary: ExportResult,
    *,
    now: float,
    since: float | None,
    progress: Progress,
) -> None:
    """Write all records one after the other."""
    for record in records(db, summary, now=now, since=since, progress=progress):
        file.write(record.data)
        summary.count(record.kind, len(record.data))


def records(
    db: Path, summary: ExportResult, *, now: float, since: float | None, progress: Progress
) -> Iterator[ArchiveRecord]:
    """Yield the records of a mirror, the file's own first, then page by page in order of time."""
    with open_source(db) as connection:
        names = _RecordIds(walk.identity(connection) or "")
        yield _warcinfo(names, now)
        total, done = walk.newest_page(connection), 0
        start = -math.inf if since is None else since
        for chunk in walk.pages_visited_since(connection, start):
            for head in chunk:
                yield from _PageHistory(connection, names, head, summary).records(start)
                done += 1
                if done % _PROGRESS_EVERY == 0:
                    progress(head.page_id, total)
        progress(total, total)


class _RecordIds:
    """Identifiers that are the same in every export of a mirror."""

    def __init__(self, identity: str) -> None:
        self._space: UUID = uuid5(NAMESPACE_URL, f"crawld:{quote(identity)}")

    def of(self, kind: str, number: int | str) -> str:
        """Return the URN of the record of a version or visit."""
        return uuid5(self._space, f"{kind}/{number}").urn


def _warcinfo(names: _RecordIds, now: float) -> ArchiveRecord:
    block = warc.warc_fields(
        [
            ("software", f"crawld/{version_of('crawld')}"),
            ("format", "WARC File Format 1.1"),
            (
                "conformsTo",
                "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            ),
            (
                "description",
                "bodies are stored without their content and transfer encoding;"
                " requests are rebuilt from line and host; what no copy was made of has no body",
            ),
        ]
    )
    data = warc.record("warcinfo", names.of("warcinfo", repr(now)), now, [_WARC_FIELDS], block)
    return ArchiveRecord("warcinfo", data)


class _PageHistory:
    """The records of one page, in order of time."""

    def __init__(
        self, connection: apsw.Connection, names: _RecordIds, head: PageHead, summary: ExportResult
    ) -> None:
        self._connection = connection
        self._names = names
        self._head = head
        self._summary = summary
        self._held: _CurrentCopy | None = None

    def records(self, since: float) -> Iterator[ArchiveRecord]:
        """Yield the records of what happened from an instant on."""
        for event in walk.events(self._connection, self._head.page_id, since):
            try:
                yield from self._of(event)
            except CorruptDatabaseError:
                self._summary.unreadable.append(self._head.url)

    def _of(self, event: PageEvent) -> Iterator[ArchiveRecord]:
        main = None
        if event.version_id is not None:
            main = self._response(event.version_id)
        elif event.outcome in (Outcome.NOT_MODIFIED, Outcome.UNCHANGED):
            main = self._revisit(event)
        elif event.answer is not None:
            main = self._without_copy(event)
        if main is not None:
            yield main[1]
            if event.visit_id:
                yield self._request(event, main[0])
        if event.visit_id:
            yield self._metadata(event, main[0] if main else None)

    def _response(self, version_id: int) -> tuple[str, ArchiveRecord] | None:
        copy = walk.copy(self._connection, version_id)
        if copy is None:
            return None
        self._held = held = _CurrentCopy(copy, warc.digest(copy.body))
        answer = copy.answer
        header = _header(answer, len(copy.body))
        record_id = self._names.of("version", version_id)
        fields = [
            *self._target(),
            _HTTP_RESPONSE,
            ("WARC-Payload-Digest", held.payload_digest),
            *(
                [("WARC-Identified-Payload-Type", answer.content_type)]
                if answer.content_type
                else []
            ),
        ]
        data = warc.record("response", record_id, copy.visited_at, fields, header + copy.body)
        return record_id, ArchiveRecord(
            "response",
            data,
            self._head.url,
            copy.visited_at,
            answer.status,
            answer.content_type,
            held.payload_digest,
            self._head.title,
        )

    def _revisit(self, event: PageEvent) -> tuple[str, ArchiveRecord] | None:
        held = self._copy_at(event.visited_at)
        same = event.digest is not None and held is not None and event.digest == held.copy.digest
        unmodified = event.outcome == Outcome.NOT_MODIFIED
        if held is None or event.answer is None or not (same or unmodified):
            return None
        copy = held.copy
        # A block would be replayed as the answer: a 304 to a browser that did not ask for one.
        header = b"" if unmodified else _header(event.answer, len(copy.body))
        record_id = self._names.of("visit", event.visit_id)
        fields = [
            *self._target(event),
            *([] if unmodified else [_HTTP_RESPONSE]),
            ("WARC-Profile", warc.SERVER_NOT_MODIFIED if unmodified else warc.IDENTICAL_PAYLOAD),
            ("WARC-Refers-To", f"<{self._names.of('version', copy.version_id)}>"),
            ("WARC-Refers-To-Target-URI", self._head.url),
            ("WARC-Refers-To-Date", warc.date_text(copy.visited_at)),
            ("WARC-Payload-Digest", held.payload_digest),
            ("WARC-Truncated", "length"),
        ]
        data = warc.record("revisit", record_id, event.visited_at, fields, header)
        return record_id, ArchiveRecord(
            "revisit",
            data,
            self._head.url,
            event.visited_at,
            copy.answer.status,
            copy.answer.content_type,
            held.payload_digest,
        )

    def _copy_at(self, at: float) -> _CurrentCopy | None:
        """Return the copy held at an instant; read once, as instants ascend."""
        if self._held is None:
            row = version.current_at(self._connection, self._head.page_id, at)
            copy = None if row is None else walk.copy(self._connection, row.version_id)
            self._held = None if copy is None else _CurrentCopy(copy, warc.digest(copy.body))
        return self._held

    def _without_copy(self, event: PageEvent) -> tuple[str, ArchiveRecord] | None:
        answer = event.answer
        if answer is None:
            return None
        header = _header(answer, 0)
        record_id = self._names.of("visit", event.visit_id)
        cut = [("WARC-Truncated", "unspecified")] if event.body_bytes else []
        fields = [*self._target(event), _HTTP_RESPONSE, *cut]
        data = warc.record("response", record_id, event.visited_at, fields, header)
        return record_id, ArchiveRecord(
            "response",
            data,
            self._head.url,
            event.visited_at,
            answer.status,
            payload_digest=warc.digest(b""),
        )

    def _request(self, event: PageEvent, answer_id: str) -> ArchiveRecord:
        url = parse(self._head.url)
        block = warc.http_request(url.target, url.origin.partition("://")[2])
        fields = [*self._target(event), _HTTP_REQUEST, ("WARC-Concurrent-To", f"<{answer_id}>")]
        record_id = self._names.of("request", event.visit_id)
        return ArchiveRecord(
            "request", warc.record("request", record_id, event.visited_at, fields, block)
        )

    def _metadata(self, event: PageEvent, answer_id: str | None) -> ArchiveRecord:
        told = {
            "outcome": event.outcome,
            "failure": event.failure,
            "detail": event.detail,
            "fetchTimeMs": None if event.duration_s is None else f"{event.duration_s * 1000:.0f}",
            "bodyBytes": str(event.body_bytes) if event.body_bytes else None,
        }
        block = warc.warc_fields([(name, value) for name, value in told.items() if value])
        if event.outcome == Outcome.NOT_MODIFIED and event.answer is not None:
            block += _header(event.answer, None).removesuffix(b"\r\n").replace(b" ", b": ", 1)
        concurrent = [] if answer_id is None else [("WARC-Concurrent-To", f"<{answer_id}>")]
        fields = [*self._target(event), _WARC_FIELDS, *concurrent]
        record_id = self._names.of("metadata", event.visit_id)
        return ArchiveRecord(
            "metadata", warc.record("metadata", record_id, event.visited_at, fields, block)
        )

    def _target(self, event: PageEvent | None = None) -> list[tuple[str, str]]:
        target = [("WARC-Target-URI", self._head.url)]
        if event is not None and event.address:
            target.append(("WARC-IP-Address", event.address))
        return target


def _header(answer: StoredResponse, length: int | None) -> bytes:
    """Return the header of an answer whose body has so many bytes, None: it has no body."""
    headers = unpack(answer.headers)
    return warc.http_header(answer.http_version, answer.status, answer.reason, headers, length)


@dataclass(frozen=True, slots=True)
class _CurrentCopy:
    """The copy of a page that is held at some instant."""

    copy: ExportedCopy
    payload_digest: str
