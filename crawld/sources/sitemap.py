"""Reads sitemaps piece by piece: lists of pages, lists of sitemaps, plain text.

Only the current entry is in memory, so ten million URLs need no more than ten. Hostile input stops
the parser there; the entries before it are kept:

1. A document type is refused, because it can define entities (billion laughs, local files).
2. gzip is unpacked in small pieces; more than `MAX_UNPACKED_BYTES`, or more than `MAX_EXPANSION`
   times the input, is a decompression bomb.
3. Deeply nested elements, or megabytes without an element, are not a sitemap.
4. Only a page's own `loc` and `lastmod` are read, not those of its images, videos and news, which
   have the same names in other namespaces.

`DateStatistics` evaluates the dates: a date that nearly all entries share is the time the file was
written, not that of changes.

Source: Sitemaps XML format, version 0.9 (sitemaps.org), 2008.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final
from xml.parsers import expat

from crawld.core.page import Failure
from crawld.core.units import DAY_S, YEAR_S
from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError
from crawld.net.decompress import Decoder
from crawld.net.errors import FetchError
from crawld.sources.listed_page import CLOCK_TOLERANCE_S, ListedPage, TimeSpan, is_open, read_date

MAX_WIRE_BYTES = 64 * 1024 * 1024
"""Limit of a sitemap as sent; the format allows 50 MB unpacked, and some are larger."""

MAX_UNPACKED_BYTES = 2 * 1024 * 1024 * 1024
"""Limit of an unpacked sitemap; ten million URLs take 1.5 GB."""

MAX_EXPANSION = 200
"""Largest ratio of unpacked to packed size: lists of URLs reach 50, a bomb 1,000."""

FREE_UNPACKED_BYTES = 4 * 1024 * 1024
"""Unpacked size that is always allowed, regardless of the ratio."""

PIECE_BYTES = 32 * 1024
"""Bytes read at a time: about 300 URLs, 1.5 ms."""

_PACK_LEVEL: Final = 1

MAX_DEPTH = 8
"""Limit of nested elements; a sitemap has three levels, five with images and translations."""

MAX_TEXT_LENGTH = 8_192
"""Characters of one element that are read."""

MAX_SILENT_BYTES = 1024 * 1024
"""Limit of bytes without an element."""

MAX_JUNK_LINES = 20
"""Lines of a text sitemap that may not be URLs before the file is refused."""

SHARED_LEAST, SHARED_SHARE = 10, 0.9
"""A date shared by at least this many entries and this share of them is the date of the file."""

MAX_DATES_COUNTED = 1_000

_PERIODS_S: Final = {
    "always": 600.0,
    "hourly": 3_600.0,
    "daily": DAY_S,
    "weekly": 7 * DAY_S,
    "monthly": 30 * DAY_S,
    "yearly": YEAR_S,
    "never": float("inf"),
}

_WANTED = ("loc", "lastmod", "changefreq")
_URL = re.compile(r"https?://\S+", re.IGNORECASE).fullmatch
_GZIP = b"\x1f\x8b"
_MARKS = b"\xef\xbb\xbf \t\r\n"


class SitemapKind(StrEnum):
    """Kind of a document."""

    PAGES = "pages"
    INDEX = "index"
    FEED = "feed"


_ROOTS: Final = {
    "urlset": SitemapKind.PAGES,
    "sitemapindex": SitemapKind.INDEX,
    **dict.fromkeys(("rss", "feed", "rdf"), SitemapKind.FEED),
}


class SitemapError(Exception):
    """A sitemap cannot be read to its end; the message is for people."""


def pack(body: bytes) -> bytes:
    """Return a body in less memory, the same object if it is gzip already.

    A body packed here is read with `unpack(..., packed_here=True)`.
    """
    return body if body.startswith(_GZIP) else gzip.compress(body, _PACK_LEVEL, mtime=0)


def unpack(body: bytes, *, packed_here: bool = False) -> Iterator[bytes]:
    """Yield a body in pieces, unpacked if it is gzip, regardless of its name or type.

    An empty piece is a pause after much work that gave no bytes.

    Args:
        packed_here: whether `pack` made the gzip: a list that repeats itself is no bomb then.

    Raises:
        SitemapError: a decompression bomb, or broken gzip.
    """
    if not body.startswith(_GZIP):
        for start in range(0, len(body), PIECE_BYTES):
            yield body[start : start + PIECE_BYTES]
        return
    most = MAX_UNPACKED_BYTES
    if not packed_here:
        most = min(most, max(FREE_UNPACKED_BYTES, MAX_EXPANSION * len(body)))
    decoder = Decoder("gzip", most, piece_bytes=PIECE_BYTES)
    try:
        for start in range(0, len(body), PIECE_BYTES):
            yield from decoder.decode(body[start : start + PIECE_BYTES])
        yield from decoder.finish()
    except FetchError as fault:
        if fault.failure is Failure.TRUNCATED:
            raise SitemapError("the gzip file is incomplete") from fault
        if fault.failure is Failure.TOO_LARGE:
            raise SitemapError(f"{len(body)} bytes unpack to more than {most}") from fault
        raise SitemapError(f"broken gzip: {fault.detail}") from fault


class SitemapReader:
    """Parses one sitemap.

    Attributes:
        kind: of document; None until its first element or line is read.
        count: entries read.
        junk: entries without a URL that can be fetched.
    """

    def __init__(self) -> None:
        self.kind: SitemapKind | None = None
        self.count = 0
        self.junk = 0
        self._read: list[ListedPage] = []
        self._depth = 0
        self._wanted: dict[str, str] = {}
        self._field: str | None = None
        self._text: list[str] = []
        self._length = 0
        self._fields: dict[str, str] = {}
        self._silent_bytes = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._line = b""
        self._plain = False
        self._begun = False

    def feed(self, piece: bytes) -> list[ListedPage]:
        """Return the entries that end in the next piece of the document.

        Raises:
            SitemapError: not a sitemap, or a hostile one; `take_entries` returns the entries read
            so far.
        """
        if not self._begun:
            piece = piece.lstrip(_MARKS)
            if not piece:
                return []
            self._begin(piece)
        if self._plain:
            self._feed_lines(piece)
        else:
            self._feed_xml(piece, last=False)
        return self.take_entries()

    def close(self) -> list[ListedPage]:
        """Return the remaining entries at the end.

        Raises:
            SitemapError: the document is incomplete.
        """
        if self._plain:
            self._take_line(self._line)
            self._line = b""
        elif not self._begun:
            raise SitemapError("it is empty")
        else:
            self._feed_xml(b"", last=True)
        return self.take_entries()

    def take_entries(self) -> list[ListedPage]:
        """Return the entries read and not yet returned."""
        read, self._read = self._read, []
        return read

    def let_go(self) -> None:
        """Read no more; the parser holds the reader, and both would stay in memory otherwise.

        A parser of a list of 1,000 pages has 78 KB, and the daemon hardly ever looks for what
        holds itself (`daemon/process.py`).
        """
        parser = self._parser
        parser.StartDoctypeDeclHandler = None
        parser.StartElementHandler = parser.EndElementHandler = parser.CharacterDataHandler = None

    def _begin(self, piece: bytes) -> None:
        self._begun = True
        # UTF-16 begins with its byte order mark, or with a zero byte beside the bracket.
        self._plain = b"<" not in piece[:2] and piece[:2] not in (b"\xff\xfe", b"\xfe\xff")
        if self._plain:
            self.kind = SitemapKind.PAGES
            return
        parser = self._parser
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end

    # --- XML -----------------------------------------------------------------------------------

    def _feed_xml(self, piece: bytes, *, last: bool) -> None:
        self._silent_bytes += len(piece)
        try:
            self._parser.Parse(piece, last)
        except expat.ExpatError as error:
            raise SitemapError(f"not well-formed XML: {error}") from error
        except (ValueError, LookupError) as error:  # an encoding Python does not know
            raise SitemapError(f"unreadable: {error}") from error
        if self._silent_bytes > MAX_SILENT_BYTES:
            raise SitemapError(f"more than {MAX_SILENT_BYTES} bytes without an element")

    def _doctype(self, name: str, *_: object) -> None:
        if name.lower() == "html":
            raise SitemapError("it is an HTML page")
        raise SitemapError("it has a document type, which may define entities")

    def _start(self, name: str, _: object) -> None:
        self._silent_bytes = 0
        self._depth += 1
        if self._depth == 3:
            self._field = self._wanted.get(name)
            if self._field is not None:
                self._length = 0
                self._text.clear()
                # Only inside a field: white space between elements costs as much as the elements.
                self._parser.CharacterDataHandler = self._characters
        elif self._depth == 2:
            self._fields.clear()
        elif self._depth == 1:
            self._root(name)
        elif self._depth > MAX_DEPTH:
            raise SitemapError(f"elements are nested more than {MAX_DEPTH} deep")

    def _root(self, full_name: str) -> None:
        namespace, blank, name = full_name.rpartition(" ")
        self.kind = _ROOTS.get(name.lower())
        if self.kind is None:
            what = "an HTML page" if name.lower() == "html" else f"an XML file of <{name[:40]}>"
            raise SitemapError(f"it is {what}")
        # In the namespace of the root, which some sitemaps omit or give in an old form.
        self._wanted = {f"{namespace}{blank}{each}": each for each in _WANTED}

    def _characters(self, text: str) -> None:
        if self._length < MAX_TEXT_LENGTH:
            self._text.append(text)
            self._length += len(text)

    def _end(self, _: str) -> None:
        self._depth -= 1
        if self._field is not None:
            if self._depth == 2:
                self._fields.setdefault(self._field, "".join(self._text)[:MAX_TEXT_LENGTH])
                self._field = self._parser.CharacterDataHandler = None
        elif self._depth == 1 and self._fields:
            self._take()

    def _take(self) -> None:
        fields = self._fields
        lastmod, frequency = fields.get("lastmod"), fields.get("changefreq")
        self._keep(
            fields.get("loc", ""),
            read_date(lastmod) if lastmod else None,
            _PERIODS_S.get(frequency.strip().lower()) if frequency else None,
        )

    def _keep(self, written: str, changed: TimeSpan | None, every_s: float | None) -> None:
        try:
            url = canonicalize(written)
        except InvalidUrlError:
            self.junk += 1
            return
        self.count += 1
        self._read.append(ListedPage(url, changed, every_s))

    # --- text ----------------------------------------------------------------------------------

    def _feed_lines(self, piece: bytes) -> None:
        *lines, rest = (self._line + piece).splitlines(keepends=True) or [b""]
        if rest.endswith((b"\n", b"\r")):
            lines, rest = [*lines, rest], b""
        self._line = rest
        for line in lines:
            self._take_line(line)
        if len(rest) > MAX_TEXT_LENGTH:
            raise SitemapError("neither XML nor lines of URLs")

    def _take_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        if not text or text.startswith("#"):
            return
        if _URL(text):
            self._keep(text, None, None)
        else:
            self.junk += 1
        if self.junk > max(MAX_JUNK_LINES, self.count):
            raise SitemapError("neither XML nor lines of URLs")


class DateStatistics:
    """Statistics over the dates of one document, to tell whether they are useful.

    Attributes:
        count: entries.
        dated: entries with a date.
        future: entries with a date in the future.
        newest: latest start of a date that is not in the future, Unix seconds; None without one.
        open_until: latest end of a span that has not ended, Unix seconds; None without one.
    """

    def __init__(self, now: float) -> None:
        self.count = self.dated = self.future = 0
        self.newest: float | None = None
        self.open_until: float | None = None
        self._now = now
        self._latest = now + CLOCK_TOLERANCE_S
        self._by_date: Counter[TimeSpan] = Counter()

    def add(self, entries: Sequence[ListedPage]) -> None:
        """Count more entries."""
        self.count += len(entries)
        for _, changed, _ in entries:
            if changed is None:
                continue
            self.dated += 1
            if changed in self._by_date or len(self._by_date) < MAX_DATES_COUNTED:
                self._by_date[changed] += 1
            if changed.first > self._latest:
                self.future += 1
            elif self.newest is None or changed.first > self.newest:
                self.newest = changed.first
            if changed.end > self._now and is_open(changed, self._now):
                self.open_until = max(changed.end, self.open_until or 0.0)

    def shared_date(self) -> TimeSpan | None:
        """Return the date that nearly all entries share: it is the date of the file."""
        for changed, count in self._by_date.most_common(1):
            if count >= SHARED_LEAST and count >= SHARED_SHARE * self.count:
                return changed
        return None
