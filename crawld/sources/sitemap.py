"""Reading sitemaps piece by piece: lists of pages, lists of lists, plain text.

Nothing is kept but the entry being read, so that ten million URLs take no more memory than ten.
What is hostile ends the reading at the place; what was read before counts:

1. A document type is refused, and with it every entity of its own (billion laughs, files of ours).
2. What is packed is unpacked in small pieces; more than `MAX_UNPACKED_BYTES`, or more than
   `MAX_EXPANSION` times what came, is a bomb.
3. Elements inside elements inside elements, or megabytes without one, are no sitemap.
4. A page's own `loc` and `lastmod` are taken, not those of its images, videos and news, which have
   the same names in other namespaces.

`DateStatistics` judges the dates: one that nearly all entries share is when the file was written,
and says nothing about the pages.

Source: Sitemaps XML format, version 0.9 (sitemaps.org), 2008.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Final
from xml.parsers import expat

from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError
from crawld.sources.listed_page import CLOCK_TOLERANCE_S, ListedPage, TimeSpan, is_open, read_date

MAX_WIRE_BYTES = 64 * 1024 * 1024
"""A sitemap as sent; the format allows 50 MB unpacked, and some are larger."""

MAX_UNPACKED_BYTES = 2 * 1024 * 1024 * 1024
"""Ten million URLs take one and a half gigabytes."""

MAX_EXPANSION = 200
"""Lists of URLs shrink to a fiftieth at best; a bomb to a thousandth."""

FREE_UNPACKED_BYTES = 4 * 1024 * 1024
"""So much may come of the smallest file."""

PIECE_BYTES = 32 * 1024
"""Read at a time: about 300 URLs, a millisecond and a half."""

MAX_DEPTH = 8
"""Elements within elements; a sitemap has three, with images and translations five."""

MAX_TEXT_LENGTH = 8_192
"""Characters of one element that are read."""

MAX_SILENT_BYTES = 1024 * 1024
"""So much without an element is no list."""

MAX_JUNK_LINES = 20
"""Lines of a text sitemap that may be no URLs before it is none."""

SHARED_LEAST, SHARED_SHARE = 10, 0.9
"""A date of so many entries and of such a share of them is that of the file."""

MAX_DATES_COUNTED = 1_000

_PERIODS_S: Final = {
    "always": 600.0,
    "hourly": 3_600.0,
    "daily": 86_400.0,
    "weekly": 7 * 86_400.0,
    "monthly": 30 * 86_400.0,
    "yearly": 365 * 86_400.0,
    "never": float("inf"),
}

_WANTED = ("loc", "lastmod", "changefreq")
_URL = re.compile(r"https?://\S+", re.IGNORECASE).fullmatch
_GZIP = b"\x1f\x8b"
_MARKS = b"\xef\xbb\xbf \t\r\n"


class SitemapKind(StrEnum):
    """What a document turned out to be."""

    PAGES = "pages"
    INDEX = "index"
    FEED = "feed"


_ROOTS: Final = {
    "urlset": SitemapKind.PAGES,
    "sitemapindex": SitemapKind.INDEX,
    **dict.fromkeys(("rss", "feed", "rdf"), SitemapKind.FEED),
}


class SitemapError(Exception):
    """Why the reading ended before the end; the text is for a person."""


def unpack(body: bytes) -> Iterator[bytes]:
    """Yield a body in pieces, unpacked where it is gzip, whatever it is called.

    Raises:
        SitemapError: it unfolds into too much, or its packing is broken.
    """
    if not body.startswith(_GZIP):
        for start in range(0, len(body), PIECE_BYTES):
            yield body[start : start + PIECE_BYTES]
        return
    most = min(MAX_UNPACKED_BYTES, max(FREE_UNPACKED_BYTES, MAX_EXPANSION * len(body)))
    unpacked = 0
    for piece in _inflated(body):
        unpacked += len(piece)
        if unpacked > most:
            raise SitemapError(f"{len(body)} bytes unfold into more than {most}")
        yield piece


def _inflated(body: bytes) -> Iterator[bytes]:
    """Yield what the members of a gzip file hold; padding after the last is passed over."""
    position = 0
    while body.startswith(_GZIP, position):
        stream = zlib.decompressobj(31)
        while not stream.eof:
            given = stream.unconsumed_tail or body[position : position + PIECE_BYTES]
            position += 0 if stream.unconsumed_tail else len(given)
            try:
                piece = stream.decompress(given, PIECE_BYTES) if given else stream.flush()
            except zlib.error as error:
                raise SitemapError(f"broken gzip: {error}") from error
            if piece:
                yield piece
            if not given and not stream.eof:
                raise SitemapError("the gzip ends early")
        position -= len(stream.unused_data)


class SitemapReader:
    """One sitemap being read.

    Attributes:
        kind: what it is, None until its first element or line is read.
        count: entries read. junk: entries without a URL that can be fetched.
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
        """Return the entries that end in one more piece.

        Raises:
            SitemapError: not a sitemap, or a hostile one; `take_entries` has what was read.
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
        """Return what is left at the end.

        Raises:
            SitemapError: it ends in the middle.
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
        """Return entries read and not yet handed out."""
        read, self._read = self._read, []
        return read

    def _begin(self, piece: bytes) -> None:
        self._begun = True
        # UTF-16 begins with its mark or a zero byte beside the bracket.
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
            raise SitemapError(f"no well-formed XML: {error}") from error
        except (ValueError, LookupError) as error:  # an encoding Python does not know
            raise SitemapError(f"unreadable: {error}") from error
        if self._silent_bytes > MAX_SILENT_BYTES:
            raise SitemapError(f"more than {MAX_SILENT_BYTES} bytes without an element")

    def _doctype(self, name: str, *_: object) -> None:
        if name.lower() == "html":
            raise SitemapError("it is an HTML page")
        raise SitemapError("it has a document type, and may define entities")

    def _start(self, name: str, _: object) -> None:
        self._silent_bytes = 0
        self._depth += 1
        if self._depth == 3:
            self._field = self._wanted.get(name)
            if self._field is not None:
                self._length = 0
                self._text.clear()
                # Only now: the blanks between elements would cost as much as they.
                self._parser.CharacterDataHandler = self._characters
        elif self._depth == 2:
            self._fields.clear()
        elif self._depth == 1:
            self._root(name)
        elif self._depth > MAX_DEPTH:
            raise SitemapError(f"elements lie more than {MAX_DEPTH} deep")

    def _root(self, full_name: str) -> None:
        namespace, blank, name = full_name.rpartition(" ")
        self.kind = _ROOTS.get(name.lower())
        if self.kind is None:
            what = "an HTML page" if name.lower() == "html" else f"an XML file of <{name[:40]}>"
            raise SitemapError(f"it is {what}")
        # Of the root's own namespace, whatever that is: some write none, or an old one.
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
    """What the dates of one document are worth, counted over all its entries.

    Attributes:
        count: entries. dated: those with a date. future: those whose date is still to come.
        newest: the latest beginning of a date that is not, None without one.
        open_until: when all spans of dates are over that are not yet, None without one.
    """

    def __init__(self, now: float) -> None:
        self.count = self.dated = self.future = 0
        self.newest: float | None = None
        self.open_until: float | None = None
        self._now = now
        self._latest = now + CLOCK_TOLERANCE_S
        self._by_date: Counter[TimeSpan] = Counter()

    def add(self, entries: list[ListedPage]) -> None:
        """Count some more entries."""
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
        """Return the date that nearly all entries bear: it is the file's, not theirs."""
        for changed, count in self._by_date.most_common(1):
            if count >= SHARED_LEAST and count >= SHARED_SHARE * self.count:
                return changed
        return None
