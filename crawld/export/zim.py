"""Exports ZIM: the mirror as one file for Kiwix, with a full-text index.

An entry is named by its URL without scheme (`example.org/wiki/Main_Page?action=raw`), as in files
made from WARCs. If two URLs share a name, the later page gets a suffix. The file is read offline,
so a link to a page outside it leads to the original, but a missing requisite (image, style) becomes
an empty URL.

Entries are written in two passes, as in `static`: first hashes and redirects, about 16 bytes per
page, then the contents. libzim compresses and indexes in its own threads.

Source: openzim.org/wiki/ZIM_file_format and openzim.org/wiki/Metadata.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

import apsw
import numpy as np
from libzim.writer import ContentProvider, Creator, Hint, Item, StringProvider

from crawld.core.content import html
from crawld.core.content.media import decode_as
from crawld.core.content.rewrite import rewrite_css, rewrite_html
from crawld.core.content.url_kind import REQUISITES, UrlKind
from crawld.core.display import iso_text
from crawld.core.url import split_url, url_hash
from crawld.errors import CorruptDatabaseError, OperatorError
from crawld.export.atomic_file import atomic_path
from crawld.export.names import relative_link
from crawld.export.source import ExportRequest, ExportResult, open_source
from crawld.store.mirror import walk
from crawld.store.mirror.walk import ExportedCopy, PageHead, PageOutline

_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_XML: Final = frozenset({"application/xhtml+xml", "image/svg+xml"})
_MARKUP: Final = _PAGES | _XML
_EMPTY_URL: Final = "data:,"

_HEAD_BYTES: Final = 100_000
"""Bytes of the main page read for its language."""
_TITLE_CHARACTERS: Final = 30
_DESCRIPTION_CHARACTERS: Final = 80
_ICON_PIXELS: Final = 48
_ICON_COLOR: Final = bytes((38, 99, 140))

_CODES: Final = (
    "ar:ara bg:bul bn:ben ca:cat cs:ces cy:cym da:dan de:deu el:ell en:eng eo:epo es:spa et:est"
    " eu:eus fa:fas fi:fin fr:fra ga:gle gl:glg he:heb hi:hin hr:hrv hu:hun hy:hye id:ind is:isl"
    " it:ita ja:jpn ka:kat kk:kaz ko:kor la:lat lt:lit lv:lav mk:mkd ms:msa nb:nob nl:nld nn:nno"
    " no:nor pl:pol pt:por ro:ron ru:rus sk:slk sl:slv sq:sqi sr:srp sv:swe sw:swa ta:tam te:tel"
    " th:tha tr:tur uk:ukr ur:urd uz:uzb vi:vie zh:zho"
)
_LANGUAGES: Final = dict(pair.split(":") for pair in _CODES.split())
"""ISO 639-3 codes, as in ZIM files, by ISO 639-1 codes, as in HTML."""


class BrokenWriterError(OperatorError):
    """libzim failed; its threads keep running and abort the process at a normal exit."""


def export_zim(request: ExportRequest) -> ExportResult:
    """Write the mirror as a ZIM file (`mirror.zim`).

    The default title is that of the main page.

    Raises:
        OperatorError: the file exists or cannot be written, or the mirror has no pages.
        BrokenWriterError: libzim failed and left threads running.
        StoreError: the database cannot be read.
    """
    with atomic_path(request.out) as partial, open_source(request.db) as connection:
        zim = _ZimFile(connection, request)
        try:
            zim.write(partial)
        except RuntimeError as error:
            raise BrokenWriterError(
                f"{request.out} cannot be written: libzim: {error}",
                hint="free some disk space, or give another path with --out",
            ) from error
        return zim.result


class _ZimFile:
    """One ZIM file being written."""

    def __init__(self, connection: apsw.Connection, request: ExportRequest) -> None:
        self.result = ExportResult()
        self._connection = connection
        self._request = request
        self._marked: dict[int, str] = {}
        self._hashes = self._assign_names()

    def _assign_names(self) -> np.ndarray:
        """Return the sorted hashes of all entries; store another name for duplicates."""
        hashes: list[np.ndarray] = []
        names: list[np.ndarray] = []
        for chunk in self._outlines():
            urls = [head.url for _, head in chunk]
            hashes.append(np.array([page.url_hash for page, _ in chunk], dtype=np.int64))
            names.append(np.array([url_hash(entry_name(url)) for url in urls], dtype=np.int64))
        if not hashes:
            raise _nothing_to_export("the mirror has no pages")
        all_names = np.concatenate(names)
        _, first, count = np.unique(all_names, return_index=True, return_counts=True)
        if (count > 1).any():
            self._mark(frozenset(all_names[first[count > 1]].tolist()))
        return np.sort(np.concatenate(hashes))

    def _mark(self, shared: frozenset[int]) -> None:
        """Assign another name to every page but the first of each shared name."""
        taken: set[int] = set()
        for chunk in self._outlines():
            for page, head in chunk:
                name = entry_name(head.url)
                if (key := url_hash(name)) in shared:
                    if key in taken:
                        self._marked[page.url_hash] = f"{name}~{page.url_hash & 0xFFFFFFFFFFFF:x}"
                    taken.add(key)

    def _outlines(self) -> Iterator[list[tuple[PageOutline, PageHead]]]:
        since = self._request.since
        for chunk in walk.outlines(self._connection, self._request.now):
            pages = []
            for page in chunk:
                if since is not None and page.version_id is not None:
                    stored = walk.copy_type_and_time(self._connection, page.version_id)
                    if stored is None or stored[1] < since:
                        continue
                head = walk.head(self._connection, page.page_id)
                if head is not None:
                    pages.append((page, head))
            if pages:
                yield pages

    def name(self, url: str) -> str | None:
        """Return the entry name of a page; None if it has no entry."""
        key = url_hash(url)
        at = int(np.searchsorted(self._hashes, key))
        if at == len(self._hashes) or self._hashes[at] != key:
            return None
        return self._marked.get(key) or entry_name(url)

    def write(self, path: Path) -> None:
        """Write the file."""
        main = self._main_page()
        creator = Creator(path).config_indexing(True, main.language)
        creator.set_mainpath(main.entry)
        with creator:
            self._write_metadata(creator, main)
            total = walk.newest_page(self._connection)
            for chunk in self._outlines():
                for page, head in chunk:
                    self._add(creator, page, head)
                self._request.progress(chunk[-1][0].page_id, total)
        self.result.written_bytes = path.stat().st_size
        self._request.progress(total, total)

    def _main_page(self) -> _MainPage:
        """Return the first seed with a copy, else the first page with one."""
        seeds = (head for head, _ in walk.seeds(self._connection, 1000))
        everything = (head for chunk in self._outlines() for _, head in chunk)
        for heads in (seeds, everything):
            for head in heads:
                if (main := self._as_main_page(head)) is not None:
                    return main
        raise _nothing_to_export("the mirror has no HTML page")

    def _as_main_page(self, head: PageHead) -> _MainPage | None:
        entry = self.name(head.url)
        version_id = walk.shown_version(self._connection, head.page_id, self._request.now)
        if entry is None or version_id is None:
            return None
        copy = walk.copy(self._connection, version_id)
        if copy is None or copy.response.content_type not in _PAGES:
            return None
        text = copy.body[:_HEAD_BYTES].decode(copy.response.charset or "utf-8", "replace")
        lang = html.parse(text).lang.partition("-")[0].lower()
        return _MainPage(
            entry, head.url, head.title or split_url(head.url).host, _LANGUAGES.get(lang, "eng")
        )

    def _write_metadata(self, creator: Creator, main: _MainPage) -> None:
        title = " ".join((self._request.title or main.title).split())
        metadata = {
            "Name": split_url(main.url).host.replace(":", "_"),
            "Title": title[:_TITLE_CHARACTERS],
            "Description": f"Mirror of {main.url}"[:_DESCRIPTION_CHARACTERS],
            "Creator": split_url(main.url).host,
            "Publisher": "crawld",
            "Date": iso_text(self._request.now)[:10],
            "Language": main.language,
            "Scraper": f"crawld {version_of('crawld')}",
            "Source": main.url,
            "Tags": "_ftindex:yes",
        }
        for name, value in metadata.items():
            creator.add_metadata(name, value)
        creator.add_illustration(_ICON_PIXELS, icon())

    def _add(self, creator: Creator, page: PageOutline, head: PageHead) -> None:
        entry = self.name(head.url)
        if entry is None:
            return
        if page.redirect_url is not None:
            target = self.name(page.redirect_url)
            if target is not None and target != entry:
                title = head.title or entry
                creator.add_redirection(entry, title, target, {Hint.FRONT_ARTICLE: False})
                self.result.count("redirects")
                return
        if page.version_id is not None:
            self._add_copy(creator, entry, head, page.version_id)

    def _add_copy(self, creator: Creator, entry: str, head: PageHead, version_id: int) -> None:
        try:
            copy = walk.copy(self._connection, version_id)
        except CorruptDatabaseError:
            self.result.unreadable.append(head.url)
            return
        if copy is None:
            return
        kind = copy.response.content_type or "application/octet-stream"
        content = self._rewrite(entry, head.url, kind, copy)
        creator.add_item(_ZimItem(entry, head.title or entry, kind, content))
        self.result.count("pages" if kind in _PAGES else "files")

    def _rewrite(self, entry: str, url: str, kind: str, copy: ExportedCopy) -> bytes:
        if kind not in _MARKUP and kind != "text/css":
            return copy.body
        charset = copy.response.charset or "utf-8"
        body = copy.body
        if charset.lower() not in ("utf-8", "utf8", "ascii", "us-ascii"):
            # ZIM readers expect UTF-8 for every text.
            body = decode_as(body, charset).encode()
        here = _quoted(entry)

        def locate(target: str, use: UrlKind) -> str | None:
            there = self.name(target)
            if there is None:
                return _EMPTY_URL if use in REQUISITES else None
            return relative_link(here, _quoted(there))

        if kind == "text/css":
            return rewrite_css(body, url, locate)
        return rewrite_html(body, url, locate, xml=kind in _XML)


def _nothing_to_export(what: str) -> OperatorError:
    return OperatorError(what, hint="mirror pages first: crawld mirror URL")


class _MainPage(NamedTuple):
    """The main page, which gives the file its title and language."""

    entry: str
    url: str
    title: str
    language: str


class _ZimItem(Item):  # type: ignore[misc] # libzim has no types
    """An entry with the interface that libzim calls."""

    def __init__(self, path: str, title: str, kind: str, content: bytes) -> None:
        super().__init__()
        self._path = path
        self._title = title
        self._kind = kind
        self._content = content

    def get_path(self) -> str:
        return self._path

    def get_title(self) -> str:
        return self._title

    def get_mimetype(self) -> str:
        return self._kind

    def get_contentprovider(self) -> ContentProvider:
        return StringProvider(self._content)

    def get_hints(self) -> dict[Hint, int]:
        return {Hint.FRONT_ARTICLE: self._kind in _PAGES}


def entry_name(url: str) -> str:
    """Return the entry name of a canonical URL: the URL without scheme, decoded.

    >>> entry_name("https://example.org/wiki/K%C3%B6ln?a=%20")
    'example.org/wiki/Köln?a= '
    """
    return unquote(url.partition("://")[2], errors="replace").replace("\0", "�")


def _quoted(entry: str) -> str:
    return quote(entry, safe="/!$'()*+,;=@~-._")


def icon() -> bytes:
    """Return the icon of the file: a square of one color, as PNG."""
    rows = (b"\0" + _ICON_COLOR * _ICON_PIXELS) * _ICON_PIXELS
    header = struct.pack(">IIBBBBB", _ICON_PIXELS, _ICON_PIXELS, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n"
    for chunk in (b"IHDR" + header, b"IDAT" + zlib.compress(rows, 9), b"IEND"):
        png += struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return png
