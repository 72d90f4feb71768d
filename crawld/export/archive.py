"""The history of the mirror as WARC records.

    visit                                     records
    stored a version                          response, request, metadata
    304                                       revisit (server-not-modified), request, metadata
                                                with the status line and header of the 304
    same bytes                                revisit (identical-payload-digest), request, metadata
    same content, different noise             metadata: the bytes were not stored
    response without a copy                   response without its body (truncated), request,
      (404, redirect, 500 ...)                metadata
    no response                               metadata

A revisit refers to the record of the unchanged copy. Record IDs are derived from the mirror and the
version or visit ID, so references are valid across files: a weekly export with `since` refers to
the records of earlier weeks. Requests are rebuilt from request line and host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote
from uuid import NAMESPACE_URL, UUID, uuid5

import apsw

from crawld.core.page import Outcome
from crawld.core.url import split_url
from crawld.errors import CorruptDatabaseError
from crawld.export import warc
from crawld.export.atomic_file import atomic_file
from crawld.export.source import ExportRequest, ExportResult, open_source
from crawld.store.mirror import walk
from crawld.store.mirror.walk import ExportedCopy, PageEvent, PageHead
from crawld.store.versions import version
from crawld.store.versions.headers import unpack
from crawld.store.versions.response import StoredResponse
from crawld.version import crawld_version

_HTTP_RESPONSE: Final = ("Content-Type", "application/http; msgtype=response")
_HTTP_REQUEST: Final = ("Content-Type", "application/http; msgtype=request")
_WARC_FIELDS: Final = ("Content-Type", "application/warc-fields")

_PROGRESS_EVERY: Final = 100


@dataclass(frozen=True, slots=True)
class ArchiveRecord:
    """A compressed record and its index fields.

    Attributes:
        kind: WARC-Type.
        data: the gzip member.
        url: URL of the page.
        at: WARC-Date, Unix seconds.
        status: HTTP status, None without a response.
        content_type: media type of the body.
        payload_digest: digest of the body.
        title: title of the page's newest copy.
    """

    kind: str
    data: bytes
    url: str = ""
    at: float = 0.0
    status: int | None = None
    content_type: str | None = None
    payload_digest: str | None = None
    title: str | None = None


def export_warc(request: ExportRequest) -> ExportResult:
    """Write the history of the mirror as a WARC file (`mirror.warc.gz`), one gzip member a record.

    Raises:
        OperatorError: the file exists or cannot be written.
        StoreError: the database cannot be read.
    """
    result = ExportResult()
    with atomic_file(request.out) as file:
        for record in records(request, result):
            file.write(record.data)
            result.count(record.kind, len(record.data))
    return result


def records(request: ExportRequest, result: ExportResult) -> Iterator[ArchiveRecord]:
    """Yield the warcinfo record, then the records of each page in chronological order."""
    with open_source(request.db) as connection:
        ids = _RecordIds(walk.identity(connection) or "")
        yield _warcinfo(ids, request.now)
        total, done = walk.newest_page(connection), 0
        start = -math.inf if request.since is None else request.since
        for chunk in walk.pages_visited_since(connection, start):
            for head in chunk:
                yield from _PageHistory(connection, ids, head, result).records(start)
                done += 1
                if done % _PROGRESS_EVERY == 0:
                    request.progress(head.page_id, total)
        request.progress(total, total)


class _RecordIds:
    """Record IDs that are the same in every export of a mirror."""

    def __init__(self, identity: str) -> None:
        self._space: UUID = uuid5(NAMESPACE_URL, f"crawld:{quote(identity)}")

    def of(self, kind: str, number: int | str) -> str:
        """Return the URN of the record of a version or visit."""
        return uuid5(self._space, f"{kind}/{number}").urn


def _warcinfo(ids: _RecordIds, now: float) -> ArchiveRecord:
    block = warc.warc_fields(
        [
            ("software", f"crawld/{crawld_version()}"),
            ("format", "WARC File Format 1.1"),
            (
                "conformsTo",
                "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            ),
            (
                "description",
                "bodies are stored without their content and transfer encoding;"
                " requests are rebuilt from request line and host; a response without a stored"
                " copy has no body",
            ),
        ]
    )
    data = warc.record("warcinfo", ids.of("warcinfo", repr(now)), now, [_WARC_FIELDS], block)
    return ArchiveRecord("warcinfo", data)


class _PageHistory:
    """The records of one page, in chronological order."""

    def __init__(
        self, connection: apsw.Connection, ids: _RecordIds, head: PageHead, result: ExportResult
    ) -> None:
        self._connection = connection
        self._ids = ids
        self._head = head
        self._result = result
        self._current: _CurrentCopy | None = None

    def records(self, since: float) -> Iterator[ArchiveRecord]:
        """Yield the records of the visits from a time on."""
        for event in walk.events(self._connection, self._head.page_id, since):
            try:
                yield from self._of(event)
            except CorruptDatabaseError:
                self._result.unreadable.append(self._head.url)

    def _of(self, event: PageEvent) -> Iterator[ArchiveRecord]:
        main = None
        if event.version_id is not None:
            main = self._response(event.version_id)
        elif event.outcome in (Outcome.NOT_MODIFIED, Outcome.UNCHANGED):
            main = self._revisit(event)
        elif event.response is not None:
            main = self._without_copy(event, event.response)
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
        self._current = current = _CurrentCopy(copy, warc.digest(copy.body))
        response = copy.response
        header = _header(response, len(copy.body))
        record_id = self._ids.of("version", version_id)
        digest = ("WARC-Payload-Digest", current.payload_digest)
        fields = [*self._target(), _HTTP_RESPONSE, digest]
        if response.content_type:
            fields.append(("WARC-Identified-Payload-Type", response.content_type))
        if response.truncated:
            fields.append(("WARC-Truncated", "length"))
        data = warc.record("response", record_id, copy.visited_at, fields, header + copy.body)
        return record_id, ArchiveRecord(
            "response",
            data,
            self._head.url,
            copy.visited_at,
            response.status,
            response.content_type,
            current.payload_digest,
            self._head.title,
        )

    def _revisit(self, event: PageEvent) -> tuple[str, ArchiveRecord] | None:
        current = self._copy_at(event.visited_at)
        if current is None or event.response is None:
            return None
        copy = current.copy
        unmodified = event.outcome == Outcome.NOT_MODIFIED
        if not unmodified and (event.digest is None or event.digest != copy.digest):
            return None
        # A player would replay the block, a 304, to a browser that sent no condition.
        header = b"" if unmodified else _header(event.response, len(copy.body))
        record_id = self._ids.of("visit", event.visit_id)
        fields = [
            *self._target(event),
            *([] if unmodified else [_HTTP_RESPONSE]),
            ("WARC-Profile", warc.SERVER_NOT_MODIFIED if unmodified else warc.IDENTICAL_PAYLOAD),
            ("WARC-Refers-To", f"<{self._ids.of('version', copy.version_id)}>"),
            ("WARC-Refers-To-Target-URI", self._head.url),
            ("WARC-Refers-To-Date", warc.date_text(copy.visited_at)),
            ("WARC-Payload-Digest", current.payload_digest),
            ("WARC-Truncated", "length"),
        ]
        data = warc.record("revisit", record_id, event.visited_at, fields, header)
        return record_id, ArchiveRecord(
            "revisit",
            data,
            self._head.url,
            event.visited_at,
            copy.response.status,
            copy.response.content_type,
            current.payload_digest,
        )

    def _copy_at(self, at: float) -> _CurrentCopy | None:
        """Return the copy valid at a time; read once, since times ascend."""
        if self._current is None:
            row = version.current_at(self._connection, self._head.page_id, at)
            copy = None if row is None else walk.copy(self._connection, row.version_id)
            self._current = None if copy is None else _CurrentCopy(copy, warc.digest(copy.body))
        return self._current

    def _without_copy(
        self, event: PageEvent, response: StoredResponse
    ) -> tuple[str, ArchiveRecord]:
        header = _header(response, 0)
        record_id = self._ids.of("visit", event.visit_id)
        cut = [("WARC-Truncated", "unspecified")] if event.body_bytes else []
        fields = [*self._target(event), _HTTP_RESPONSE, *cut]
        data = warc.record("response", record_id, event.visited_at, fields, header)
        return record_id, ArchiveRecord(
            "response",
            data,
            self._head.url,
            event.visited_at,
            response.status,
            payload_digest=warc.digest(b""),
        )

    def _request(self, event: PageEvent, answer_id: str) -> ArchiveRecord:
        url = split_url(self._head.url)
        block = warc.http_request(url.target, url.origin.partition("://")[2])
        fields = [*self._target(event), _HTTP_REQUEST, ("WARC-Concurrent-To", f"<{answer_id}>")]
        return self._attached("request", event, fields, block)

    def _metadata(self, event: PageEvent, answer_id: str | None) -> ArchiveRecord:
        fields_by_name = {
            "outcome": event.outcome,
            "failure": event.failure,
            "detail": event.detail,
            "fetchTimeMs": None if event.duration_s is None else f"{event.duration_s * 1000:.0f}",
            "bodyBytes": str(event.body_bytes) if event.body_bytes else None,
        }
        block = warc.warc_fields([(name, value) for name, value in fields_by_name.items() if value])
        if event.outcome == Outcome.NOT_MODIFIED and event.response is not None:
            block += _header(event.response, None).removesuffix(b"\r\n").replace(b" ", b": ", 1)
        concurrent = [] if answer_id is None else [("WARC-Concurrent-To", f"<{answer_id}>")]
        fields = [*self._target(event), _WARC_FIELDS, *concurrent]
        return self._attached("metadata", event, fields, block)

    def _attached(
        self, kind: str, event: PageEvent, fields: warc.Fields, block: bytes
    ) -> ArchiveRecord:
        record_id = self._ids.of(kind, event.visit_id)
        return ArchiveRecord(kind, warc.record(kind, record_id, event.visited_at, fields, block))

    def _target(self, event: PageEvent | None = None) -> list[tuple[str, str]]:
        target = [("WARC-Target-URI", self._head.url)]
        if event is not None and event.address:
            target.append(("WARC-IP-Address", event.address))
        return target


def _header(response: StoredResponse, length: int | None) -> bytes:
    """Return the HTTP header of a response with a body of `length` bytes; None: without one."""
    headers = unpack(response.headers)
    return warc.http_header(
        response.http_version, response.status, response.reason, headers, length
    )


@dataclass(frozen=True, slots=True)
class _CurrentCopy:
    """The copy of a page that is valid at the current visit."""

    copy: ExportedCopy
    payload_digest: str
