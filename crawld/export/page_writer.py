"""Pages on their way into a directory: rewritten and written, some at a time, in any process.

A `PageWriter` holds what that takes: the database and the manifest for reading, the directory for
writing. Rewriting links costs most of an export, so that long ones run a press on each core.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Self

from crawld.core.content.rewrite import rewrite_css, rewrite_html
from crawld.core.content.url_kind import REQUISITES, UrlKind
from crawld.core.url import parse, url_hash
from crawld.errors import CorruptDatabaseError
from crawld.export import placeholder_pages
from crawld.export.names import quote_path, relative_link
from crawld.export.safe_directory import SafeDirectory
from crawld.store.engine.connection import open_connection
from crawld.store.mirror import walk
from crawld.store.mirror.export_manifest import PathLookup, WrittenPage
from crawld.store.mirror.walk import ExportedCopy, PageOutline

REMOVED_STAMP: Final = 1
"""Stamp of a page that the mirror gave up."""

_MAX_TARGETS: Final = 50_000
"""Places of links that are remembered: menus repeat on every page."""

_MAX_HOPS: Final = 5

_MARKUP: Final = frozenset({"text/html", "application/xhtml+xml", "image/svg+xml"})
_XML: Final = frozenset({"application/xhtml+xml", "image/svg+xml"})


class LinkTarget(NamedTuple):
    """Where a page lies.

    Attributes:
        path: as it stands in links; None: the export does not hold it.
        redirect_url: where it leads to.
        may_come: whether it could come into the export one day.
    """

    path: str | None
    redirect_url: str | None
    may_come: bool


@dataclass(slots=True)
class WriteResult:
    """What became of some pages.

    Attributes:
        written: the pages that lie in their places now.
        redirects: how many of them lead on.
        written_bytes: their size.
        unreadable: URLs of pages whose copy is damaged.
    """

    written: list[WrittenPage] = field(default_factory=list)
    redirects: int = 0
    written_bytes: int = 0
    unreadable: list[str] = field(default_factory=list)


class PageWriter:
    """What writing pages takes; a context manager.

    Args:
        db: the database.
        out: the directory of the export.
        manifest: its manifest, where every page has its place already.
        room: the directory inside of it where files are made.
    """

    def __init__(self, db: Path, out: Path, manifest: Path, room: str) -> None:
        self._connection = open_connection(db, read_only=True)
        self._places = PathLookup(manifest)
        self._folder = SafeDirectory(out)
        self._folder.work_in(room)
        self._hosts = walk.hosts(self._connection)
        self._known: dict[str, LinkTarget] = {}

    def print(self, pages: Sequence[PageOutline]) -> WriteResult:
        """Write pages to their places; one that has none, or no copy any more, is left out."""
        printed = WriteResult()
        for page in pages:
            self._print(page, printed)
        return printed

    def _print(self, page: PageOutline, printed: WriteResult) -> None:
        head = walk.head(self._connection, page.page_id)
        place = self._places.of(page.url_hash)
        if head is None or place is None:
            return
        sheet = _PageFile(self, head.url, quote_path(place[0]))
        try:
            content = sheet.content(page)
        except CorruptDatabaseError:
            printed.unreadable.append(head.url)
            return
        if content is not None:
            self._folder.write(place[0], content)
            printed.written.append(WrittenPage(page.url_hash, content_stamp(page), sheet.wanted))
            printed.redirects += sheet.leads_on
            printed.written_bytes += len(content)

    def copy(self, version_id: int) -> ExportedCopy | None:
        """Return a copy as the database holds it."""
        return walk.copy(self._connection, version_id)

    def place(self, url: str) -> LinkTarget:
        """Return where a page lies."""
        if url not in self._known:
            if len(self._known) >= _MAX_TARGETS:
                self._known.clear()
            self._known[url] = self._looked_up(url)
        return self._known[url]

    def _looked_up(self, url: str) -> LinkTarget:
        if parse(url).host not in self._hosts:
            return LinkTarget(None, None, may_come=False)
        path, redirect_url = self._places.of(url_hash(url)) or (None, None)
        return LinkTarget(None if path is None else quote_path(path), redirect_url, may_come=True)

    def close(self) -> None:
        """Close what it holds."""
        self._connection.close()
        self._places.close()
        self._folder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _PageFile:
    """One page on its way into a file.

    Attributes:
        wanted: hashes of the pages its links depend on without leading there.
        leads_on: whether it became a redirect.
    """

    def __init__(self, press: PageWriter, url: str, path: str) -> None:
        self.wanted: list[int] = []
        self.leads_on = False
        self._press = press
        self._url = url
        self._path = path

    def content(self, page: PageOutline) -> bytes | None:
        """Return the file of the page, None if its copy was given up meanwhile."""
        if page.redirect_url is not None:
            address = self.locate(page.redirect_url, UrlKind.LINK)
            if address is not None or page.version_id is None:
                self.leads_on = True
                return placeholder_pages.redirect(address or page.redirect_url)
        copy = None if page.version_id is None else self._press.copy(page.version_id)
        return None if copy is None else self._rewritten(copy)

    def locate(self, url: str, kind: UrlKind) -> str | None:
        """Return the link to the file of a page, None if there is none."""
        for _ in range(_MAX_HOPS):
            path, redirect_url, may_come = self._press.place(url)
            if path is not None and (redirect_url is None or kind not in REQUISITES):
                return relative_link(self._path, path)
            if may_come:
                self.wanted.append(url_hash(url))
            if path is None or redirect_url is None:
                break
            url = redirect_url
        return None

    def _rewritten(self, copy: ExportedCopy) -> bytes:
        kind = copy.answer.content_type
        charset = copy.answer.charset or "utf-8"
        if kind in _MARKUP:
            body, charset = _with_charset(copy.body, charset)
            return rewrite_html(body, self._url, self.locate, charset=charset, xml=kind in _XML)
        if kind == "text/css":
            body, charset = _with_charset(copy.body, charset)
            return rewrite_css(body, self._url, self.locate, charset=charset)
        return copy.body


def _with_charset(body: bytes, charset: str) -> tuple[bytes, str]:
    """Return a body that says its charset itself, since a file has no header to say it."""
    head = body[:1024].lower()
    if body.isascii() or b"charset" in head or b"encoding" in head or head[:3] == b"\xef\xbb\xbf":
        return body, charset
    return body.decode(charset, "replace").encode("utf-8-sig"), "utf-8"


def content_stamp(page: PageOutline) -> int:
    """Return what tells one content of a page from another; neither 0 nor `REMOVED_STAMP`."""
    stamp = url_hash(f"{page.version_id} {page.redirect_url or ''}")
    return stamp if stamp not in (0, REMOVED_STAMP) else 2
