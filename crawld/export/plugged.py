"""Exports by plug-ins: the shown copy of each page of text, one after the other.

Pages are read one at a time while the plug-in takes them, so that an export of any size needs the
memory of one page, and the file stays free for the daemon.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import apsw

from crawld.core.content import media
from crawld.core.content.analysis import read_blocks
from crawld.errors import CorruptDatabaseError, OperatorError
from crawld.export.source import ExportRequest, ExportResult, open_source
from crawld.plugins import ExportedPage, Exporter
from crawld.store.mirror import walk
from crawld.store.mirror.walk import PageOutline
from crawld.store.versions import version_tag

_DOCUMENTS: Final = frozenset(
    {media.HTML, media.XHTML, media.XML, media.JSON, "text/plain", "application/pdf"}
)
"""Media types of pages; images, styles and scripts are left out."""


def export_by_plugin(request: ExportRequest, name: str, exporter: Exporter) -> ExportResult:
    """Let a plug-in export the mirror; count what it took.

    Raises:
        OperatorError: the plug-in failed.
        StoreError: the database cannot be read.
    """
    result = ExportResult()
    with open_source(request.db) as connection:
        try:
            taken = exporter(_pages(connection, request, result), request.out)
        except (OperatorError, apsw.Error):
            raise
        except Exception as error:
            raise OperatorError(
                f"{name} failed: {type(error).__name__}: {error}",
                hint="correct the plug-in; what it wrote may be incomplete",
            ) from error
    if isinstance(taken, bool) or not isinstance(taken, int) or taken < 0:
        raise OperatorError(
            f"{name} returned {taken!r:.60}", hint="an exporter returns how many pages it took"
        )
    result.written["pages"] = taken
    return result


def _pages(
    connection: apsw.Connection, request: ExportRequest, result: ExportResult
) -> Iterator[ExportedPage]:
    total = walk.newest_page(connection)
    for chunk in walk.outlines(connection, request.now):
        for outline in chunk:
            page = _page(connection, outline, request.since, result)
            if page is not None:
                result.written_bytes += len(page.body)
                yield page
        if chunk:
            request.progress(chunk[-1].page_id, total)
    request.progress(total, total)


def _page(
    connection: apsw.Connection, outline: PageOutline, since: float | None, result: ExportResult
) -> ExportedPage | None:
    """Return the shown copy of a page; None: it has none, or it is not wanted."""
    if outline.version_id is None:
        return None
    kind = walk.copy_type_and_time(connection, outline.version_id)
    if kind is None or kind[0] not in _DOCUMENTS or (since is not None and kind[1] < since):
        return None
    head = walk.head(connection, outline.page_id)
    try:
        copy = walk.copy(connection, outline.version_id)
    except CorruptDatabaseError:
        result.unreadable.append(head.url if head else f"page {outline.page_id}")
        return None
    if head is None or copy is None or copy.response.content_type is None:
        return None
    content_type, charset = copy.response.content_type, copy.response.charset
    declared = f"{content_type}; charset={charset}" if charset else content_type
    return ExportedPage(
        url=head.url,
        title=head.title,
        visited_at=copy.visited_at,
        content_type=content_type,
        charset=charset,
        body=copy.body,
        tags=version_tag.flat(version_tag.of_version(connection, outline.version_id)),
        read_text=partial(_visible_text, copy.body, declared),
    )


def _visible_text(body: bytes, content_type: str) -> str:
    return read_blocks(body, content_type).visible_text()
