"""ZIM: the mirror as one file for Kiwix, with a full-text index; made from the store alone.

Entries are called as their URLs are, scheme left out (`example.org/wiki/Main_Page?action=raw`), the
way files made from WARCs are; where two URLs share such a name, the later page gets a mark behind
it. The file is read without a network, therefore a link to a page that is not in it leads to the
original, but what would be loaded from there (images, styles) is emptied.

Entries are laid down in two passes, as in `static`: hashes and redirects first, some 16 bytes a
page, then the contents. libzim compresses and indexes on threads of its own.

Source: openzim.org/wiki/ZIM_file_format and openzim.org/wiki/Metadata.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import apsw
import numpy as np
from libzim.writer import ContentProvider, Creator, Hint, Item, StringProvider

from crawld.core.content import html
from crawld.core.content.rewrite import rewrite_css, rewrite_html
from crawld.core.content.url_kind import REQUISITES, UrlKind
from crawld.core.url import parse, url_hash
from crawld.errors import CorruptDatabaseError, OperatorError
from crawld.export.atomic_file import atomic_path
from crawld.export.names import relative_link
from crawld.export.source import ExportResult, Progress, no_progress, open_source
from crawld.store.mirror import walk
from crawld.store.mirror.walk import ExportedCopy, PageHead, PageOutline

_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_XML: Final = frozenset({"application/xhtml+xml", "image/svg+xml"})
_MARKUP: Final = _PAGES | _XML
_EMPTY_URL: Final = "data:,"

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
"""From the language of an HTML page (ISO 639-1) to that of a ZIM file (ISO 639-3)."""


class BrokenWriterError(OperatorError):
    """libzim gave up: its threads go on and end the process by SIGABRT when Python ends them."""


def export_zim(
    db: Path,
    out: Path,
    *,
    now: float,
    since: float | None = None,
    title: str | None = None,
    progress: Progress = no_progress,
) -> ExportResult:
    """Write the mirror as a ZIM file.

    Args:
        db: the database; a daemon may be writing to it.
        out: the file, as `mirror.zim`; must not exist.
        now: Unix seconds.
        since: leave out pages whose copy is older than this instant.
        title: of the file; None: that of its main page.
        progress: told how far it is.

    Raises:
        OperatorError: the file cannot be written, or there is nothing to put into it.
        BrokenWriterError: libzim gave up, and left threads.
        StoreError: the database cannot be read.
    """
    with atomic_path(out) as partial, open_source(db) as connection:
        zim = _ZimFile(connection, now, since, progress)
        try:
            zim.write(partial, title)
        except RuntimeError as error:
            raise BrokenWriterError(
                f"{out} cannot be written: libzim says {error}",
                hint="make room, or name another place with --out",
            ) from error
        return zim.summary


class _ZimFile:
    """One ZIM file under way."""

    def __init__(
        self, connection: apsw.Connection, now: float, since: float | None, progress: Progress
    ) -> None:
        self.summary = ExportResult()
        self._connection = connection
        self._now = now
        self._since = since
        self._progress = progress
        self._marked: dict[int, str] = {}
        self._hashes = self._lay_out()

    def _lay_out(self) -> np.ndarray:
        """Return the sorted hashes of all entries, and mark those whose name is taken."""
        hashes: list[np.ndarray] = []
        names: list[np.ndarray] = []
        for chunk in self._outlines():
            urls = [head.url for _, head in chunk]
            hashes.append(np.array([page.url_hash for page, _ in chunk], dtype=np.int64))
            names.append(np.array([url_hash(entry_name(url)) for url in urls], dtype=np.int64))
        if not hashes:
            raise OperatorError(
                "there is nothing to put into the file",
                hint="mirror pages first: crawld mirror URL",
            )
        all_names = np.concatenate(names)
        _, first, count = np.unique(all_names, return_index=True, return_counts=True)
        if (count > 1).any():
            self._mark(frozenset(all_names[first[count > 1]].tolist()))
        return np.sort(np.concatenate(hashes))

    def _mark(self, shared: frozenset[int]) -> None:
        """Give every page but the first of each shared name another one."""
        taken: set[int] = set()
        for chunk in self._outlines():
            for page, head in chunk:
                name = entry_name(head.url)
                if (key := url_hash(name)) in shared:
                    if key in taken:
                        self._marked[page.url_hash] = f"{name}~{page.url_hash & 0xFFFFFFFFFFFF:x}"
                    taken.add(key)

    def _outlines(self) -> Iterator[list[tuple[PageOutline, PageHead]]]:
        for chunk in walk.outlines(self._connection, self._now):
            found = []
            for page in chunk:
                if self._since is not None and page.version_id is not None:
                    stored = walk.stored(self._connection, page.version_id)
                    if stored is None or stored[1] < self._since:
                        continue
                head = walk.head(self._connection, page.page_id)
                if head is not None:
                    found.append((page, head))
            if found:
                yield found

    def name(self, url: str) -> str | None:
        """Return the entry of a page, None if it has none."""
        key = url_hash(url)
        at = int(np.searchsorted(self._hashes, key))
        if at == len(self._hashes) or self._hashes[at] != key:
            return None
        return self._marked.get(key) or entry_name(url)

    def write(self, path: Path, title: str | None) -> None:
        """Write the file."""
        main = self._main()
        creator = Creator(path).config_indexing(True, main.language)
        creator.set_mainpath(main.entry)
        with creator:
            self._describe(creator, main, title)
            total = walk.newest_page(self._connection)
            for chunk in self._outlines():
                for page, head in chunk:
                    self._add(creator, page, head)
                self._progress(chunk[-1][0].page_id, total)
        self.summary.written_bytes = path.stat().st_size
        self._progress(total, total)

    def _main(self) -> _MainPage:
        """Return the page to start from: the first seed with a copy, else the first page."""
        seeds = (head for head, _ in walk.seeds(self._connection, 1000))
        everything = (head for chunk in self._outlines() for _, head in chunk)
        for heads in (seeds, everything):
            for head in heads:
                if (main := self._as_main(head)) is not None:
                    return main
        raise _nothing_to_export("there is no page to start from")

    def _as_main(self, head: PageHead) -> _MainPage | None:
        entry = self.name(head.url)
        version_id = walk.shown_version(self._connection, head.page_id, self._now)
        if entry is None or version_id is None:
            return None
        copy = walk.copy(self._connection, version_id)
        if copy is None or copy.answer.content_type not in _PAGES:
            return None
        text = copy.body.decode(copy.answer.charset or "utf-8", "replace")
        lang = html.parse(text[:100_000]).lang.partition("-")[0].lower()
        return _MainPage(
            entry, head.url, head.title or parse(head.url).host, _LANGUAGES.get(lang, "eng")
        )

    def _describe(self, creator: Creator, main: _MainPage, title: str | None) -> None:
        day = datetime.fromtimestamp(self._now, UTC).strftime("%Y-%m-%d")
        shown = " ".join((title or main.title).split())
        metadata = {
            "Name": parse(main.url).host.replace(":", "_"),
            "Title": shown[:_TITLE_CHARACTERS],
            "Description": f"Mirror of {main.url}"[:_DESCRIPTION_CHARACTERS],
            "Creator": parse(main.url).host,
            "Publisher": "crawld",
            "Date": day,
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
                self.summary.count("redirects")
                return
        if page.version_id is not None:
            self._add_copy(creator, entry, head, page.version_id)

    def _add_copy(self, creator: Creator, entry: str, head: PageHead, version_id: int) -> None:
        try:
            copy = walk.copy(self._connection, version_id)
        except CorruptDatabaseError:
            self.summary.unreadable.append(head.url)
            return
        if copy is None:
            return
        kind = copy.answer.content_type or "application/octet-stream"
        content = self._rewritten(entry, head.url, kind, copy)
        creator.add_item(_ZimItem(entry, head.title or entry, kind, content))
        self.summary.count("pages" if kind in _PAGES else "files")

    def _rewritten(self, entry: str, url: str, kind: str, copy: ExportedCopy) -> bytes:
        if kind not in _MARKUP and kind != "text/css":
            return copy.body
        charset = copy.answer.charset or "utf-8"
        body = copy.body
        if charset.lower() not in ("utf-8", "utf8", "ascii", "us-ascii"):
            # Readers of ZIM files take every text for UTF-8.
            body = body.decode(charset, "replace").encode()
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


class _MainPage:
    """The main page and what it tells of the file."""

    def __init__(self, entry: str, url: str, title: str, language: str) -> None:
        self.entry = entry
        self.url = url
        self.title = title
        self.language = language


class _ZimItem(Item):  # type: ignore[misc] # libzim has no types
    """An entry as libzim asks for it."""

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
    """Return the name of the entry of a canonical URL: what stands behind its scheme, decoded.

    >>> name_of("https://example.org/wiki/K%C3%B6ln?a=%20")
    'example.org/wiki/Köln?a= '
    """
    return unquote(url.partition("://")[2], errors="replace").replace("\0", "�")


def _quoted(entry: str) -> str:
    return quote(entry, safe="/!$'()*+,;=@~-._")


def icon() -> bytes:
    """Return the picture that libraries show for the file: a square in one colour, as PNG."""
    rows = (b"\0" + _ICON_COLOR * _ICON_PIXELS) * _ICON_PIXELS
    header = struct.pack(">IIBBBBB", _ICON_PIXELS, _ICON_PIXELS, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunks(chunks))


def _chunks(chunks: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    for name, data in chunks:
        yield struct.pack(">I", len(data)) + name + data
        yield struct.pack(">I", zlib.crc32(name + data))
