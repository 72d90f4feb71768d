"""Rewrites pages and writes them into the directory of a static export, in any process.

A `PageWriter` reads the database and the manifest and writes into the directory. Link rewriting
dominates the time of an export, so a long export runs one writer per core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import apsw

from crawld.core.content.media import decode_as
from crawld.core.content.quarantine import UNANALYSED
from crawld.core.content.rewrite import rewrite_css, rewrite_html
from crawld.core.content.url_kind import REQUISITES, UrlKind
from crawld.core.url import split_url, url_hash
from crawld.errors import CorruptDatabaseError
from crawld.export import placeholder_pages
from crawld.export.names import quote_path, relative_link
from crawld.export.safe_directory import SafeDirectory
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import page_name
from crawld.store.mirror import walk
from crawld.store.mirror.export_manifest import PathLookup, WrittenPage
from crawld.store.mirror.walk import ExportedCopy, PageOutline

REMOVED_STAMP: Final = 1
"""Stamp of a page that the mirror deleted."""

_MAX_TARGETS: Final = 50_000
"""Cached link targets: menus repeat on every page."""

_MAX_HOPS: Final = 5

_MARKUP: Final = frozenset({"text/html", "application/xhtml+xml", "image/svg+xml"})
_XML: Final = frozenset({"application/xhtml+xml", "image/svg+xml"})


class LinkTarget(NamedTuple):
    """The page that a link leads to.

    Attributes:
        path: its quoted path; None: it is not in the export.
        redirect_url: target if it is a redirect.
        in_scope: whether its host is mirrored, so that a later export may contain it.
    """

    path: str | None
    redirect_url: str | None
    in_scope: bool


@dataclass(slots=True)
class WriteResult:
    """The result of writing some pages.

    Attributes:
        written: the written pages.
        redirects: how many of them are redirects.
        written_bytes: their size.
        unreadable: URLs of pages whose copy is damaged.
    """

    written: list[WrittenPage] = field(default_factory=list)
    redirects: int = 0
    written_bytes: int = 0
    unreadable: list[str] = field(default_factory=list)


class PageWriter:
    """Writes pages into the static export in `out`.

    Every page already has its path in the manifest; `temp` is the directory for temporary files,
    relative to `out`.
    """

    def __init__(self, db: Path, out: Path, manifest: Path, temp: str) -> None:
        self._connection = open_connection(db, read_only=True)
        self._places = PathLookup(manifest)
        self._directory = SafeDirectory(out)
        self._directory.use_temp(temp)
        self._hosts = walk.hosts(self._connection)
        self._targets: dict[str, LinkTarget] = {}

    def write(self, pages: Sequence[PageOutline]) -> WriteResult:
        """Write pages; one without a path or a copy is left out."""
        result = WriteResult()
        for page in pages:
            self._write(page, result)
        return result

    def _write(self, page: PageOutline, result: WriteResult) -> None:
        head = walk.head(self._connection, page.page_id)
        place = self._places.of(page.url_hash)
        if head is None or place is None:
            return
        file = _PageFile(self, head.url, quote_path(place[0]))
        try:
            content = file.content(self._connection, page)
        except CorruptDatabaseError:
            result.unreadable.append(head.url)
            return
        if content is not None:
            self._directory.write(place[0], content)
            result.written.append(WrittenPage(page.url_hash, content_stamp(page), file.wanted))
            result.redirects += file.is_redirect
            result.written_bytes += len(content)

    def link_target(self, url: str) -> LinkTarget:
        """Return the page that a link leads to."""
        if url not in self._targets:
            if len(self._targets) >= _MAX_TARGETS:
                self._targets.clear()
            self._targets[url] = self._find_target(url)
        return self._targets[url]

    def _find_target(self, url: str) -> LinkTarget:
        if split_url(url).host not in self._hosts:
            return LinkTarget(None, None, in_scope=False)
        place = self._places.of(url_hash(url))
        if place is None and (current := page_name.current_url(self._connection, url)) is not None:
            place = self._places.of(url_hash(current))
        path, redirect_url = place or (None, None)
        return LinkTarget(None if path is None else quote_path(path), redirect_url, in_scope=True)

    def close(self) -> None:
        """Close the database, the manifest and the directory."""
        self._connection.close()
        self._places.close()
        self._directory.close()


class _PageFile:
    """The file of one page.

    Attributes:
        wanted: URL hashes of the missing targets of its links.
        is_redirect: whether the file is a redirect.
    """

    def __init__(self, writer: PageWriter, url: str, path: str) -> None:
        self.wanted: list[int] = []
        self.is_redirect = False
        self._writer = writer
        self._url = url
        self._path = path

    def content(self, connection: apsw.Connection, page: PageOutline) -> bytes | None:
        """Return the content of the file; None if the copy was deleted meanwhile."""
        if page.redirect_url is not None:
            link = self.locate(page.redirect_url, UrlKind.LINK)
            if link is not None or page.version_id is None:
                self.is_redirect = True
                return placeholder_pages.redirect(link or page.redirect_url)
        copy = None if page.version_id is None else walk.copy(connection, page.version_id)
        return None if copy is None else self._rewrite(copy)

    def locate(self, url: str, kind: UrlKind) -> str | None:
        """Return the relative link to a page; None if it is not in the export."""
        for _ in range(_MAX_HOPS):
            path, redirect_url, in_scope = self._writer.link_target(url)
            if path is not None and (redirect_url is None or kind not in REQUISITES):
                return relative_link(self._path, path)
            if in_scope:
                self.wanted.append(url_hash(url))
            if path is None or redirect_url is None:
                break
            url = redirect_url
        return None

    def _rewrite(self, copy: ExportedCopy) -> bytes:
        kind = copy.response.content_type
        charset = copy.response.charset or "utf-8"
        if kind == UNANALYSED and self._path.endswith((".html", ".htm", ".xhtml")):
            return placeholder_pages.unanalysed(self._url)
        if kind in _MARKUP:
            body, charset = _with_charset(copy.body, charset)
            return rewrite_html(body, self._url, self.locate, charset=charset, xml=kind in _XML)
        if kind == "text/css":
            body, charset = _with_charset(copy.body, charset)
            return rewrite_css(body, self._url, self.locate, charset=charset)
        return copy.body


def _with_charset(body: bytes, charset: str) -> tuple[bytes, str]:
    """Return a body that declares its charset (a file has no HTTP header), and the charset."""
    head = body[:1024].lower()
    if body.isascii() or b"charset" in head or b"encoding" in head or head[:3] == b"\xef\xbb\xbf":
        return body, charset
    return decode_as(body, charset).encode("utf-8-sig"), "utf-8"


def content_stamp(page: PageOutline) -> int:
    """Return a number that identifies the content of a page; neither 0 nor `REMOVED_STAMP`."""
    stamp = url_hash(f"{page.version_id} {page.redirect_url or ''}")
    return stamp if stamp not in (0, REMOVED_STAMP) else 2
