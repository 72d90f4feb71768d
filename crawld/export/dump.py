"""Histories of MediaWikis as one of their own dumps: pages and revisions without their texts.

The form is that of `dumpBackup.php --stub` (schema export-0.11), which readers of dumps take. Who
made a revision and its text are not in the file, so that both are marked as the schema marks what
is withheld. A name that ends in `.gz` is compressed.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from xml.sax.saxutils import escape

import apsw

from crawld.core.display import iso_text
from crawld.export.atomic_file import atomic_file
from crawld.export.source import ExportResult, Progress, no_progress, open_source
from crawld.store.mirror import rows, walk
from crawld.store.mirror.rows import PageHistory, Revision

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


def export_dump(
    db: Path, out: Path, *, since: float | None = None, progress: Progress = no_progress
) -> ExportResult:
    """Write every history of the wikis as a dump.

    Args:
        db: the database; a daemon may be writing to it.
        out: the file, as `histories.xml.gz`; must not exist.
        since: leave out revisions older than this instant.
        progress: told how far it is.

    Raises:
        OperatorError: the file cannot be written.
        StoreError: the database cannot be read.
    """
    summary = ExportResult()
    with open_source(db) as connection, atomic_file(out) as file:
        total = walk.newest_page(connection)
        with _target(file, packed=out.suffix == ".gz") as target:
            for text in _texts(connection, since, summary):
                target.write(text.encode("utf-8", "replace"))
                progress(min(summary.written.get("pages", 0), total), total)
        summary.written_bytes = file.tell()
    progress(total, total)
    return summary


@contextmanager
def _target(file: BinaryIO, *, packed: bool) -> Iterator[IO[bytes]]:
    if not packed:
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as target:
        yield cast("IO[bytes]", target)


def _texts(
    connection: apsw.Connection, since: float | None, summary: ExportResult
) -> Iterator[str]:
    facts: dict[str, Any] | None = None
    for chunk in rows.histories(connection):
        for history in chunk:
            if facts is None:
                facts = _facts(history)
                yield _HEAD.format(lang=escape(str(facts.get("lang", "en")), {'"': "&quot;"}))
            yield from _page(connection, history, since, summary)
    if facts is None:
        yield _HEAD.format(lang="en")
    yield "</mediawiki>\n"


def _facts(history: PageHistory) -> dict[str, Any]:
    try:
        found = json.loads(history.facts or "{}")
    except ValueError:
        found = {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _page(
    connection: apsw.Connection, history: PageHistory, since: float | None, summary: ExportResult
) -> Iterator[str]:
    opened_page = False
    for revision in rows.revisions(connection, history.page_id, since):
        if not opened_page:
            opened_page = True
            yield (
                f"  <page>\n    <title>{_text(history.title)}</title>\n    <ns>0</ns>\n"
                f"    <id>{history.number or history.page_id}</id>\n"
            )
        yield _revision(revision)
        summary.count("revisions")
    if opened_page:
        yield "  </page>\n"
        summary.count("pages")


def _revision(revision: Revision) -> str:
    return _REVISION.format(
        id=revision.revision_id,
        time=iso_text(revision.changed_at),
        size=revision.size_bytes or 0,
    )


def _text(title: str) -> str:
    """Return a title as XML takes it, which has no control characters."""
    return escape("".join(each if each.isprintable() else "�" for each in title))
