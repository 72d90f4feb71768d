"""A directory to browse: every page with a copy as a file, links relative, no server needed.

An export goes over the pages twice. First those that have no place yet get one (`names`), so that
the second pass knows where every link leads. Then each page whose stamp differs from what the
manifest says was written is written: 100 changes among 100,000 pages cost two looks at the stamps
and 100 files. The manifest is told after the files are in their places; an export that was
interrupted goes on where it stopped.

A link to a page of the export is relative; any other is the absolute original. If such a page
appears later, the pages that wanted it are written again. Redirects are small pages that lead on;
what a browser loads (images, styles) is linked past them, since they could not lead an image
anywhere. A page that the mirror gave up (`crawlctl purge`) is replaced by a note.

Invariants: nothing is written outside the directory (`folder`); a place, once given, stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import apsw
import numpy as np

from crawld.core.content.references import REQUISITES, Kind
from crawld.core.content.rewrite import rewrite_css, rewrite_html
from crawld.core.url import parse, url_hash
from crawld.errors import CorruptDatabaseError, OperatorError
from crawld.export import stubs
from crawld.export.folder import Folder
from crawld.export.names import INDEX, folded, marked, path_of, quoted, relative
from crawld.export.source import Progress, Summary, opened, silent
from crawld.store import walk
from crawld.store.manifest import Entry, Manifest, Written
from crawld.store.walk import Copy, Outline

RULES: Final = "1"
"""Number of the rules by which pages are written; another one writes all of them again."""

STATE: Final = ".crawld"
"""The directory of the manifest; no host can be called that."""

_REMOVED: Final = 1
"""Stamp of a page that the mirror gave up."""

_BATCH: Final = 256
"""Pages written between two notes in the manifest."""

_PLACES: Final = 50_000
"""Places of links that are remembered: menus repeat on every page."""

_MAX_HOPS: Final = 5

_MARKUP: Final = frozenset({"text/html", "application/xhtml+xml", "image/svg+xml"})
_XML: Final = frozenset({"application/xhtml+xml", "image/svg+xml"})
_ENTRANCES: Final = 1000


def export_static(
    db: Path, out: Path, *, now: float, since: float | None = None, progress: Progress = silent
) -> Summary:
    """Write the mirror as a directory, or what changed since it was last written there.

    Args:
        db: the database; a daemon may be writing to it.
        out: the directory; new, empty, or one that such an export made.
        now: Unix seconds.
        since: leave out pages whose copy is older than this instant.
        progress: told how far it is.

    Raises:
        OperatorError: the directory holds something else, or cannot be written.
        StoreError: the database cannot be read.
    """
    with opened(db) as connection:
        source = walk.identity(connection) or ""
        with Folder(out) as folder, Manifest(_manifest_path(out), source) as manifest:
            if manifest.fact("rules") != RULES:
                manifest.forget("rules", RULES)
            export = _Export(connection, folder, manifest, now, since, progress)
            export.name()
            export.write()
            export.write_index()
            return export.summary


def _manifest_path(out: Path) -> Path:
    root = out.resolve()
    state = root / STATE
    if not (state / "manifest.db").exists() and any(each.name != STATE for each in root.iterdir()):
        raise OperatorError(
            f"{out} holds something else than a static export",
            hint="name a new or an empty directory with --out",
        )
    if state.is_symlink():
        raise OperatorError(f"{state} is a symbolic link", hint="remove it")
    state.mkdir(exist_ok=True)
    return state / "manifest.db"


class _Place(NamedTuple):
    """Where a page lies, as it stands in links, and where it leads to."""

    path: str
    redirect_url: str | None


class _Stamps:
    """What the manifest says was written, as sorted columns: 17 bytes a page."""

    def __init__(self, manifest: Manifest) -> None:
        columns = [np.array(rows, dtype=np.int64) for rows in manifest.stamps()]
        table = np.concatenate(columns) if columns else np.empty((0, 2), np.int64)
        self.hashes, self.stamps = table[:, 0], table[:, 1]
        self.seen = np.zeros(len(table), dtype=np.bool_)

    def of(self, outlines: list[Outline]) -> list[int | None]:
        """Return the stamp of each page, None if it has no place; they count as seen."""
        wanted = np.array([each.url_hash for each in outlines], dtype=np.int64)
        if not len(self.hashes):
            return [None] * len(outlines)
        at = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        known = self.hashes[at] == wanted
        self.seen[at[known]] = True
        stamps = self.stamps[at].tolist()
        return [stamp if is_known else None for stamp, is_known in zip(stamps, known, strict=True)]

    def unseen(self) -> Iterator[tuple[int, int]]:
        """Yield hash and stamp of the pages that were not met."""
        for at in np.flatnonzero(~self.seen).tolist():
            yield int(self.hashes[at]), int(self.stamps[at])


class _Export:
    """One export under way."""

    def __init__(
        self,
        connection: apsw.Connection,
        folder: Folder,
        manifest: Manifest,
        now: float,
        since: float | None,
        progress: Progress,
    ) -> None:
        self.summary = Summary()
        self._connection = connection
        self._folder = folder
        self._manifest = manifest
        self._now = now
        self._since = since
        self._progress = progress
        self._hosts = walk.hosts(connection)
        self._places: dict[str, _Place | None] = {}
        self._noted: list[Written] = []

    # --- places ------------------------------------------------------------------------------

    def name(self) -> None:
        """Give a place to every page that has none."""
        stamps = _Stamps(self._manifest)
        for chunk in walk.outlines(self._connection, self._now):
            entries = []
            taken: set[int] = set()
            for page, stamp in zip(chunk, stamps.of(chunk), strict=True):
                if stamp == _stamp(page):
                    continue
                entry = self._entry(page, taken)
                if entry is not None:
                    taken.add(entry.path_hash)
                    entries.append(entry)
            self._manifest.name(entries)

    def _entry(self, page: Outline, taken: set[int]) -> Entry | None:
        head = walk.head(self._connection, page.page_id)
        kind = None
        if page.version_id is not None:
            stored = walk.stored(self._connection, page.version_id)
            if stored is None or (self._since is not None and stored[1] < self._since):
                return None
            kind = stored[0] or "application/octet-stream"
        if head is None:
            return None
        path = path_of(head.url, kind)
        if folded(path) in taken or self._manifest.is_taken(folded(path)):
            path = marked(path, head.url)
        return Entry(page.url_hash, path, folded(path), page.redirect_url)

    def _place(self, url: str) -> _Place | None:
        if url not in self._places:
            if len(self._places) >= _PLACES:
                self._places.clear()
            found = self._manifest.place(url_hash(url))
            self._places[url] = None if found is None else _Place(quoted(found[0]), found[1])
        return self._places[url]

    # --- pages -------------------------------------------------------------------------------

    def write(self) -> None:
        """Write every page whose stamp is another than the manifest says."""
        stamps, total, looked_at = _Stamps(self._manifest), walk.newest_page(self._connection), 0
        for chunk in walk.outlines(self._connection, self._now):
            for page, stamp in zip(chunk, stamps.of(chunk), strict=True):
                if stamp is not None and stamp != _stamp(page):
                    self._write_page(page)
                    self._progress(page.page_id, total)
            looked_at = chunk[-1].page_id if chunk else looked_at
            self._progress(looked_at, total)
        for hash_, stamp in stamps.unseen():
            if stamp != _REMOVED:
                self._write_removed(hash_)
        self._note()
        self._progress(total, total)

    def _write_page(self, page: Outline) -> None:
        head = walk.head(self._connection, page.page_id)
        place = self._manifest.place(page.url_hash)
        if head is None or place is None:
            return
        rendered = _Page(self, head.url, quoted(place[0]))
        try:
            content = rendered.content(page)
        except CorruptDatabaseError:
            self.summary.unreadable.append(head.url)
            return
        if content is not None:
            self._put(place[0], content, Written(page.url_hash, _stamp(page), rendered.wanted))
            self.summary.count("redirects" if rendered.leads_on else "pages", len(content))

    def _write_removed(self, hash_: int) -> None:
        place = self._manifest.place(hash_)
        if place is not None:
            note = stubs.removed() if place[0].endswith((".html", ".htm", ".xhtml")) else b""
            self._put(place[0], note, Written(hash_, _REMOVED, ()))
            self.summary.count("removed")

    def _put(self, path: str, content: bytes, written: Written) -> None:
        self._folder.write(path, content)
        self._noted.append(written)
        if len(self._noted) >= _BATCH:
            self._note()

    def _note(self) -> None:
        self._manifest.note(self._noted)
        self._noted = []

    def write_index(self) -> None:
        """Write the page that leads to where the operator started."""
        entrances = [
            (place.path, head.title or "", head.url)
            for head in walk.seeds(self._connection, _ENTRANCES)
            if (place := self._place(head.url)) is not None
        ]
        self._folder.write(INDEX, stubs.index(entrances))

    def copy(self, version_id: int) -> Copy | None:
        """Return a copy as the database holds it."""
        return walk.copy(self._connection, version_id)

    def look_up(self, url: str) -> _Place | None:
        """Return the place of a page."""
        return self._place(url)

    def is_ours(self, url: str) -> bool:
        """Return whether a page could come into the export one day."""
        return parse(url).host in self._hosts


class _Page:
    """One page on its way into a file.

    Attributes:
        wanted: hashes of the pages its links depend on without leading there.
        leads_on: whether it became a redirect.
    """

    def __init__(self, export: _Export, url: str, path: str) -> None:
        self.wanted: list[int] = []
        self.leads_on = False
        self._export = export
        self._url = url
        self._path = path

    def content(self, page: Outline) -> bytes | None:
        """Return the file of the page, None if its copy was given up meanwhile."""
        if page.redirect_url is not None:
            address = self.locate(page.redirect_url, Kind.LINK)
            if address is not None or page.version_id is None:
                self.leads_on = True
                return stubs.redirect(address or page.redirect_url)
        copy = None if page.version_id is None else self._export.copy(page.version_id)
        return None if copy is None else self._rewritten(copy)

    def locate(self, url: str, kind: Kind) -> str | None:
        """Return the link to the file of a page, None if there is none."""
        for _ in range(_MAX_HOPS):
            place = self._export.look_up(url)
            if place is None:
                break
            if place.redirect_url is None or kind not in REQUISITES:
                return relative(self._path, place.path)
            self.wanted.append(url_hash(url))
            url = place.redirect_url
        if self._export.is_ours(url):
            self.wanted.append(url_hash(url))
        return None

    def _rewritten(self, copy: Copy) -> bytes:
        kind = copy.answer.content_type
        charset = copy.answer.charset or "utf-8"
        if kind in _MARKUP:
            body, charset = _declared(copy.body, charset)
            return rewrite_html(body, self._url, self.locate, charset=charset, xml=kind in _XML)
        if kind == "text/css":
            body, charset = _declared(copy.body, charset)
            return rewrite_css(body, self._url, self.locate, charset=charset)
        return copy.body


def _declared(body: bytes, charset: str) -> tuple[bytes, str]:
    """Return a body that says its charset itself, since a file has no header to say it."""
    head = body[:1024].lower()
    if body.isascii() or b"charset" in head or b"encoding" in head or head[:3] == b"\xef\xbb\xbf":
        return body, charset
    return body.decode(charset, "replace").encode("utf-8-sig"), "utf-8"


def _stamp(page: Outline) -> int:
    """Return what tells one content of a page from another; neither 0 nor `_REMOVED`."""
    stamp = url_hash(f"{page.version_id} {page.redirect_url or ''}")
    return stamp if stamp not in (0, _REMOVED) else 2
