"""Routes about the history of pages: stored copies, their bodies, and the changes between them.

A copy is named by its number or by a time (the copy in force then); a whole number below
`FIRST_TIME` is a version number, anything else a time. Bodies are decoded, parsed and compared on a
reader's thread.
"""

from __future__ import annotations

from typing import Annotated, Final

import apsw
from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response

from crawld.core.content.analysis import read_blocks
from crawld.core.content.blocks import Blocks
from crawld.core.content.page_diff import diff_pages
from crawld.daemon.api.lookup import known_page, parse_time
from crawld.daemon.api.parameters import Limit, Served
from crawld.daemon.api.schemas.history import Diff, DiffHunk, DiffPiece, History, VersionDetail
from crawld.daemon.api.views import version_status, version_statuses
from crawld.daemon.daemon import Daemon
from crawld.marks import Marks
from crawld.store.changes import volatile
from crawld.store.frontier.page import PageRecord
from crawld.store.versions import version as version_rows
from crawld.store.versions import version_tag
from crawld.store.versions.headers import unpack
from crawld.store.versions.version import VersionRow

FIRST_TIME: Final = 1_000_000_000
"""September 2001 in Unix seconds: no copy is older, and no file has so many copies."""

Named = Annotated[str | None, Query(description="a version number, or a time")]


def add_history_routes(router: APIRouter) -> None:
    """Add the routes."""

    @router.get("/history")
    async def history(
        daemon: Served,
        url: str,
        before: str | None = None,
        limit: Limit = 100,
    ) -> History:
        """The stored copies of a page, newest first, from the one before a time."""
        page = await known_page(daemon, url)
        until = float("inf") if before is None else parse_time(before, daemon.clock.now())
        rows = await daemon.database.read(
            version_rows.list_versions, page.page_id, before=until, limit=limit
        )
        return History(
            url=page.url,
            title=page.title,
            change_count=page.change_count,
            versions=await version_statuses(daemon, rows),
        )

    @router.get("/diff")
    async def diff(
        daemon: Served, url: str, a: Named = None, b: Named = None, raw: bool = False
    ) -> Diff:
        """The changes from one copy to another, by default between the last two.

        Blocks that change by themselves are skipped, unless `raw`.
        """
        page = await known_page(daemon, url)
        now = daemon.clock.now()
        old, new = await daemon.database.read(_compared, page, a, b, now)
        return await daemon.database.read(_diff, page, old, new, raw, daemon.analyser.marks)

    @router.get("/body", response_class=Response)
    async def body(daemon: Served, url: str, at: Named = None) -> Response:
        """The body of a copy, by default the last one, byte for byte."""
        page = await known_page(daemon, url)
        content = await daemon.database.read(_body, page, at, daemon.clock.now())
        return Response(content, media_type="application/octet-stream")


async def version_detail(daemon: Daemon, page: PageRecord, at: str) -> VersionDetail:
    """Return the copy of a page at a time, or by number."""
    return await daemon.database.read(_detail, page, at, daemon.clock.now())


def _is_number(text: str) -> bool:
    # Python itself refuses to read thousands of digits.
    return text.isdecimal() and len(text) < len(str(FIRST_TIME))


def _named(
    connection: apsw.Connection, page: PageRecord, named: str | None, now: float
) -> VersionRow:
    """Return the copy that a text names; None: the last one."""
    found: VersionRow | None
    if named is not None and _is_number(named.strip()):
        found = version_rows.get(connection, int(named))
        if found is None or found.page_id != page.page_id:
            raise HTTPException(404, f"{page.url} has no version {named}; see: history")
        return found
    at = float("inf") if named is None else parse_time(named, now)
    found = version_rows.current_at(connection, page.page_id, at)
    if found is None:
        when = "" if named is None else f" of {named}, or any before it"
        raise HTTPException(404, f"{page.url} has no copy{when}; see: history")
    return found


def _detail(connection: apsw.Connection, page: PageRecord, at: str, now: float) -> VersionDetail:
    row = _named(connection, page, at, now)
    later = version_rows.next_after(connection, row)
    tags = version_tag.flat(version_tag.of_version(connection, row.version_id))
    return VersionDetail(
        **version_status(row, tags).model_dump(),
        url=page.url,
        superseded_at=later.visited_at if later else None,
        http_version=row.response.http_version,
        reason=row.response.reason,
        charset=row.response.charset,
        digest=row.digest.hex(),
        headers=[
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in unpack(row.response.headers)
        ],
    )


def _body(connection: apsw.Connection, page: PageRecord, at: str | None, now: float) -> bytes:
    return version_rows.read_body(connection, _named(connection, page, at, now).version_id) or b""


def _blocks(connection: apsw.Connection, row: VersionRow) -> Blocks:
    copy = version_rows.read_copy(connection, row.version_id)
    return read_blocks(*copy) if copy else read_blocks(b"")


def _compared(
    connection: apsw.Connection, page: PageRecord, a: str | None, b: str | None, now: float
) -> tuple[VersionRow, VersionRow]:
    """Return the two copies to compare."""
    new = _named(connection, page, b, now)
    if a is not None:
        return _named(connection, page, a, now), new
    old = version_rows.last_before(connection, new)
    if old is None:
        raise HTTPException(404, f"{page.url} has no copy before version {new.version_id}")
    return old, new


def _diff(
    connection: apsw.Connection,
    page: PageRecord,
    old: VersionRow,
    new: VersionRow,
    raw: bool,
    marks: Marks,
) -> Diff:
    rules = () if raw else volatile.rules_for(connection, page.page_id)
    with marks.under(page.url):
        before, after = (_blocks(connection, row) for row in (old, new))
        found = diff_pages(before, after, rules)
    return Diff(
        url=page.url,
        old=version_status(old),
        new=version_status(new),
        difference=found.share,
        raw=raw,
        noisy_blocks=found.noisy_blocks,
        hunks=[
            DiffHunk(
                old_block=hunk.old_block,
                new_block=hunk.new_block,
                pieces=[DiffPiece(op=piece.op, text=piece.text) for piece in hunk.pieces],
            )
            for hunk in found.hunks
        ],
    )
