"""Quotas of the file and of sites: copies are evicted in this order.

    superseded   copies that a newer one replaced, the oldest first
    needless     requisites that no page uses any more, with all their data
    gone         the last copies of pages that are gone from the web, the first gone first

The last good copy of a live page is never evicted, nor a pinned one. `usages` reports the size of
each class, so that an operator sees what would be evicted; `evict` removes a slice.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final, Literal, NamedTuple

import apsw
import numpy as np

from crawld.core.page import PageState
from crawld.store.versions import purge, retention
from crawld.store.versions.retention import RemovalPlan, StoredVersion

EvictionClass = Literal["superseded", "needless", "gone"]

EVICTION_ORDER: Final[tuple[EvictionClass, ...]] = ("superseded", "needless", "gone")

EVICTION_COPIES: Final = 200
"""Copies removed in one transaction."""


class Evictable(NamedTuple):
    """The evictable copies of a class; `stored_bytes` includes bodies that other copies share."""

    kind: EvictionClass
    copies: int
    stored_bytes: int


class QuotaUsage(NamedTuple):
    """The usage of the file or of a site.

    Attributes:
        site_id: the site; None: the file.
        used_bytes: size of the file's pages in use, or of the stored copies of the site.
        holdings: the evictable copies by class, in the order of eviction.
    """

    site_id: int | None
    used_bytes: int
    holdings: tuple[Evictable, ...]


_SITE: Final = "(?1 IS NULL OR page.site_id = ?1)"

_CONDITIONS: Final[dict[EvictionClass, str]] = {
    "superseded": "version.version_id <> ifnull(page.version_id, -1) AND page.requisite = 0"
    f" AND version.version_id NOT IN (SELECT version_id FROM pin) AND {_SITE}",
    "needless": f"page.requisite = 1 AND {_SITE}"
    " AND page.page_id NOT IN (SELECT value FROM carray(?2))",
    "gone": f"version.version_id = page.version_id AND page.state = '{PageState.GONE}'"
    f" AND version.version_id NOT IN (SELECT version_id FROM pin) AND {_SITE}",
}

_FROM: Final = (
    "FROM version JOIN page ON page.page_id = version.page_id JOIN body ON body.body_id ="
    " version.body_id"
)


_USED_BY_SITE: Final = (
    "SELECT site_id, sum(length(data)) FROM (SELECT DISTINCT site_id, body_id FROM version"
    " JOIN page USING (page_id)) JOIN body USING (body_id) GROUP BY site_id"
)


def used_bytes(connection: apsw.Connection, site_id: int | None = None) -> int:
    """Return the size of the file without its free pages, or of a site's stored copies."""
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


def unused(site_id: int | None) -> QuotaUsage:
    """Return the usage of a site without copies."""
    return QuotaUsage(site_id, 0, tuple(Evictable(kind, 0, 0) for kind in EVICTION_ORDER))


def usages(connection: apsw.Connection) -> dict[int | None, QuotaUsage]:
    """Return the usage of the file (None) and of each site with copies; reads every copy."""
    holdings: dict[int | None, list[Evictable]] = defaultdict(list)
    used = {None: used_bytes(connection), **dict(connection.execute(_USED_BY_SITE))}
    for kind in EVICTION_ORDER:
        rows = connection.execute(
            f"SELECT site_id, count(*), sum(length(data)) {_FROM} WHERE {_CONDITIONS[kind]}"
            " GROUP BY site_id",
            _bindings(connection, kind, None),
        )
        found = {site_id: Evictable(kind, *row) for site_id, *row in rows}
        whole = Evictable(
            kind,
            sum(each.copies for each in found.values()),
            sum(each.stored_bytes for each in found.values()),
        )
        for site_id in used:
            holding = found.get(site_id, Evictable(kind, 0, 0))
            holdings[site_id].append(whole if site_id is None else holding)
    return {
        site_id: QuotaUsage(site_id, used[site_id], tuple(each))
        for site_id, each in holdings.items()
    }


def _bindings(
    connection: apsw.Connection, kind: EvictionClass, site_id: int | None
) -> tuple[Any, ...]:
    return (site_id, _needed_requisites(connection)) if kind == "needless" else (site_id,)


def _needed_requisites(connection: apsw.Connection) -> Any:  # noqa: ANN401 (a function by its stub)
    """Return the requisites that some page needs, or a style sheet of one."""
    rows = connection.execute(
        "SELECT requisites FROM requisite_use CROSS JOIN page USING (page_id) WHERE state <> 'gone'"
    )
    parts = [np.frombuffer(packed, dtype="<i8") for (packed,) in rows]
    needed = np.unique(np.concatenate(parts)) if parts else np.empty(0, "<i8")
    # An empty array cannot be bound; no page has the number 0.
    return apsw.carray(needed if len(needed) else np.zeros(1, "<i8"))


def evict(
    connection: apsw.Connection, kind: EvictionClass, excess_bytes: int, site_id: int | None = None
) -> Evictable:
    """Evict the next copies of a class.

    Args:
        excess_bytes: stop when this many bytes are freed.
        site_id: of this site only.

    Returns:
        What was evicted; no copies: the class is empty.
    """
    rows: list[Any] = connection.execute(
        f"SELECT version.version_id, version.page_id, version.visited_at, version.body_id,"
        f" length(data) {_FROM} WHERE {_CONDITIONS[kind]}"
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
        _remove(connection, chosen)
    return Evictable(kind, len(chosen), freed)


def _remove(connection: apsw.Connection, rows: list[Any]) -> None:
    by_page: dict[int, list[StoredVersion]] = {}
    for version_id, page_id, visited_at, body_id, _ in rows:
        by_page.setdefault(page_id, []).append(StoredVersion(version_id, visited_at, body_id))
    slice_: RemovalPlan = retention.plan_copies(connection, by_page)
    for copies in by_page.values():
        # Without validators, so that a gone page that returns is fetched whole.
        connection.executemany(
            "UPDATE page SET version_id = NULL, digest = NULL, etag = NULL, last_modified = NULL"
            " WHERE version_id = ?",
            [(copy.version_id,) for copy in copies],
        )
    retention.apply(connection, slice_)
