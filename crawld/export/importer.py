"""The way back: archives, ZIM files and lists of URLs into a mirror that has not visited them yet.

    crawld import warc old.warc.gz      responses 200 become copies of the instants they were made
    crawld import zim wiki.zim          entries become copies as of the day of the file
    crawld import urls list.txt         URLs become pages to visit, as if the operator named each

An import needs the file for itself (its lock), as a daemon does. It commits in batches, and notes
with each how far it came in an archive, so that an interrupted one goes on there; nothing is stored
twice however often it runs. What is damaged ends the import of its file; what came before stays.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

import apsw

from crawld.config.command_line import default_site_name
from crawld.core.content import html, media
from crawld.core.url import canonicalize, parse, url_hash
from crawld.errors import InvalidUrlError, OperatorError
from crawld.export.source import Progress, no_progress
from crawld.export.warc_reader import (
    MAX_BLOCK_BYTES,
    DamagedArchiveError,
    WarcRecord,
    read_warc,
)
from crawld.net.decompress import Decoder
from crawld.net.errors import FetchError
from crawld.store.engine import meta, migrate
from crawld.store.engine.connection import open_connection, store_error
from crawld.store.engine.lock import DatabaseLock
from crawld.store.frontier import frontier
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions import import_
from crawld.store.versions.body import encode
from crawld.store.versions.headers import pack
from crawld.store.versions.import_ import ImportedPage
from crawld.store.versions.response import StoredResponse

BATCH: Final = 200
BATCH_BYTES: Final = 16 * 2**20

_IMPORT_DEPTH: Final = 1
"""An imported page is no seed, and no farther from one than what a seed links to."""

_DATE: Final = re.compile(r"[0-9]{4}-")
_MAX_LINE: Final = 32_768
_FAULTS_SHOWN: Final = 5
_PAGE_TYPES: Final = frozenset({media.HTML, media.XHTML})
_CRAWLER_PREFIX: Final = b"x-crawler-"


@dataclass(slots=True)
class ImportResult:
    """What an import came to.

    Attributes:
        counts: what was read, by what became of it.
        faults: what could not be read, in words.
    """

    counts: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def add(self, word: str, n: int = 1) -> None:
        """Count something."""
        if n:
            self.counts[word] = self.counts.get(word, 0) + n


@contextmanager
def open_for_import(db: Path) -> Iterator[apsw.Connection]:
    """Open a database for an import, made and migrated as needed.

    Raises:
        DatabaseInUseError: a daemon has it.
        StoreError: it cannot be used.
    """
    lock = DatabaseLock.acquire(db)
    try:
        migrate.migrate(db)
        connection = open_connection(db)
        try:
            yield connection
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            raise store_error(error, db) from error
        finally:
            connection.close()
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class ArchivedPage:
    """A page as another file has it.

    Attributes:
        url: canonical URL.
        at: instant of its copy, Unix seconds.
        body: the copy, decoded.
        status: HTTP status.
        reason: its phrase.
        headers: as received.
        content_type: as declared.
    """

    url: str
    at: float
    body: bytes
    status: int = 200
    reason: str = "OK"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    content_type: str | None = None


class ImportWriter:
    """Takes pages and stores them in batches.

    Args:
        connection: the writer, alone on the file.
        site: name of the site that unknown pages are to belong to; None: by their host.
        now: Unix seconds.
        result: counts what becomes of them.
    """

    def __init__(
        self, connection: apsw.Connection, site: str | None, now: float, result: ImportResult
    ) -> None:
        self._connection = connection
        self._site = site
        self.now = now
        self._result = result
        self._batch: list[ImportedPage] = []
        self._bytes = 0
        self._sites: dict[str, int] = {}

    def take(self, found: ArchivedPage) -> None:
        """Take a page; it is stored with the batch it fills."""
        self._batch.append(self._imported(found))
        self._bytes += len(found.body)

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return len(self._batch) >= BATCH or self._bytes >= BATCH_BYTES

    def commit(self, cursor: tuple[str, str] | None = None) -> None:
        """Store what was taken, and with it how far an import came (a key and its value)."""
        with import_.transaction(self._connection):
            taken = import_.put_batch(self._connection, self._batch)
            if cursor is not None:
                meta.put(self._connection, *cursor)
        self._batch, self._bytes = [], 0
        for word, n in taken._asdict().items():
            self._result.add(word, n)

    def site_of(self, host: str) -> int:
        """Return the site that a page of a host is to belong to."""
        if host not in self._sites:
            with import_.transaction(self._connection):
                self._sites[host] = (
                    import_.site_for(self._connection, host, default_site_name(host), self.now)
                    if self._site is None
                    else import_.site_named(self._connection, self._site, self.now)
                )
        return self._sites[host]

    def discovery(self, url: str, *, seed: bool = False) -> Discovery:
        """Return a URL as the frontier takes it."""
        parts = parse(url)
        return Discovery(
            url=url,
            url_hash=url_hash(url),
            site_id=self.site_of(parts.host),
            host=parts.host,
            origin=parts.origin,
            at=self.now,
            depth=0 if seed else _IMPORT_DEPTH,
            seed=seed,
        )

    def _imported(self, found: ArchivedPage) -> ImportedPage:
        kind = media.sniff(found.content_type, found.body[: media.SNIFF_BYTES])
        charset = title = None
        if kind in _PAGE_TYPES:
            decoded = media.decode(found.body, media.charset_parameter(found.content_type))
            charset, title = decoded.charset, html.parse(decoded.text).title or None
        return ImportedPage(
            page=self.discovery(found.url),
            at=found.at,
            body=encode(found.body),
            answer=StoredResponse(
                status=found.status,
                http_version="HTTP/1.1",
                reason=found.reason,
                headers=pack(found.headers),
                content_type=kind,
                charset=charset,
            ),
            title=title,
        )


# --- WARC ------------------------------------------------------------------------------------


def import_warc(
    db: Path,
    files: list[Path],
    *,
    now: float,
    site: str | None = None,
    progress: Progress = no_progress,
) -> ImportResult:
    """Take the responses of WARC files as copies of the instants they were made.

    Args:
        db: the database; made if it is not there.
        files: the archives.
        now: Unix seconds.
        site: name of the site for unknown pages; None: by their host.
        progress: told how many bytes of how many are read.

    Returns:
        What came of it; a damaged file is among the faults, and the next one is read.

    Raises:
        OperatorError: a file cannot be opened.
        DatabaseInUseError: a daemon has the database.
    """
    result = ImportResult()
    total, done = sum(_size(path) for path in files), 0
    with open_for_import(db) as connection:
        for path in files:
            with path.open("rb") as file:
                sink = ImportWriter(connection, site, now, result)
                try:
                    _read_file(connection, file, sink, result, lambda at: progress(at, total))
                except DamagedArchiveError as error:
                    sink.commit()
                    result.faults.append(error.message)
            done += _size(path)
            progress(done, total)
    return result


def _read_file(
    connection: apsw.Connection,
    file: BinaryIO,
    sink: ImportWriter,
    result: ImportResult,
    tell: Callable[[int], None],
) -> None:
    key = _cursor_key(file)
    start = int(meta.get(connection, key) or 0)
    for record in read_warc(file, start):
        if sink.is_full and record.offset is not None:
            sink.commit((key, str(record.offset)))
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            tell(record.offset)
        elif sink.is_full:
            sink.commit()
        try:
            found = read_page(record, sink.now)
        except (FetchError, InvalidUrlError, ValueError):
            result.add("unusable")
            continue
        if found is None:
            result.add("passed_over")
        else:
            sink.take(found)
    sink.commit((key, str(os.fstat(file.fileno()).st_size)))


def _cursor_key(file: BinaryIO) -> str:
    """Return under what key it is noted how far a file was read: its size and its beginning."""
    head = hashlib.blake2b(file.read(65_536), digest_size=12).hexdigest()
    return f"import:{head}:{os.fstat(file.fileno()).st_size}"


def read_page(record: WarcRecord, now: float) -> ArchivedPage | None:
    """Return the page that a record holds; None where it holds none that a mirror keeps.

    Args:
        record: a record.
        now: Unix seconds; no copy is of the future, or it would stay the newest for ever.

    Raises:
        Fault: the body cannot be decoded, or is too large.
        InvalidUrlError: the target is no URL that can be visited.
        ValueError: the record is not what its header says.
    """
    if record.block is None or record.kind not in ("response", "resource"):
        return None
    raw = record.fields.get("warc-target-uri", "").strip("<>")
    if not raw.lower().startswith(("http:", "https:")):
        return None
    url = canonicalize(raw)
    at = min(_warc_date(record.fields.get("warc-date", "")), now)
    kind = record.fields.get("content-type", "")
    if record.kind == "resource":
        return ArchivedPage(url, at, record.block, content_type=kind or None)
    if not kind.lower().startswith("application/http"):
        return None
    return _http_page(url, at, record.block)


def _warc_date(text: str) -> float:
    """Return the instant of a WARC-Date (WARC 1.1, section 5.4).

    Raises:
        ValueError: it is none since 1970.
    """
    if not _DATE.match(text):
        raise ValueError("no WARC-Date")
    day = datetime.fromisoformat(text)
    at = (day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp()
    if at < 0.0:
        raise ValueError("before there was a web")
    return at


def _http_page(url: str, at: float, block: bytes) -> ArchivedPage | None:
    head, _, rest = block.partition(b"\r\n\r\n")
    if not rest and b"\n\n" in block:
        head, _, rest = block.partition(b"\n\n")
    first, *lines = head.splitlines()
    version, status, *reason = first.decode("latin-1").split(None, 2)
    if not version.startswith("HTTP/") or not status.isdigit():
        raise ValueError("no HTTP answer")
    if int(status) not in (200, 203):
        return None
    headers = tuple(
        (name.strip(), value.strip())
        for name, sign, value in (x.partition(b":") for x in lines)
        if sign
    )
    told = {name.lower(): value.decode("latin-1") for name, value in headers}
    if told.get(b"transfer-encoding", "").lower().endswith("chunked"):
        rest = dechunk(rest)
    decoder = Decoder(told.get(b"content-encoding"), MAX_BLOCK_BYTES)
    body = b"".join([*decoder.decode(rest), *decoder.finish()])
    plain = tuple(
        (name[len(_CRAWLER_PREFIX) :] if name.lower().startswith(_CRAWLER_PREFIX) else name, value)
        for name, value in headers
    )
    return ArchivedPage(
        url,
        at,
        body,
        int(status),
        reason[0] if reason else "",
        plain,
        told.get(b"content-type"),
    )


def dechunk(data: bytes) -> bytes:
    """Return a body without its chunks; one that says it has chunks and has none stays as it is."""
    parts: list[bytes] = []
    position = 0
    while True:
        end = data.find(b"\r\n", position, position + 1024)
        size = data[position:end].partition(b";")[0].strip() if end >= 0 else b""
        try:
            length = int(size, 16)
        except ValueError:
            return data if not parts else b"".join(parts)
        if length <= 0:
            return b"".join(parts)
        parts.append(data[end + 2 : end + 2 + length])
        position = end + 4 + length


# --- URLs ------------------------------------------------------------------------------------


def import_urls(
    db: Path,
    files: list[Path],
    *,
    now: float,
    site: str | None = None,
    progress: Progress = no_progress,
) -> ImportResult:
    """Take lists of URLs, one a line, as pages to visit; empty lines and `#` comments are skipped.

    Args:
        db: the database; made if it is not there.
        files: the lists.
        now: Unix seconds.
        site: name of the site for unknown pages; None: by their host.
        progress: told how many bytes of how many are read.

    Raises:
        OperatorError: a file cannot be opened.
        DatabaseInUseError: a daemon has the database.
    """
    result = ImportResult()
    total, done = sum(_size(path) for path in files), 0
    with open_for_import(db) as connection:
        sink = ImportWriter(connection, site, now, result)
        for path in files:
            with path.open("rb") as file:
                for batch in _batches(file, path.name, sink, result):
                    with import_.transaction(connection):
                        new = frontier.discover(connection, batch)
                    result.add("new_pages", len(new))
                    result.add("known", len(batch) - len(new))
                    progress(done + file.tell(), total)
            done += _size(path)
    return result


def _batches(
    file: BinaryIO, name: str, sink: ImportWriter, result: ImportResult
) -> Iterator[list[Discovery]]:
    batch: list[Discovery] = []
    number = 0
    while line := file.readline(_MAX_LINE):
        number += 1
        text = line.decode("utf-8", "replace").strip()
        if not text or text.startswith("#"):
            continue
        try:
            batch.append(sink.discovery(canonicalize(text), seed=True))
        except InvalidUrlError as error:
            result.add("unusable")
            if len(result.faults) < _FAULTS_SHOWN:
                result.faults.append(f"{name} line {number}: {error.message}")
        if len(batch) >= 10 * BATCH:
            yield batch
            batch = []
    yield batch


def _size(path: Path) -> int:
    try:
        if not path.is_file():
            raise OperatorError(f"{path} is no file", hint="name a file to import")
        return path.stat().st_size
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}") from error
