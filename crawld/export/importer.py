"""Import of WARC files and URL lists into a mirror; `zim_reader` imports ZIM files.

    crawld import warc old.warc.gz      responses with status 200 become copies of their WARC-Date
    crawld import zim wiki.zim          entries become copies of the date of the file
    crawld import urls list.txt         URLs become seeds

An import locks the database, as a daemon does. It commits in batches, each with the position in the
archive, so an interrupted import continues there. A repeated import stores nothing twice. A damaged
record ends the import of its file; earlier records are kept.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

import apsw

from crawld.config.command_line import default_site_name
from crawld.core.content import html, media
from crawld.core.content.documents import PDF
from crawld.core.url import canonicalize, split_url, url_hash
from crawld.errors import InvalidUrlError, OperatorError
from crawld.export.source import Progress, no_progress
from crawld.export.warc_reader import MAX_BLOCK_BYTES, DamagedArchiveError, WarcRecord, read_warc
from crawld.net.decompress import Decoder
from crawld.net.errors import FetchError
from crawld.pdf_text import PdfError, extract_pdf
from crawld.store.engine import meta, migrate
from crawld.store.engine.connection import open_connection, retry_while_locked, store_error
from crawld.store.engine.lock import DatabaseLock
from crawld.store.frontier import frontier
from crawld.store.frontier.frontier import Discovery
from crawld.store.versions import import_
from crawld.store.versions.body import EncodedBody, encode
from crawld.store.versions.headers import pack
from crawld.store.versions.import_ import ImportedPage
from crawld.store.versions.response import StoredResponse

BATCH: Final = 200
BATCH_BYTES: Final = 16 * 2**20

_IMPORT_DEPTH: Final = 1
"""An imported page counts as linked from a seed."""

PDF_WITHOUT_TEXT: Final = "pdf_without_text"
"""Count of PDFs whose text cannot be read; they are stored without it."""

_DATE: Final = re.compile(r"[0-9]{4}-")
_MAX_LINE: Final = 32_768
_FAULTS_SHOWN: Final = 5
_PAGE_TYPES: Final = frozenset({media.HTML, media.XHTML})
_CRAWLER_PREFIX: Final = b"x-crawler-"


@dataclass(slots=True)
class ImportResult:
    """Counts of an import.

    Attributes:
        counts: records or URLs read, by result.
        faults: messages about unreadable records or files.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@contextmanager
def open_for_import(db: Path) -> Iterator[apsw.Connection]:
    """Open a database for an import; create or migrate it as needed.

    Raises:
        DatabaseInUseError: a daemon uses it.
        StoreError: it cannot be used.
    """
    with DatabaseLock.acquire(db):
        _prepare(db)
        with closing(open_connection(db)) as connection:
            try:
                yield connection
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.Error as error:
                raise store_error(error, db) from error


@retry_while_locked()
def _prepare(db: Path) -> None:
    migrate.migrate(db)


@dataclass(frozen=True, slots=True)
class ArchivedPage:
    """A page read from an archive.

    Attributes:
        url: canonical URL.
        at: time of the copy, Unix seconds.
        body: decoded body.
        status: HTTP status.
        reason: reason phrase.
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
    """Stores pages in batches and counts them; `site` is that of unknown pages, None: by host."""

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

    def add(self, page: ArchivedPage) -> None:
        """Add a page to the batch."""
        self._batch.append(self._imported(page))
        self._bytes += len(page.body)

    @property
    def is_full(self) -> bool:
        """Whether the batch must be committed."""
        return len(self._batch) >= BATCH or self._bytes >= BATCH_BYTES

    def commit(self, cursor: tuple[str, str] | None = None) -> None:
        """Store the batch and the position in the archive (a key and its value)."""
        with import_.transaction(self._connection):
            stored = import_.put_batch(self._connection, self._batch)
            if cursor is not None:
                meta.put(self._connection, *cursor)
        self._batch, self._bytes = [], 0
        self._result.counts += Counter(stored._asdict())

    def site_of(self, host: str) -> int:
        """Return the site ID for the pages of a host."""
        if host not in self._sites:
            with import_.transaction(self._connection):
                self._sites[host] = (
                    import_.site_for(self._connection, host, default_site_name(host), self.now)
                    if self._site is None
                    else import_.site_named(self._connection, self._site, self.now)
                )
        return self._sites[host]

    def discovery(self, url: str, *, seed: bool = False) -> Discovery:
        """Return a URL as input of the frontier."""
        parts = split_url(url)
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

    def _imported(self, page: ArchivedPage) -> ImportedPage:
        kind = media.sniff(page.content_type, page.body[: media.SNIFF_BYTES])
        charset = title = None
        body = encode(page.body)
        if kind == PDF:
            body, title = self._with_text(page, body)
        if kind in _PAGE_TYPES:
            decoded = media.decode(page.body, media.charset_parameter(page.content_type))
            charset, title = decoded.charset, html.parse(decoded.text).title or None
        return ImportedPage(
            page=self.discovery(page.url),
            at=page.at,
            body=body,
            response=StoredResponse(
                status=page.status,
                http_version="HTTP/1.1",
                reason=page.reason,
                headers=pack(page.headers),
                content_type=kind,
                charset=charset,
            ),
            title=title,
        )

    def _with_text(self, page: ArchivedPage, body: EncodedBody) -> tuple[EncodedBody, str | None]:
        """Return the body of a PDF with its text, and its title; it may have none to read."""
        try:
            found = extract_pdf(page.body)
        except PdfError:
            self._result.counts[PDF_WITHOUT_TEXT] += 1
            return body, None
        return replace(body, text=encode(found.text.encode())), found.title.strip() or None


# --- WARC ------------------------------------------------------------------------------------


def import_warc(
    db: Path,
    files: list[Path],
    *,
    now: float,
    site: str | None = None,
    progress: Progress = no_progress,
) -> ImportResult:
    """Import the responses of WARC files as copies of their WARC-Date.

    After a damaged file, the next is read. `site` is that of unknown pages; None: by host.
    `progress` receives bytes read and total bytes.

    Raises:
        OperatorError: a file cannot be opened.
        DatabaseInUseError: a daemon uses the database.
    """
    result = ImportResult()
    total, done = sum(_size(path) for path in files), 0
    with open_for_import(db) as connection:
        for path in files:
            with path.open("rb") as file:
                writer = ImportWriter(connection, site, now, result)
                try:
                    _read_file(connection, file, writer, result, lambda at: progress(at, total))
                except DamagedArchiveError as error:
                    writer.commit()
                    result.faults.append(error.message)
            done += _size(path)
            progress(done, total)
    return result


def _read_file(
    connection: apsw.Connection,
    file: BinaryIO,
    writer: ImportWriter,
    result: ImportResult,
    report: Callable[[int], None],
) -> None:
    key = _cursor_key(file)
    start = int(meta.get(connection, key) or 0)
    for record in read_warc(file, start):
        if writer.is_full and record.offset is not None:
            writer.commit((key, str(record.offset)))
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            report(record.offset)
        elif writer.is_full:
            writer.commit()
        try:
            page = read_page(record, writer.now)
        except (FetchError, InvalidUrlError, ValueError):
            result.counts["unusable"] += 1
            continue
        if page is None:
            result.counts["passed_over"] += 1
        else:
            writer.add(page)
    writer.commit((key, str(os.fstat(file.fileno()).st_size)))


def _cursor_key(file: BinaryIO) -> str:
    """Return the key of the stored position in a file: a digest of its start, and its size."""
    head = hashlib.blake2b(file.read(65_536), digest_size=12).hexdigest()
    return f"import:{head}:{os.fstat(file.fileno()).st_size}"


def read_page(record: WarcRecord, now: float) -> ArchivedPage | None:
    """Return the page in a record; None unless it has a page with status 200 or 203.

    The time of the copy is at most `now`, since a future one would stay the newest.

    Raises:
        FetchError: the body cannot be decoded or is too large.
        InvalidUrlError: the target is not a valid URL.
        ValueError: the record is malformed.
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
    """Return the time of a WARC-Date (WARC 1.1, section 5.4).

    Raises:
        ValueError: it is malformed or before 1970.
    """
    if not _DATE.match(text):
        raise ValueError("no WARC-Date")
    day = datetime.fromisoformat(text)
    at = (day if day.tzinfo else day.replace(tzinfo=UTC)).timestamp()
    if at < 0.0:
        raise ValueError("WARC-Date before 1970")
    return at


def _http_page(url: str, at: float, block: bytes) -> ArchivedPage | None:
    head, _, rest = block.partition(b"\r\n\r\n")
    if not rest and b"\n\n" in block:
        head, _, rest = block.partition(b"\n\n")
    first, *lines = head.splitlines()
    version, status, *reason = first.decode("latin-1").split(None, 2)
    if not version.startswith("HTTP/") or not status.isdigit():
        raise ValueError("no HTTP response")
    if int(status) not in (200, 203):
        return None
    headers = tuple(
        (name.strip(), value.strip())
        for name, sign, value in (x.partition(b":") for x in lines)
        if sign
    )
    by_name = {name.lower(): value.decode("latin-1") for name, value in headers}
    if by_name.get(b"transfer-encoding", "").lower().endswith("chunked"):
        rest = dechunk(rest)
    decoder = Decoder(by_name.get(b"content-encoding"), MAX_BLOCK_BYTES)
    body = b"".join([*decoder.decode(rest), *decoder.finish()])
    plain = tuple(
        (name[len(_CRAWLER_PREFIX) :] if name.lower().startswith(_CRAWLER_PREFIX) else name, value)
        for name, value in headers
    )
    text = reason[0] if reason else ""
    return ArchivedPage(url, at, body, int(status), text, plain, by_name.get(b"content-type"))


def dechunk(data: bytes) -> bytes:
    """Return a body without chunked encoding; one that is not chunked is returned unchanged."""
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
    """Import lists of URLs, one per line, as seeds; empty lines and `#` comments are skipped.

    Args and Raises: as for `import_warc`.
    """
    result = ImportResult()
    total, done = sum(_size(path) for path in files), 0
    with open_for_import(db) as connection:
        writer = ImportWriter(connection, site, now, result)
        for path in files:
            with path.open("rb") as file:
                for batch in _batches(file, path.name, writer, result):
                    with import_.transaction(connection):
                        new = frontier.discover(connection, batch)
                    result.counts += Counter(new_pages=len(new), known=len(batch) - len(new))
                    progress(done + file.tell(), total)
            done += _size(path)
    return result


def _batches(
    file: BinaryIO, name: str, writer: ImportWriter, result: ImportResult
) -> Iterator[list[Discovery]]:
    batch: list[Discovery] = []
    number = 0
    while line := file.readline(_MAX_LINE):
        number += 1
        text = line.decode("utf-8", "replace").strip()
        if not text or text.startswith("#"):
            continue
        try:
            batch.append(writer.discovery(canonicalize(text), seed=True))
        except InvalidUrlError as error:
            result.counts["unusable"] += 1
            if len(result.faults) < _FAULTS_SHOWN:
                result.faults.append(f"{name} line {number}: {error.message}")
        if len(batch) >= 10 * BATCH:
            yield batch
            batch = []
    yield batch


def _size(path: Path) -> int:
    try:
        if not path.is_file():
            raise OperatorError(f"{path} is not a file", hint="give a file to import")
        return path.stat().st_size
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}") from error
