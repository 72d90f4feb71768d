"""Renames of pages that a wiki's log reports: the history of a page follows it to its new title.

Several renames are applied at once, so that two pages that swap their titles swap their histories.
A history is moved if the page at the new title has none, or gives its own away, or has only copies
that are newer than all of the moved ones: then a visit of the new title came before the report.
Otherwise two pages have become one, and each keeps its history.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.url import split_url, url_hash
from crawld.store.changes.wiki_feed import REOPENED_TRIES

_FIND: Final = """
SELECT page_id FROM page WHERE host_id = (SELECT host_id FROM host WHERE host = ?1)
AND url_hash = ?2 AND url = ?3 AND requisite = 0
AND site_id IN (SELECT value FROM json_each(?4))
"""

_HELD_COLUMNS: Final = (
    *("digest", "version_id", "last_change_at", "change_count", "title", "cleaned_digest"),
    *("sketch", "form", "last_visit_at"),
)

# Validators are valid for the old URL only.
_LEAVE: Final = """
UPDATE page SET digest = NULL, version_id = NULL, etag = NULL, last_modified = NULL,
    cleaned_digest = NULL, sketch = NULL, redirect_url = ? WHERE page_id = ?
"""

_TIMED: Final = ("version", "visit")

_ONE_ROW: Final = ("model", "volatile", "pin", "requisite_use", "wiki_page", "probe")
"""Tables with one row per page."""


class Rename(NamedTuple):
    """A page of a site that was renamed.

    Attributes:
        old_url: its canonical URL before.
        new_url: its canonical URL now.
        new_title: its title in the wiki's spelling.
        at: when, Unix seconds; what was stored since belongs to another page at the old URL.
        leaves_redirect: whether the old URL redirects to the new one.
    """

    old_url: str
    new_url: str
    new_title: str
    at: float
    leaves_redirect: bool = True


def net_renames(renames: Sequence[Rename]) -> list[Rename]:
    """Return renames, in their order, as the single rename of each page; ways back are left out.

    A page that goes to a temporary title and from there to its last one is renamed once.
    """
    whole: list[Rename] = []
    for rename in renames:
        index = next((i for i, each in enumerate(whole) if each.new_url == rename.old_url), None)
        if index is None:
            whole.append(rename)
            continue
        first = whole.pop(index)
        whole.append(first._replace(new_url=rename.new_url, new_title=rename.new_title))
    return [each for each in whole if each.old_url != each.new_url]


def known_urls(connection: apsw.Connection, site_id: int, urls: Sequence[str]) -> set[str]:
    """Return those of some canonical URLs that are pages of a site."""
    return set(_find(connection, urls, [site_id]))


def apply(
    connection: apsw.Connection,
    site_id: int,
    renames: Sequence[Rename],
    *,
    beside: Collection[int] = (),
) -> int:
    """Move the histories of renamed pages of a site; return how many were moved.

    The pages at the new URLs have to be known.

    Args:
        renames: the net renames (`net_renames`).
        beside: the sites to which the pages at the new URLs may belong, too: those of the wiki, of
            which another one may have named the new title first.
    """
    old = _find(connection, [each.old_url for each in renames], [site_id])
    new = _find(connection, [each.new_url for each in renames], [site_id, *beside])
    known = [each for each in renames if each.old_url in old and each.new_url in new]
    moves = _movable(
        connection, [_Move(old[each.old_url], new[each.new_url], each.at) for each in known]
    )
    if moves:
        _move(connection, moves)
    moved, received = {each.old for each in moves}, {each.new for each in moves}
    for rename in known:
        old_id, new_id = old[rename.old_url], new[rename.new_url]
        if old_id not in moved:
            continue
        connection.execute(
            "UPDATE wiki_page SET title = ?, state = 'unresolved', failure_count = 0,"
            f" tries = {REOPENED_TRIES}, cursor = NULL WHERE page_id = ?",
            (rename.new_title, new_id),
        )
        if old_id not in received and not _has_copy(connection, old_id):
            redirect = rename.new_url if rename.leaves_redirect else None
            connection.execute(_LEAVE, (redirect, old_id))
    return len(moves)


class _Move(NamedTuple):
    """A history that goes from one page to another, as far as it is older than a time."""

    old: int
    new: int
    before: float


def _find(
    connection: apsw.Connection, urls: Sequence[str], site_ids: Collection[int]
) -> dict[str, int]:
    """Return the pages of some sites at canonical URLs, by URL."""
    sites = json.dumps(list(site_ids))
    found = {
        url: connection.execute(_FIND, (split_url(url).host, url_hash(url), url, sites)).get
        for url in urls
    }
    return {url: page_id for url, page_id in found.items() if page_id is not None}


def _has_copy(connection: apsw.Connection, page_id: int) -> bool:
    sql = "SELECT 1 FROM version WHERE page_id = ? LIMIT 1"
    return connection.execute(sql, (page_id,)).get is not None


def _movable(connection: apsw.Connection, moves: Sequence[_Move]) -> list[_Move]:
    """Return the moves that join no two histories of the same time."""
    last = "SELECT max(visited_at) FROM version WHERE page_id = ? AND visited_at < ?"
    first = "SELECT min(visited_at) FROM version WHERE page_id = ?"
    ends = {each.old: connection.execute(last, (each.old, each.before)).get for each in moves}
    starts = {each.new: connection.execute(first, (each.new,)).get for each in moves}
    left = [each for each in moves if ends[each.old] is not None]
    while True:
        given = {each.old for each in left}
        kept = [
            each
            for each in left
            if each.new in given or starts[each.new] is None or ends[each.old] <= starts[each.new]
        ]
        if len(kept) == len(left):
            return kept
        left = kept


def _move(connection: apsw.Connection, moves: Sequence[_Move]) -> None:
    # Rows are parked under negative numbers, so that two pages may exchange theirs.
    connection.execute("PRAGMA defer_foreign_keys = ON")
    columns = ", ".join(_HELD_COLUMNS)
    held: dict[int, Any] = {}
    for old, _, before in moves:
        held[old] = connection.execute(
            f"SELECT {columns} FROM page WHERE page_id = ?", (old,)
        ).fetchone()
        for table in _TIMED:
            connection.execute(
                f"UPDATE {table} SET page_id = ? WHERE page_id = ? AND visited_at < ?",
                (-old, old, before),
            )
        for table in _ONE_ROW:
            connection.execute(f"UPDATE {table} SET page_id = ? WHERE page_id = ?", (-old, old))
        connection.execute(
            "UPDATE change SET page_id = ? WHERE page_id = ? AND source = 'revision'", (-old, old)
        )
    for old, new, _ in moves:
        _receive(connection, old, new, held[old])


def _receive(
    connection: apsw.Connection, old: int, new: int, held: tuple[apsw.SQLiteValue, ...]
) -> None:
    """Give the parked rows of a page to another; newer copies of that one stay the current ones."""
    is_newer = _has_copy(connection, new)
    for table in _TIMED:
        connection.execute(f"UPDATE {table} SET page_id = ? WHERE page_id = ?", (new, -old))
    # The revisions known of the new title belong to the page that was there before.
    connection.execute("DELETE FROM change WHERE page_id = ? AND source = 'revision'", (new,))
    connection.execute("UPDATE change SET page_id = ? WHERE page_id = ?", (new, -old))
    for table in _ONE_ROW:
        if not is_newer or table in ("wiki_page", "probe"):
            connection.execute(f"DELETE FROM {table} WHERE page_id = ?", (new,))
        connection.execute(
            f"UPDATE OR IGNORE {table} SET page_id = ? WHERE page_id = ?", (new, -old)
        )
        connection.execute(f"DELETE FROM {table} WHERE page_id = ?", (-old,))
    if is_newer:
        return
    columns = ", ".join(_HELD_COLUMNS)
    values = ", ".join("?" * len(_HELD_COLUMNS))
    connection.execute(
        f"UPDATE page SET ({columns}) = ({values}), redirect_url = NULL, etag = NULL,"
        " last_modified = NULL WHERE page_id = ?",
        (*held, new),
    )
    newest = "SELECT version_id FROM version WHERE page_id = ? ORDER BY visited_at DESC LIMIT 1"
    connection.execute(
        f"UPDATE page SET version_id = ({newest}),"
        f" digest = iif(version_id IS ({newest}), digest, NULL) WHERE page_id = ?",
        (new, new, new),
    )
