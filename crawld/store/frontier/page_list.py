"""Lists of pages by state that cost the same at every part, however rare the state is."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import apsw

from crawld.core.display import SHOWN_TITLE_CHARACTERS
from crawld.core.page import PageState
from crawld.store.frontier import packed_list

LOOKED_AT: Final = 5_000
"""Pages of a host that one part of a list looks at, of which it keeps those that match."""


class PageInList(NamedTuple):
    """A page of a list; `title` is cut."""

    page_id: int
    url: str
    state: PageState
    requisite: bool
    depth: int
    title: str | None
    last_visit_at: float | None
    last_change_at: float | None
    last_outcome: str | None
    last_failure: str | None
    failure_count: int
    retry_at: float | None
    url_hash: int


class PagePart(NamedTuple):
    """A part of a list; `following` continues it, None at its end."""

    pages: list[PageInList]
    following: float | int | None


_COLUMNS: Final = (
    f"page_id, url, state, requisite, depth, substr(title, 1, {SHOWN_TITLE_CHARACTERS}),"
    " last_visit_at, last_change_at, last_outcome, last_failure, failure_count, retry_at, url_hash"
)


def list_of_host(
    connection: apsw.Connection,
    host_id: int,
    *,
    state: PageState | None = None,
    after: int | None = None,
    limit: int = 100,
) -> PagePart:
    """Return pages of a host in the order of their URL hashes, from the one after `after`.

    A part may be short, or empty, and have a following one all the same.
    """
    begin = -(2**63) if after is None else after
    looked: list[tuple[Any, ...]] = connection.execute(
        "SELECT url_hash, state FROM page WHERE host_id = ? AND url_hash > ?"
        " ORDER BY url_hash LIMIT ?",
        (host_id, begin, LOOKED_AT),
    ).fetchall()
    wanted = [url_hash for url_hash, found in looked if state in (None, found)]
    following = looked[-1][0] if len(looked) == LOOKED_AT else None
    if len(wanted) > limit:
        following = wanted[limit - 1]
    sql = f"SELECT {_COLUMNS} FROM page WHERE host_id = ? AND url_hash = ?"
    rows = [
        row
        for url_hash in wanted[:limit]
        for row in connection.execute(sql, (host_id, url_hash))
        if state in (None, row[2])
    ]
    return PagePart([_page(row) for row in rows], following)


def list_packed_of_host(
    connection: apsw.Connection, host_id: int, *, after: int = 0, limit: int = 100
) -> PagePart:
    """Return packed pages of a host in the order of their numbers, after one; they come last."""
    pages = packed_list.list_packed(connection, after=after, limit=limit, host_id=host_id)
    found = [
        PageInList(
            page_id=page.number,
            url=page.url,
            state=PageState.DISCOVERED,
            requisite=False,
            depth=page.depth,
            title=None,
            last_visit_at=None,
            last_change_at=None,
            last_outcome=None,
            last_failure=None,
            failure_count=0,
            retry_at=None,
            url_hash=0,
        )
        for page in pages
    ]
    return PagePart(found, pages[-1].number if len(pages) == limit else None)


def list_retried(
    connection: apsw.Connection, *, after: float | None = None, limit: int = 100
) -> PagePart:
    """Return pages whose last visits failed, in the order in which they are retried."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"SELECT {_COLUMNS} FROM page WHERE retry_at > ? ORDER BY retry_at LIMIT ?",
        (-1e300 if after is None else after, limit),
    ).fetchall()
    following = rows[-1][11] if len(rows) == limit else None
    return PagePart([_page(row) for row in rows], following)


def _page(row: tuple[Any, ...]) -> PageInList:
    made = PageInList(*row)
    return made._replace(state=PageState(made.state), requisite=bool(made.requisite))
