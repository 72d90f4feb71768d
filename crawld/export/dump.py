"""Exports wiki histories as a MediaWiki XML dump: pages and revisions without text.

The format is that of `dumpBackup.php --stub` (schema export-0.11), which dump readers accept.
Contributors and texts are not in the database, so both are marked as deleted, as the schema marks
withheld data. A file name that ends in `.gz` is compressed.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, cast
from xml.sax.saxutils import escape

import apsw

from crawld.core.display import iso_text
from crawld.errors import OperatorError
from crawld.export.atomic_file import atomic_file
from crawld.export.source import ExportRequest, ExportResult, open_source
from crawld.store.mirror import rows, walk
from crawld.store.mirror.rows import PageHistory

_HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    ' xsi:schemaLocation="http://www.mediawiki.org/xml/export-0.11/'
    ' http://www.mediawiki.org/xml/export-0.11.xsd" version="0.11" xml:lang="{lang}">\n'
)
_REVISION = (
    "    <revision>\n      <id>{id}</id>\n      <timestamp>{time}</timestamp>\n"
    '      <contributor deleted="deleted" />\n      <model>wikitext</model>\n'
    '      <format>text/x-wiki</format>\n      <text bytes="{size}" deleted="deleted" />\n'
    "    </revision>\n"
)


def export_dump(request: ExportRequest) -> ExportResult:
    """Write the histories of all wikis as a dump (`histories.xml.gz`).

    Raises:
        OperatorError: the file exists or cannot be written, or there are no revisions to write.
        StoreError: the database cannot be read.
    """
    result = ExportResult()
    with open_source(request.db) as connection, atomic_file(request.out) as file:
        total = walk.newest_page(connection)
        with _target(file, compress=request.out.suffix == ".gz") as target:
            for text in _texts(connection, request.since, result):
                target.write(text.encode("utf-8", "replace"))
                request.progress(min(result.written["pages"], total), total)
        if not result.written["pages"]:
            raise _nothing_to_export(request.since)
        result.written_bytes = file.tell()
    request.progress(total, total)
    return result


@contextmanager
def _target(file: BinaryIO, *, compress: bool) -> Iterator[IO[bytes]]:
    if not compress:
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as target:
        yield cast("IO[bytes]", target)


def _texts(connection: apsw.Connection, since: float | None, result: ExportResult) -> Iterator[str]:
    facts: dict[str, Any] | None = None
    for chunk in rows.histories(connection):
        for history in chunk:
            if facts is None:
                facts = _facts(history)
                yield _HEAD.format(lang=escape(str(facts.get("lang", "en")), {'"': "&quot;"}))
            yield from _page(connection, history, since, result)
    yield "</mediawiki>\n"


def _nothing_to_export(since: float | None) -> OperatorError:
    if since is not None:
        return OperatorError(
            f"no revision of a wiki after {iso_text(since)} is known", hint="leave out --since"
        )
    return OperatorError(
        "no history of a wiki is known, so there is nothing to dump",
        hint="a daemon reads histories where a site is a MediaWiki; of other sites: "
        "crawld export jsonl --table changes",
    )


def _facts(history: PageHistory) -> dict[str, Any]:
    try:
        found = json.loads(history.facts or "{}")
    except ValueError:
        found = {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _page(
    connection: apsw.Connection, history: PageHistory, since: float | None, result: ExportResult
) -> Iterator[str]:
    is_open = False
    for revision in rows.revisions(connection, history.page_id, since):
        if not is_open:
            is_open = True
            yield (
                f"  <page>\n    <title>{_text(history.title)}</title>\n    <ns>0</ns>\n"
                f"    <id>{history.number or history.page_id}</id>\n"
            )
        yield _REVISION.format(
            id=revision.revision_id,
            time=iso_text(revision.changed_at),
            size=revision.size_bytes or 0,
        )
        result.count("revisions")
    if is_open:
        yield "  </page>\n"
        result.count("pages")


def _text(title: str) -> str:
    """Return a title as XML text; control characters, which XML forbids, are replaced."""
    return escape("".join(each if each.isprintable() else "�" for each in title))
