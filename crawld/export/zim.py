"""Exports ZIM: the mirror as one file for Kiwix, with a full-text index.

An entry is named by its URL without scheme (`example.org/wiki/Main_Page?action=raw`), as in files
made from WARCs. If two URLs share a name, the later page gets a suffix. The file is read offline,
so a link to a page outside it leads to the original, but a missing requisite (image, style) becomes
an empty URL.

Entries are written in two passes, as in `static`: first hashes and redirects, about 16 bytes per
page, then the contents. libzim indexes in its own threads and writes a file without compression,
which `zim_compress` compresses: the disk needs room for both.

Source: openzim.org/wiki/ZIM_file_format and openzim.org/wiki/Metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import apsw
import numpy as np
from libzim.writer import Compression, ContentProvider, Creator, Hint, Item, StringProvider

from crawld.core.content.media import decode_as
from crawld.core.content.rewrite import rewrite_css, rewrite_html
from crawld.core.content.url_kind import REQUISITES, UrlKind
from crawld.core.display import iso_text
from crawld.core.url import split_url, url_hash
from crawld.errors import CorruptDatabaseError, OperatorError
from crawld.export.atomic_file import atomic_path
from crawld.export.names import relative_link
from crawld.export.source import ExportRequest, ExportResult, open_source
from crawld.export.zim_compress import compress, is_compressible
from crawld.export.zim_icon import PIXELS
from crawld.export.zim_metadata import MainPage, ZimMetadata, complete, read_options
from crawld.store.frontier import page_name
from crawld.store.mirror import lookup, walk
from crawld.store.mirror.walk import ExportedCopy, PageHead, PageOutline
from crawld.version import crawld_version

_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_XML: Final = frozenset({"application/xhtml+xml", "image/svg+xml"})
_MARKUP: Final = _PAGES | _XML
_EMPTY_URL: Final = "data:,"

_HEAD_BYTES: Final = 100_000
"""Bytes of the main page read for its language, description and icons."""


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
        plain = partial.with_suffix(".plain")
        try:
            zim.write(plain)
        except RuntimeError as error:
            raise BrokenWriterError(
                f"{request.out} cannot be written: libzim: {error}",
                hint="free some disk space, or give another path with --out",
            ) from error
        request.stage("compress")
        compress(plain, partial, request.progress)
        plain.unlink()
        zim.result.written_bytes = partial.stat().st_size
        return zim.result


class _ZimFile:
    """One ZIM file being written."""

    def __init__(self, connection: apsw.Connection, request: ExportRequest) -> None:
        self.result = ExportResult()
        self._connection = connection
        self._request = request
        self._given = read_options(request)
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
        if not self._has(key):
            current = page_name.current_url(self._connection, url)
            if current is None or not self._has(key := url_hash(current)):
                return None
            url = current
        return self._marked.get(key) or entry_name(url)

    def _has(self, key: int) -> bool:
        at = int(np.searchsorted(self._hashes, key))
        return at < len(self._hashes) and bool(self._hashes[at] == key)

    def write(self, path: Path) -> None:
        """Write the file without compression."""
        main = self._main_page()
        metadata = complete(self._given, main, self._read_body)
        creator = Creator(path).config_indexing(True, metadata.language)
        creator.config_compression(Compression.none)
        creator.set_mainpath(main.entry)
        with creator:
            self._write_metadata(creator, main, metadata)
            total = walk.newest_page(self._connection)
            for chunk in self._outlines():
                for page, head in chunk:
                    self._add(creator, page, head)
                    self._request.progress(page.page_id, total)
            self._request.progress(total, total)
            self._request.stage("index")

    def _main_page(self) -> MainPage:
        """Return the first seed with a copy, else the first page with one."""
        seeds = (head for head, _ in walk.seeds(self._connection, 1000))
        everything = (head for chunk in self._outlines() for _, head in chunk)
        for heads in (seeds, everything):
            for head in heads:
                if (main := self._as_main_page(head)) is not None:
                    return main
        raise _nothing_to_export("the mirror has no HTML page")

    def _as_main_page(self, head: PageHead) -> MainPage | None:
        entry = self.name(head.url)
        copy = self._shown_copy(head.page_id)
        if entry is None or copy is None or copy.response.content_type not in _PAGES:
            return None
        text = copy.body[:_HEAD_BYTES].decode(copy.response.charset or "utf-8", "replace")
        return MainPage(entry, head.url, head.title, text)

    def _shown_copy(self, page_id: int) -> ExportedCopy | None:
        version_id = walk.shown_version(self._connection, page_id, self._request.now)
        return None if version_id is None else walk.copy(self._connection, version_id)

    def _read_body(self, url: str) -> bytes | None:
        page = lookup.find(self._connection, url)
        try:
            copy = None if page is None else self._shown_copy(page.page_id)
        except CorruptDatabaseError:
            return None
        return None if copy is None else copy.body

    def _write_metadata(self, creator: Creator, main: MainPage, metadata: ZimMetadata) -> None:
        host = split_url(main.url).host
        texts = {
            "Name": host.replace(":", "_"),
            "Title": metadata.title,
            "Description": metadata.description,
            "Creator": host,
            "Publisher": "crawld",
            "Date": iso_text(self._request.now)[:10],
            "Language": metadata.language,
            "Scraper": f"crawld {crawld_version()}",
            "Source": main.url,
            "Tags": "_ftindex:yes",
        }
        for name, value in texts.items():
            creator.add_metadata(name, value)
        creator.add_illustration(PIXELS, metadata.icon)

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
        return {
            Hint.FRONT_ARTICLE: self._kind in _PAGES,
            Hint.COMPRESS: is_compressible(self._kind),
        }


def entry_name(url: str) -> str:
    """Return the entry name of a canonical URL: the URL without scheme, decoded.

    >>> entry_name("https://example.org/wiki/K%C3%B6ln?a=%20")
    'example.org/wiki/Köln?a= '
    """
    return unquote(url.partition("://")[2], errors="replace").replace("\0", "�")


def _quoted(entry: str) -> str:
    return quote(entry, safe="/!$'()*+,;=@~-._")
