"""Entries of a ZIM file as pages of a mirror: a head start before the first polite visit.

Whoever made the file has rewritten the pages, so that the copies are not what the server sent; the
first visit of each replaces it. The names of entries are parts of URLs: behind a base (`--base
https://en.wikipedia.org/wiki/`), or host and path in files made from web archives, crawld's too.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from libzim.reader import Archive

from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError, OperatorError
from crawld.export.importer import ArchivedPage, ImportResult, ImportWriter, open_for_import
from crawld.export.source import Progress, no_progress
from crawld.export.warc_reader import MAX_BLOCK_BYTES

_SCRAPERS_WITH_HOSTS = ("crawld", "warc2zim", "zimit")


def import_zim(
    db: Path,
    path: Path,
    *,
    now: float,
    base: str | None = None,
    site: str | None = None,
    progress: Progress = no_progress,
) -> ImportResult:
    """Take the entries of a ZIM file as copies as of the day it was made.

    Args:
        db: the database; made if it is not there.
        path: the ZIM file.
        now: Unix seconds.
        base: what stands before the name of an entry in its URL; None: the name has the host.
        site: name of the site for unknown pages; None: by their host.
        progress: told how many entries of how many are read.

    Raises:
        OperatorError: it is no ZIM file, is damaged, or does not say which URLs its entries have.
        DatabaseInUseError: a daemon has the database.
    """
    if not path.is_file():
        raise OperatorError(f"{path} is no file", hint="name a file to import")
    try:
        archive = Archive(path)
        prefix = _prefix(archive) if base is None else canonicalize(base)
        at = _made_at(archive, now)
        result = ImportResult()
        with open_for_import(db) as connection:
            sink = ImportWriter(connection, site, now, result)
            for number in range(archive.entry_count):
                found = _read_entry(archive, number, prefix, at, result)
                if found is not None:
                    sink.take(found)
                if sink.is_full:
                    sink.commit()
                    progress(number, archive.entry_count)
            sink.commit()
        progress(archive.entry_count, archive.entry_count)
        return result
    except RuntimeError as error:
        raise OperatorError(
            f"{path} cannot be read: {error}", hint="look at it with: zimcheck -A"
        ) from error


def _metadata(archive: Archive, key: str) -> str:
    if key not in archive.metadata_keys:
        return ""
    return bytes(archive.get_metadata(key)).decode("utf-8", "replace").strip()


def _prefix(archive: Archive) -> str:
    """Return what stands before host and path of each entry.

    Raises:
        OperatorError: the names of the entries hold no hosts.
    """
    if not _metadata(archive, "Scraper").lower().startswith(_SCRAPERS_WITH_HOSTS):
        raise OperatorError(
            "the file does not say which URLs its entries have",
            hint="say what stands before their names: --base https://en.wikipedia.org/wiki/",
        )
    source = _metadata(archive, "Source")
    return "http://" if source.startswith("http://") else "https://"


def _made_at(archive: Archive, now: float) -> float:
    """Return the day of the file, its end as of the present at most."""
    try:
        day = datetime.strptime(_metadata(archive, "Date"), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return now
    return min(day.timestamp(), now)


def _read_entry(
    archive: Archive, number: int, prefix: str, at: float, result: ImportResult
) -> ArchivedPage | None:
    entry = archive._get_entry_by_id(number)
    if entry.is_redirect:
        result.add("passed_over")
        return None
    item = entry.get_item()
    if item.size > MAX_BLOCK_BYTES:
        result.add("unusable")
        return None
    try:
        url = canonicalize(prefix + quote(entry.path, safe="/?&=:;,@!$'()*+~-._%"))
    except InvalidUrlError:
        result.add("unusable")
        return None
    return ArchivedPage(url, at, bytes(item.content), content_type=item.mimetype)
