"""What goes when there is no more room: quotas of the file and of sites, and the order of eviction.

    superseded   copies that a newer one replaced, the oldest first
    needless     requisites that no page shows any more, with all that is known of them
    gone         the last copies of pages that have gone from the web, the first gone first

The last good copy of a live page is never among them, nor a pinned one. `usage` says what each
class holds, so that an operator sees what would go before it goes; `evict` gives up a slice.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import apsw
import numpy as np

from crawld.core.page import PageState
from crawld.store.versions import purge, retention
from crawld.store.versions.retention import RemovalPlan, StoredVersion

EvictionClass = Literal["superseded", "needless", "gone"]

EVICTION_ORDER: Final[tuple[EvictionClass, ...]] = ("superseded", "needless", "gone")

EVICTION_COPIES: Final = 200
"""Copies given up in one transaction."""


class Evictable(NamedTuple):
    """What a class holds.

    Attributes:
        kind: which class.
        copies: how many copies could go.
        stored_bytes: what they take; bodies that others show too are counted, and stay.
    """

    kind: EvictionClass
    copies: int
    stored_bytes: int


class QuotaUsage(NamedTuple):
    """How a file or a site stands against its quota.

    Attributes:
        site_id: the site; None: the file.
        used_bytes: what it takes: the pages of the file in use, or the stored copies of the site.
        holdings: what could go, in this order.
    """

    site_id: int | None
    used_bytes: int
    holdings: tuple[Evictable, ...]


_SITE: Final = "(?1 IS NULL OR page.site_id = ?1)"

_WHICH: Final[dict[EvictionClass, str]] = {
    "superseded": "version.version_id <> ifnull(page.version_id, -1) AND page.requisite = 0"
    f" AND version.version_id NOT IN (SELECT version_id FROM pin) AND {_SITE}",
    "needless": f"page.requisite = 1 AND {_SITE} AND page_id NOT IN (SELECT value FROM carray(?2))",
    "gone": f"version.version_id = page.version_id AND page.state = '{PageState.GONE}'"
    f" AND version.version_id NOT IN (SELECT version_id FROM pin) AND {_SITE}",
}

_FROM: Final = (
    "FROM version JOIN page ON page.page_id = version.page_id JOIN body ON body.body_id ="
    " version.body_id"
)


def used_bytes(connection: apsw.Connection, site_id: int | None = None) -> int:
    """Return what the file takes without its free pages, or the stored copies of a site."""
    if site_id is None:
        size, count, free = (
            int(connection.execute(f"PRAGMA {name}").get)
            for name in ("page_size", "page_count", "freelist_count")
        )
        return size * (count - free)
    total = connection.execute(
        "SELECT sum(length(data)) FROM body WHERE body_id IN (SELECT body_id FROM version"
        " JOIN page USING (page_id) WHERE site_id = ?)",
        (site_id,),
    ).get
    return int(total or 0)


def usage(connection: apsw.Connection, site_id: int | None = None) -> QuotaUsage:
    """Return what could go of a site, or of the whole file; reads every copy."""
    holdings = []
    for kind in EVICTION_ORDER:
        copies, stored = connection.execute(
            f"SELECT count(*), ifnull(sum(length(data)), 0) {_FROM} WHERE {_which(kind)}",
            _bindings(connection, kind, site_id),
        ).get
        holdings.append(Evictable(kind, copies, stored))
    return QuotaUsage(site_id, used_bytes(connection, site_id), tuple(holdings))


def _which(kind: EvictionClass) -> str:
    return _WHICH[kind].replace("page_id NOT IN", "page.page_id NOT IN")


def _bindings(
    connection: apsw.Connection, kind: EvictionClass, site_id: int | None
) -> tuple[Any, ...]:
    return (site_id, _shown(connection)) if kind == "needless" else (site_id,)


def _shown(connection: apsw.Connection) -> Any:  # noqa: ANN401 (a function by its stub)
    """Return the requisites that some page, or a style sheet that one shows, needs."""
    rows = connection.execute(
        "SELECT requisites FROM requisite_use JOIN page USING (page_id) WHERE state <> 'gone'"
    )
    parts = [np.frombuffer(packed, dtype="<i8") for (packed,) in rows]
    return apsw.carray(np.unique(np.concatenate(parts)) if parts else np.zeros(1, "<i8"))


def evict(
    connection: apsw.Connection, kind: EvictionClass, excess_bytes: int, site_id: int | None = None
) -> Evictable:
    """Give up the next copies of a class.

    Args:
        connection: the writer.
        kind: which class.
        excess_bytes: no more than it takes to free so many.
        site_id: of this site only.

    Returns:
        What went; no copies: the class holds none any more.
    """
    rows: list[Any] = connection.execute(
        f"SELECT version.version_id, version.page_id, version.visited_at, version.body_id,"
        f" length(data) {_FROM} WHERE {_which(kind)}"
        f" ORDER BY version.version_id LIMIT {EVICTION_COPIES}",
        _bindings(connection, kind, site_id),
    ).fetchall()
    chosen: list[Any] = []
    freed = 0
    for row in rows:
        if freed >= excess_bytes:
            break
        chosen.append(row)
        freed += row[4]
    if kind == "needless":
        for page_id in dict.fromkeys(row[1] for row in chosen):
            purge.delete_page(connection, page_id)
    else:
        _give_up(connection, chosen)
    return Evictable(kind, len(chosen), freed)


def _give_up(connection: apsw.Connection, rows: list[Any]) -> None:
    by_page: dict[int, list[StoredVersion]] = {}
    for version_id, page_id, visited_at, body_id, _ in rows:
        by_page.setdefault(page_id, []).append(StoredVersion(version_id, visited_at, body_id))
    slice_: RemovalPlan = retention.plan_copies(connection, by_page)
    for copies in by_page.values():
        # A page that has gone is asked for whole if it ever comes back.
        connection.executemany(
            "UPDATE page SET version_id = NULL, digest = NULL, etag = NULL, last_modified = NULL"
            " WHERE version_id = ?",
            [(copy.version_id,) for copy in copies],
        )
    retention.apply(connection, slice_)
