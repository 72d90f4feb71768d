"""Imports the entries of ZIM files as copies of pages.

Pages in a ZIM file are rewritten, so the copies differ from the originals; the first visit replaces
each copy. An entry name is the end of a URL after a base (`--base https://en.wikipedia.org/wiki/`),
or host and path in files made from web archives or by crawld.
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
    files: list[Path],
    *,
    now: float,
    base: str | None = None,
    site: str | None = None,
    progress: Progress = no_progress,
) -> ImportResult:
    """Import the entries of ZIM files as copies of the date of the file.

    `base` is the URL prefix of the entry names; None: the names start with the host. `site` is that
    of unknown pages; None: by host. `progress` receives entries read and total entries of a file.

    Raises:
        OperatorError: a file is not a ZIM file, is damaged, or lacks the URLs of its entries.
        DatabaseInUseError: a daemon uses the database.
    """
    result = ImportResult()
    for path in files:
        if not path.is_file():
            raise OperatorError(f"{path} is not a file", hint="give a file to import")
        try:
            archive = Archive(path)
            prefix = _prefix(archive) if base is None else canonicalize(base)
            at = _made_at(archive, now)
            with open_for_import(db) as connection:
                writer = ImportWriter(connection, site, now, result)
                for number in range(archive.entry_count):
                    page = _read_entry(archive, number, prefix, at, result)
                    if page is not None:
                        writer.add(page)
                    if writer.is_full:
                        writer.commit()
                        progress(number, archive.entry_count)
                writer.commit()
            progress(archive.entry_count, archive.entry_count)
        except RuntimeError as error:
            raise OperatorError(
                f"{path} cannot be read: {error}", hint="check it with: zimcheck -A"
            ) from error
    return result


def _metadata(archive: Archive, key: str) -> str:
    if key not in archive.metadata_keys:
        return ""
    return bytes(archive.get_metadata(key)).decode("utf-8", "replace").strip()


def _prefix(archive: Archive) -> str:
    """Return the URL prefix of entry names that start with a host.

    Raises:
        OperatorError: they do not start with a host.
    """
    if not _metadata(archive, "Scraper").lower().startswith(_SCRAPERS_WITH_HOSTS):
        raise OperatorError(
            "the file does not give the URLs of its entries",
            hint="give their prefix, for example: --base https://en.wikipedia.org/wiki/",
        )
    source = _metadata(archive, "Source")
    return "http://" if source.startswith("http://") else "https://"


def _made_at(archive: Archive, now: float) -> float:
    """Return the date of the file, at most `now`."""
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
        result.counts["passed_over"] += 1
        return None
    item = entry.get_item()
    if item.size > MAX_BLOCK_BYTES:
        result.counts["unusable"] += 1
        return None
    try:
        url = canonicalize(prefix + quote(entry.path, safe="/?&=:;,@!$'()*+~-._%"))
    except InvalidUrlError:
        result.counts["unusable"] += 1
        return None
    return ArchivedPage(url, at, bytes(item.content), content_type=item.mimetype)
