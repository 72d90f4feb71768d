"""Exports WACZ: the WARC of a mirror, its index and page list in one zip, for replay in a browser.

    archive/data.warc.gz       the records (`archive`), uncompressed in the zip for range requests
    indexes/index.cdx          one CDXJ line per response or revisit, sorted
    pages/pages.jsonl          entry pages with titles
    datapackage.json           the list of files, with SHA-256 digests
    datapackage-digest.json    the digest of that list

Index and pages are collected in temporary files and sorted in runs, so that memory stays constant
for any size of mirror.

Source: WACZ 1.1.1 (specs.webrecorder.net/wacz/1.1.1), CDXJ 0.1.0.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import struct
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from typing import IO, Final

from crawld.core.display import iso_text
from crawld.core.url import split_url
from crawld.export import warc
from crawld.export.archive import ArchiveRecord, records
from crawld.export.atomic_file import atomic_file
from crawld.export.source import ExportRequest, ExportResult
from crawld.version import crawld_version

_WARC: Final = "data.warc.gz"
_EXTENDED_TIMESTAMP: Final = 0x5455

_RUN_LINES: Final = 100_000
"""Index lines sorted in memory, about 30 MB."""

_PAGE_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})


def export_wacz(request: ExportRequest) -> ExportResult:
    """Write the history of the mirror as a WACZ file (`mirror.wacz`).

    The default title is the file name.

    Raises:
        OperatorError: the file exists or cannot be written.
        StoreError: the database cannot be read.
    """
    result = ExportResult()
    with ExitStack() as stack:
        file = stack.enter_context(atomic_file(request.out))
        archive = stack.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_STORED))
        index = stack.enter_context(closing(_Index()))
        pages = stack.enter_context(tempfile.TemporaryFile())
        pages.write(_line({"format": "json-pages-1.0", "id": "pages", "title": "Pages"}))
        package = _Package(archive, request.now)
        with package.member(f"archive/{_WARC}") as member:
            for record in records(request, result):
                _index_record(record, member.size, index, pages)
                member.write(record.data)
                result.count(record.kind, len(record.data))
        package.add("indexes/index.cdx", index.lines())
        pages.seek(0)
        package.add("pages/pages.jsonl", pages)
        package.close(request.title or request.out.stem)
    return result


def _index_record(record: ArchiveRecord, offset: int, index: _Index, pages: IO[bytes]) -> None:
    if record.kind not in ("response", "revisit"):
        return
    stamp = datetime.fromtimestamp(record.at, UTC).strftime("%Y%m%d%H%M%S")
    kind = "warc/revisit" if record.kind == "revisit" else record.content_type
    entry = {
        "url": record.url,
        "mime": kind or "unk",
        "status": str(record.status),
        "digest": record.payload_digest,
        "length": str(len(record.data)),
        "offset": str(offset),
        "filename": _WARC,
    }
    index.add(f"{surt(record.url)} {stamp} ".encode() + _line(entry))
    if record.kind == "response" and record.status == 200 and record.content_type in _PAGE_TYPES:
        key = warc.digest(f"{record.at} {record.url}".encode())[5:21]
        page = {"id": key, "url": record.url, "ts": warc.date_text(record.at)}
        pages.write(_line({**page, "title": record.title or record.url}))


def surt(url: str) -> str:
    """Return the CDX sort key of a canonical URL; the order of parameters does not matter.

    >>> surt("https://www.example.org:8080/A?b=1&a=2")
    'org,example:8080)/a?a=2&b=1'
    """
    parts = split_url(url)
    authority = parts.origin.partition("://")[2]
    host, _, port = authority.partition(":") if "[" not in authority else (authority, "", "")
    labels = host.removeprefix("www.").split(".")
    path, sign, query = parts.target.lower().partition("?")
    pairs = sorted(query.split("&"), key=lambda pair: pair.split("=", 1))
    prefix = f"{','.join(reversed(labels))}{':' + port if port else ''})".lower()
    return f"{prefix}{path}{sign}{'&'.join(pairs)}"


class _Index:
    """Sorts lines in temporary files."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._runs: list[IO[bytes]] = []

    def add(self, line: bytes) -> None:
        """Add a line."""
        self._lines.append(line)
        if len(self._lines) >= _RUN_LINES:
            run = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the index)
            run.writelines(sorted(self._lines))
            self._runs.append(run)
            self._lines = []

    def lines(self) -> Iterator[bytes]:
        """Yield all lines in order."""
        for run in self._runs:
            run.seek(0)
        yield from heapq.merge(*self._runs, sorted(self._lines))

    def close(self) -> None:
        """Delete the temporary files."""
        for run in self._runs:
            run.close()


class _Member:
    """A file of the zip being written.

    Attributes:
        size: bytes written so far.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.size = 0
        self.hash = hashlib.sha256()
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.hash.update(data)
        self.size += len(data)


class _Package:
    """The zip and its list of files."""

    def __init__(self, archive: zipfile.ZipFile, now: float) -> None:
        self._archive = archive
        self._now = now
        self._resources: list[dict[str, object]] = []

    @contextmanager
    def member(self, path: str) -> Iterator[_Member]:
        """Yield a new file of the zip to write; it is listed when it is closed."""
        with self._open(path) as file:
            member = _Member(file)
            yield member
        self._resources.append(
            {
                "name": path.rpartition("/")[2],
                "path": path,
                "hash": f"sha256:{member.hash.hexdigest()}",
                "bytes": member.size,
            }
        )

    def add(self, path: str, lines: Iterable[bytes]) -> None:
        """Write a complete file of the zip."""
        with self.member(path) as member:
            for line in lines:
                member.write(line)

    def close(self, title: str) -> None:
        """Write the list and its digest."""
        description = {
            "profile": "data-package",
            "wacz_version": "1.1.1",
            "title": title,
            "created": iso_text(self._now),
            "software": f"crawld {crawld_version()}",
            "resources": self._resources,
        }
        text = json.dumps(description, indent=2).encode()
        digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(text).hexdigest()}"}
        with self._open("datapackage.json") as file:
            file.write(text)
        with self._open("datapackage-digest.json") as file:
            file.write(json.dumps(digest).encode())

    def _open(self, path: str) -> IO[bytes]:
        info = zipfile.ZipInfo(path, time.gmtime(self._now)[:6])
        # zip64 puts an extra field in front of the file. ReplayWeb.page expects one there only if
        # the directory has one too, so the time is repeated in the directory.
        info.extra = struct.pack("<HHBl", _EXTENDED_TIMESTAMP, 5, 1, int(self._now))
        return self._archive.open(info, "w", force_zip64=True)


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
