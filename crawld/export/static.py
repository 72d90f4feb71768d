"""Exports a directory to browse without a server: one file per page, with relative links.

An export makes two passes over the pages. The first assigns a path (`names`) to each page without
one, so that the second can resolve every link. The second writes each page whose stamp differs from
the manifest (`page_writer`): 100 changes among 100,000 pages cost two scans of the stamps and 100
files. The manifest is updated after the files are written, so an interrupted export continues where
it stopped.

A link to a page of the export is relative; any other is the absolute original. If such a page
appears later, the pages that link to it are written again. A redirect is a small HTML page. Links
to requisites (images, styles) skip it and name the final target. A deleted page (`crawlctl purge`)
is replaced by a note.

Invariants: nothing is written outside the directory (`safe_directory`); an assigned path never
changes.
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
from crawld.export.source import ExportRequest, ExportResult, Progress, open_source
from crawld.store.mirror import walk
from crawld.store.mirror.export_manifest import Manifest, ManifestEntry, PathLookup, WrittenPage
from crawld.store.mirror.walk import PageOutline

RULES_VERSION: Final = "1"
"""Version of the rules for writing pages; increase it to write all pages again."""

STATE: Final = ".crawld"
"""The directory of the manifest; no host can have this name."""

_TEMP_PREFIX: Final = "room-"

_BATCH: Final = 64
"""Pages per call of a writer."""

_INLINE_PAGES: Final = 256
"""Pages that this process writes before it starts other processes, which takes half a second."""

_MAX_WRITERS: Final = 8

WriterArguments = tuple[Path, Path, Path, str]
"""Arguments of `PageWriter`: database, directory, manifest, directory for temporary files."""

_MAX_INDEX_ENTRIES: Final = 1000


def export_static(request: ExportRequest) -> ExportResult:
    """Write the mirror into a directory, or update an export in it.

    The directory is new, empty or a static export. Copies older than `since` get no path; pages
    that already have one are updated.

    Raises:
        OperatorError: the directory holds something else or cannot be written.
        StoreError: the database cannot be read.
    """
    db, out, now = request.db, request.out, request.now
    with ExitStack() as stack:
        connection = stack.enter_context(open_source(db))
        directory = stack.enter_context(closing(SafeDirectory(out)))
        path = _manifest_path(out)
        manifest = stack.enter_context(Manifest(path, walk.identity(connection) or ""))
        temp = stack.enter_context(_temp_directory(path.parent))
        directory.use_temp(temp)
        if manifest.fact("rules") != RULES_VERSION:
            manifest.invalidate("rules", RULES_VERSION)
        _assign_paths(connection, manifest, now, request.since)
        export = _Export((db, out, path, temp), manifest, request.progress)
        return export.run(connection, directory, now)


@contextmanager
def _temp_directory(state: Path) -> Iterator[str]:
    """Yield the directory for temporary files; delete those of killed exports."""
    for old in state.glob(f"{_TEMP_PREFIX}*"):
        shutil.rmtree(old, ignore_errors=True)
    try:
        path = tempfile.mkdtemp(prefix=_TEMP_PREFIX, dir=state)
    except OSError as error:
        raise OperatorError(
            f"{state} cannot be written: {error.strerror}", hint="give another one with --out"
        ) from error
    try:
        yield f"{STATE}/{Path(path).name}"
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _manifest_path(out: Path) -> Path:
    root = out.resolve()
    state = root / STATE
    if not (state / "manifest.db").exists() and any(each.name != STATE for each in root.iterdir()):
        raise OperatorError(
            f"{out} is not a static export",
            hint="give a new or an empty directory with --out",
        )
    if state.is_symlink():
        raise OperatorError(f"{state} is a symbolic link", hint="remove it")
    state.mkdir(exist_ok=True)
    return state / "manifest.db"


class _Stamps:
    """The stamps in the manifest as sorted columns: 17 bytes per page."""

    def __init__(self, manifest: Manifest) -> None:
        columns = [np.array(rows, dtype=np.int64) for rows in manifest.stamps()]
        table = np.concatenate(columns) if columns else np.empty((0, 2), np.int64)
        self._hashes, self._stamps = table[:, 0], table[:, 1]
        self._seen = np.zeros(len(table), dtype=np.bool_)

    def differing(self, pages: list[PageOutline]) -> Iterator[tuple[PageOutline, bool]]:
        """Yield the pages whose stamp differs, and whether each has a path; mark all as seen."""
        if not len(self._hashes):
            yield from ((page, False) for page in pages)
            return
        wanted = np.array([page.url_hash for page in pages], dtype=np.int64)
        at = np.minimum(np.searchsorted(self._hashes, wanted), len(self._hashes) - 1)
        known = self._hashes[at] == wanted
        self._seen[at[known]] = True
        stamps = self._stamps[at].tolist()
        for page, stamp, has_path in zip(pages, stamps, known.tolist(), strict=True):
            if not has_path or stamp != content_stamp(page):
                yield page, has_path

    def unseen(self) -> Iterator[int]:
        """Yield the hashes of pages not seen, whose file is not yet a note."""
        yield from self._hashes[~self._seen & (self._stamps != REMOVED_STAMP)].tolist()


def _assign_paths(
    connection: apsw.Connection, manifest: Manifest, now: float, since: float | None
) -> None:
    """Assign a path to every page without one, and store changed redirects."""
    stamps = _Stamps(manifest)
    for chunk in walk.outlines(connection, now):
        entries: dict[int, ManifestEntry] = {}
        for page, _ in stamps.differing(chunk):
            entry = _page_entry(connection, page, since)
            if entry is None:
                continue
            url, path = entry
            key = path_key(path)
            if key in entries or manifest.is_taken(key):
                path = marked_path(path, url)
                key = path_key(path)
            entries[key] = ManifestEntry(page.url_hash, path, key, page.redirect_url)
        manifest.put_entries(entries.values())


def _page_entry(
    connection: apsw.Connection, page: PageOutline, since: float | None
) -> tuple[str, str] | None:
    """Return URL and path of a page; None if it gets no path."""
    head, kind = walk.head(connection, page.page_id), None
    if page.version_id is not None:
        stored = walk.copy_type_and_time(connection, page.version_id)
        if stored is None or (since is not None and stored[1] < since):
            return None
        kind = stored[0] or "application/octet-stream"
    return None if head is None else (head.url, page_path(head.url, kind))


class _Export:
    """The second pass."""

    def __init__(self, arguments: WriterArguments, manifest: Manifest, progress: Progress) -> None:
        self._arguments = arguments
        self._manifest = manifest
        self._progress = progress
        self._result = ExportResult()

    def run(
        self, connection: apsw.Connection, directory: SafeDirectory, now: float
    ) -> ExportResult:
        """Write the pages that differ, then the notes and the index."""
        total = walk.newest_page(connection)
        stamps = _Stamps(self._manifest)
        with closing(_WriterPool(self._arguments)) as pool:
            batch: list[PageOutline] = []
            for chunk in walk.outlines(connection, now):
                batch += [page for page, has_path in stamps.differing(chunk) if has_path]
                while len(batch) >= _BATCH:
                    self._record(pool.write(batch[:_BATCH]))
                    self._progress(batch[_BATCH - 1].page_id, total)
                    del batch[:_BATCH]
            self._record(pool.write(batch))
            self._record(pool.finish())
        with closing(PathLookup(self._arguments[2])) as places:
            self._write_removed(stamps, directory, places)
            _write_index(connection, directory, places)
        self._progress(total, total)
        return self._result

    def _record(self, results: list[WriteResult]) -> None:
        for each in results:
            self._manifest.record_written(each.written)
            self._result.written["pages"] += len(each.written) - each.redirects
            self._result.written["redirects"] += each.redirects
            self._result.written_bytes += each.written_bytes
            self._result.unreadable += each.unreadable

    def _write_removed(self, stamps: _Stamps, directory: SafeDirectory, places: PathLookup) -> None:
        for url_hash in stamps.unseen():
            place = places.of(url_hash)
            if place is None:
                continue
            is_page = place[0].endswith((".html", ".htm", ".xhtml"))
            directory.write(place[0], placeholder_pages.removed() if is_page else b"")
            self._manifest.record_written([WrittenPage(url_hash, REMOVED_STAMP, ())])
            self._result.count("removed")


def _write_index(connection: apsw.Connection, directory: SafeDirectory, places: PathLookup) -> None:
    entries = [
        (quote_path(place[0]), head.title or "", head.url)
        for head, url_hash in walk.seeds(connection, _MAX_INDEX_ENTRIES)
        if (place := places.of(url_hash)) is not None
    ]
    directory.write(INDEX, placeholder_pages.index(entries))


class _WriterPool:
    """A writer in this process for the first pages, one on each core for more."""

    def __init__(self, arguments: WriterArguments) -> None:
        self._arguments = arguments
        self._cores = min(len(os.sched_getaffinity(0)), _MAX_WRITERS)
        self._inline: PageWriter | None = None
        self._pool: ProcessPoolExecutor | None = None
        self._running: set[Future[WriteResult]] = set()
        self._submitted = 0

    def write(self, pages: list[PageOutline]) -> list[WriteResult]:
        """Write pages now or in another process; return the results so far."""
        self._submitted += len(pages)
        if self._submitted <= _INLINE_PAGES or self._cores == 1:
            if self._inline is None:
                self._inline = PageWriter(*self._arguments)
            return [self._inline.write(pages)]
        if self._pool is None:
            # Spawned, since an SQLite connection must not cross a fork.
            self._pool = ProcessPoolExecutor(
                self._cores, get_context("spawn"), _start_writer, self._arguments
            )
        self._running.add(self._pool.submit(_write, pages))
        return self._wait() if len(self._running) > 2 * self._cores else []

    def finish(self) -> list[WriteResult]:
        """Wait for all running writers and return their results."""
        results = []
        while self._running:
            results += self._wait()
        return results

    def _wait(self) -> list[WriteResult]:
        done, self._running = wait(self._running, return_when=FIRST_COMPLETED)
        return [future.result() for future in done]

    def close(self) -> None:
        """End the writers."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._inline is not None:
            self._inline.close()


_writers: list[PageWriter] = []
"""The writer of a process of the pool."""


def _start_writer(*arguments: *WriterArguments) -> None:
    _writers.append(PageWriter(*arguments))


def _write(pages: list[PageOutline]) -> WriteResult:
    return _writers[0].write(pages)
