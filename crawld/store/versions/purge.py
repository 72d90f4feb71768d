"""Purge: remove a page and all its data from the file, and block its URL.

`purge` is one transaction: it removes copies, bodies that no other page shows, visits, models,
words of the search index, and rows of every table that refers to the page. A tombstone remains, the
digest of the URL, so that no link, seed or import brings the page back. Deltas on removed bodies
get another base first. `scrub` then rewrites the parts of the file and its log that held the bytes:
deleting a row does not erase it.

Not removed, but reported: older copies of the file, and the same body at another URL.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.store.frontier import packed, packed_list, page_counts, tombstone
from crawld.store.frontier import page as page_rows
from crawld.store.versions import retention, search_index
from crawld.store.versions.retention import RemovalPlan

MAX_SAME_AT: Final = 20
"""The most URLs with the same content that a report lists."""


class PurgeResult(NamedTuple):
    """The result of a purge.

    Attributes:
        known: whether there was such a page; there is a tombstone either way.
        versions: copies removed.
        bodies: bodies removed.
        same_at: other pages that show one of its bodies, which therefore stays.
    """

    url: str
    known: bool
    versions: int = 0
    bodies: int = 0
    same_at: tuple[str, ...] = ()


_SHOWN_ELSEWHERE: Final = """
SELECT DISTINCT url FROM version AS own JOIN version AS other USING (body_id)
JOIN page ON page.page_id = other.page_id
WHERE own.page_id = ?1 AND other.page_id <> ?1 ORDER BY url LIMIT ?2
"""

_REFERRING: Final = """
SELECT child.name, key."from" FROM sqlite_schema AS child
JOIN pragma_foreign_key_list(child.name) AS key
WHERE child.type = 'table' AND key."table" = ? AND child.name NOT IN ('page', 'version')
"""


def purge(
    connection: apsw.Connection, url: str, now: float, reason: str | None = None
) -> PurgeResult:
    """Remove the page of a canonical URL and block the URL.

    Args:
        reason: in the operator's words, kept with the tombstone.
    """
    tombstone.put(connection, url, now, reason)
    connection.execute("DELETE FROM quarantine WHERE url = ?", (url,))
    connection.execute("UPDATE refusal SET example = '' WHERE example = ?", (url,))
    connection.execute("UPDATE event SET target_url = NULL WHERE target_url = ?", (url,))
    page_id = page_rows.id_of(connection, url)
    if page_id is None:
        return PurgeResult(url, known=packed_list.erase(connection, url))
    same_at = tuple(
        each for (each,) in connection.execute(_SHOWN_ELSEWHERE, (page_id, MAX_SAME_AT))
    )
    removal = delete_page(connection, page_id)
    _forget_mentions(connection, url)
    packed_list.erase(connection, url)  # of an entry that it has besides
    return PurgeResult(url, True, len(removal.versions), len(removal.bodies), same_at)


def delete_page(connection: apsw.Connection, page_id: int) -> RemovalPlan:
    """Delete a page and all its data; a link may add it again. Return what was removed."""
    site_id, host_id, state, requisite, url = connection.execute(
        "SELECT site_id, host_id, state, requisite, url FROM page WHERE page_id = ?", (page_id,)
    ).get
    removal = retention.plan_removal(connection, page_id)
    _delete_rows(connection, page_id)
    retention.apply(connection, removal)
    connection.execute("DELETE FROM page WHERE page_id = ?", (page_id,))
    if requisite:
        connection.execute(
            "UPDATE site SET requisite_count = requisite_count - 1 WHERE site_id = ?", (site_id,)
        )
    else:
        page_counts.count_moves(connection, [(site_id, host_id, PageState(state), None)])
    packed.forget(connection, [url])
    return removal


def _delete_rows(connection: apsw.Connection, page_id: int) -> None:
    """Delete the rows of all tables that refer to a page or to its versions."""
    search_index.delete_page(connection, page_id)
    connection.execute(
        "UPDATE page SET referrer_id = NULL WHERE referrer_id = ?1 AND page_id <> ?1", (page_id,)
    )
    for table, column in connection.execute(_REFERRING, ("version",)).fetchall():
        connection.execute(
            f'DELETE FROM "{table}" WHERE "{column}" IN'
            " (SELECT version_id FROM version WHERE page_id = ?)",
            (page_id,),
        )
    for table, column in connection.execute(_REFERRING, ("page",)).fetchall():
        connection.execute(f'DELETE FROM "{table}" WHERE "{column}" = ?', (page_id,))


def _forget_mentions(connection: apsw.Connection, url: str) -> None:
    """Delete the URL from other pages that redirect to it."""
    rows = connection.execute(
        "UPDATE page SET redirect_url = NULL WHERE redirect_url = ? RETURNING page_id", (url,)
    ).fetchall()
    connection.executemany(
        "UPDATE visit SET detail = NULL WHERE page_id = ? AND detail = ?",
        [(page_id, url) for (page_id,) in rows],
    )


def set_secure_delete(connection: apsw.Connection, *, on: bool) -> None:
    """Set whether deletions overwrite the freed bytes; outside a transaction."""
    connection.execute(f"PRAGMA secure_delete = {'ON' if on else 'OFF'}").fetchall()


def scrub(connection: apsw.Connection) -> bool:
    """Rewrite all parts (except the index) that may contain deleted bytes; not in a transaction.

    Returns:
        False if a reader prevents the log from being emptied: call it again.
    """
    connection.execute("PRAGMA incremental_vacuum").fetchall()
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    return True
