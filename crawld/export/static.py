"""A directory to browse: every page with a copy as a file, links relative, no server needed.

An export goes over the pages twice. First those that have no place yet get one (`names`), so that
the second pass knows where every link leads. Then each page whose stamp differs from what the
manifest says was written is written (`press`): 100 changes among 100,000 pages cost two looks at
the stamps and 100 files. The manifest is told after the files are in their places; an export that
was interrupted goes on where it stopped.

A link to a page of the export is relative; any other is the absolute original. If such a page
appears later, the pages that wanted it are written again. Redirects are small pages that lead on;
what a browser loads (images, styles) is linked past them, since they could not lead an image
anywhere. A page that the mirror gave up (`crawlctl purge`) is replaced by a note.

Invariants: nothing is written outside the directory (`folder`); a place, once given, stays.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import apsw
import numpy as np

from crawld.errors import OperatorError
from crawld.export import placeholder_pages
from crawld.export.names import INDEX, marked_path, page_path, path_key, quote_path
from crawld.export.page_writer import REMOVED_STAMP, PageWriter, WriteResult, content_stamp
from crawld.export.safe_directory import SafeDirectory
from crawld.export.source import ExportResult, Progress, no_progress, open_source
from crawld.store.mirror import walk
from crawld.store.mirror.export_manifest import Manifest, ManifestEntry, PathLookup, WrittenPage
from crawld.store.mirror.walk import PageOutline

RULES_VERSION: Final = "1"
"""Number of the rules by which pages are written; another one writes all of them again."""

STATE: Final = ".crawld"
"""The directory of the manifest; no host can be called that."""

_TEMP_PREFIX: Final = "room-"

_BATCH: Final = 64
"""Pages that a press gets at a time."""

_INLINE_PAGES: Final = 256
"""Up to so many pages are written by this process: others take half a second to start."""

_MAX_WRITERS: Final = 8

WriterArguments = tuple[Path, Path, Path, str]
"""What a press is made with: database, directory, manifest, and where it makes its files."""

_MAX_INDEX_ENTRIES: Final = 1000


def export_static(
    db: Path, out: Path, *, now: float, since: float | None = None, progress: Progress = no_progress
) -> ExportResult:
    """Write the mirror as a directory, or what changed since it was last written there.

    Args:
        db: the database; a daemon may be writing to it.
        out: the directory; new, empty, or one that such an export made.
        now: Unix seconds.
        since: give no place to pages whose copy is older than this instant.
        progress: told how far it is.

    Raises:
        OperatorError: the directory holds something else, or cannot be written.
        StoreError: the database cannot be read.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(open_source(db))
        folder = stack.enter_context(SafeDirectory(out))
        path = _manifest_path(out)
        manifest = stack.enter_context(Manifest(path, walk.identity(connection) or ""))
        room = stack.enter_context(_temp_directory(path.parent))
        folder.work_in(room)
        if manifest.fact("rules") != RULES_VERSION:
            manifest.forget("rules", RULES_VERSION)
        _assign_paths(connection, manifest, now, since)
        return _Export((db, out, path, room), manifest, progress).run(connection, folder, now)


@contextmanager
def _temp_directory(state: Path) -> Iterator[str]:
    """Give the directory where this export makes its files; those of killed ones go."""
    for left in state.glob(f"{_TEMP_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)
    try:
        room = tempfile.mkdtemp(prefix=_TEMP_PREFIX, dir=state)
    except OSError as error:
        raise OperatorError(
            f"{state} cannot be written: {error.strerror}", hint="name another one with --out"
        ) from error
    try:
        yield f"{STATE}/{Path(room).name}"
    finally:
        shutil.rmtree(room, ignore_errors=True)


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


class _Stamps:
    """What the manifest says was written, as sorted columns: 17 bytes a page."""

    def __init__(self, manifest: Manifest) -> None:
        columns = [np.array(rows, dtype=np.int64) for rows in manifest.stamps()]
        table = np.concatenate(columns) if columns else np.empty((0, 2), np.int64)
        self._hashes, self._stamps = table[:, 0], table[:, 1]
        self._seen = np.zeros(len(table), dtype=np.bool_)

    def differing(self, pages: list[PageOutline]) -> Iterator[tuple[PageOutline, bool]]:
        """Yield the pages that are not written as they are, and whether they have a place.

        All of them count as seen.
        """
        if not len(self._hashes):
            yield from ((page, False) for page in pages)
            return
        wanted = np.array([page.url_hash for page in pages], dtype=np.int64)
        at = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        known = self._hashes[at] == wanted
        self._seen[at[known]] = True
        stamps = self._stamps[at].tolist()
        for page, stamp, has_place in zip(pages, stamps, known.tolist(), strict=True):
            if not has_place or stamp != content_stamp(page):
                yield page, has_place

    def unseen(self) -> Iterator[int]:
        """Yield the hashes of pages that were not met, and whose place does not say so yet."""
        yield from self._hashes[~self._seen & (self._stamps != REMOVED_STAMP)].tolist()


def _assign_paths(
    connection: apsw.Connection, manifest: Manifest, now: float, since: float | None
) -> None:
    """Give a place to every page that has none, and note redirects that changed."""
    stamps = _Stamps(manifest)
    for chunk in walk.outlines(connection, now):
        entries: dict[int, ManifestEntry] = {}
        for page, _ in stamps.differing(chunk):
            entry = _page_entry(connection, page, since)
            if entry is None:
                continue
            url, path = entry
            if path_key(path) in entries or manifest.is_taken(path_key(path)):
                path = marked_path(path, url)
            entries[path_key(path)] = ManifestEntry(
                page.url_hash, path, path_key(path), page.redirect_url
            )
        manifest.name(entries.values())


def _page_entry(
    connection: apsw.Connection, page: PageOutline, since: float | None
) -> tuple[str, str] | None:
    """Return URL and path of a page, None if it is to have no place."""
    head, kind = walk.head(connection, page.page_id), None
    if page.version_id is not None:
        stored = walk.stored(connection, page.version_id)
        if stored is None or (since is not None and stored[1] < since):
            return None
        kind = stored[0] or "application/octet-stream"
    return None if head is None else (head.url, page_path(head.url, kind))


class _Export:
    """The second pass."""

    def __init__(self, press: WriterArguments, manifest: Manifest, progress: Progress) -> None:
        self._press = press
        self._manifest = manifest
        self._progress = progress
        self._summary = ExportResult()

    def run(self, connection: apsw.Connection, folder: SafeDirectory, now: float) -> ExportResult:
        """Write what differs, then the page that leads to where the operator started."""
        total = walk.newest_page(connection)
        stamps = _Stamps(self._manifest)
        with ExitStack() as stack:
            presses = stack.enter_context(_WriterPool(self._press))
            batch: list[PageOutline] = []
            for chunk in walk.outlines(connection, now):
                batch += [page for page, has_place in stamps.differing(chunk) if has_place]
                while len(batch) >= _BATCH:
                    self._take(presses.print(batch[:_BATCH]))
                    self._progress(batch[_BATCH - 1].page_id, total)
                    del batch[:_BATCH]
            self._take(presses.print(batch))
            self._take(presses.finish())
        self._write_removed(stamps, folder)
        self._write_index(connection, folder)
        self._progress(total, total)
        return self._summary

    def _places(self) -> PathLookup:
        return PathLookup(self._press[2])

    def _take(self, printed: list[WriteResult]) -> None:
        for each in printed:
            self._manifest.note(each.written)
            written = self._summary.written
            written["pages"] = written.get("pages", 0) + len(each.written) - each.redirects
            written["redirects"] = written.get("redirects", 0) + each.redirects
            self._summary.written_bytes += each.written_bytes
            self._summary.unreadable += each.unreadable

    def _write_removed(self, stamps: _Stamps, folder: SafeDirectory) -> None:
        with closing(self._places()) as places:
            for url_hash in stamps.unseen():
                place = places.of(url_hash)
                if place is None:
                    continue
                is_page = place[0].endswith((".html", ".htm", ".xhtml"))
                folder.write(place[0], placeholder_pages.removed() if is_page else b"")
                self._manifest.note([WrittenPage(url_hash, REMOVED_STAMP, ())])
                self._summary.count("removed")

    def _write_index(self, connection: apsw.Connection, folder: SafeDirectory) -> None:
        with closing(self._places()) as places:
            entrances = [
                (quote_path(place[0]), head.title or "", head.url)
                for head, url_hash in walk.seeds(connection, _MAX_INDEX_ENTRIES)
                if (place := places.of(url_hash)) is not None
            ]
        folder.write(INDEX, placeholder_pages.index(entrances))


class _WriterPool:
    """A press here for a few pages, one on each core for many."""

    def __init__(self, places: WriterArguments) -> None:
        self._arguments = places
        self._cores = min(len(os.sched_getaffinity(0)), _MAX_WRITERS)
        self._here: PageWriter | None = None
        self._pool: ProcessPoolExecutor | None = None
        self._waiting: set[Future[WriteResult]] = set()
        self._given = 0

    def print(self, pages: list[PageOutline]) -> list[WriteResult]:
        """Write pages, here at once or somewhere soon; return what has been written by now."""
        self._given += len(pages)
        if self._given <= _INLINE_PAGES or self._cores == 1:
            if self._here is None:
                self._here = PageWriter(*self._arguments)
            return [self._here.print(pages)]
        if self._pool is None:
            # Spawned, since a connection of SQLite must not be carried over a fork.
            self._pool = ProcessPoolExecutor(
                self._cores, get_context("spawn"), _start_writer, self._arguments
            )
        self._waiting.add(self._pool.submit(_write, pages))
        return self._ended() if len(self._waiting) > 2 * self._cores else []

    def finish(self) -> list[WriteResult]:
        """Wait for all that is under way and return it."""
        printed = []
        while self._waiting:
            printed += self._ended()
        return printed

    def _ended(self) -> list[WriteResult]:
        ended, self._waiting = wait(self._waiting, return_when=FIRST_COMPLETED)
        return [future.result() for future in ended]

    def __enter__(self) -> _WriterPool:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._here is not None:
            self._here.close()


_writers: list[PageWriter] = []
"""The press of a process that is one."""


def _start_writer(*places: *WriterArguments) -> None:
    _writers.append(PageWriter(*places))


def _write(pages: list[PageOutline]) -> WriteResult:
    return _writers[0].print(pages)
