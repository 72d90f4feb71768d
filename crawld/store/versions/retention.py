"""Retention: remove old copies of pages, and the bodies that no copy shows any more.

A rule keeps the newest `keep_versions` copies of a page, and copies that were current within
`keep_days`. A copy beyond either limit is removed, but never the first, the last or a pinned one.
The age counts from the time a copy was superseded, so that the page at any time within `keep_days`
can still be shown.

A body is deleted when no copy is left that shows it. Deltas on it first get another base: its own
base, or the body of the next copy that stays; or they become whole. `plan` reads and encodes, on a
reader; `apply` is one short transaction. A copy recorded in between is safe, because every DELETE
checks again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import apsw

from crawld.core.units import DAY_S
from crawld.errors import CorruptDatabaseError
from crawld.store.versions import body, delta, search_index, unanalysed
from crawld.store.versions.delta import DeltaChains, Reencoding, proven_delta, put_encodings

SLICE_PAGES: Final = 2000
"""The page_ids examined in a slice, whether they have copies to remove or not."""

SLICE_VERSIONS: Final = 500
"""Copies removed in a slice: its transaction delays the crawl's by some milliseconds."""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Which copies of each page of a site are kept.

    Attributes:
        keep_versions: number of newest copies, at least 1; None: all.
        keep_days: copies superseded within this many days, > 0; None: all.
    """

    keep_versions: int | None = None
    keep_days: float | None = None


class StoredVersion(NamedTuple):
    """The columns of a version that retention needs."""

    version_id: int
    visited_at: float
    body_id: int


@dataclass(slots=True)
class RemovalPlan:
    """A planned slice of work.

    Attributes:
        up_to: page_id of the last finished page.
        versions: the copies to remove, with their page_id.
        encodings: bodies to store in another form first.
        bodies: bodies to delete, each before its base.
    """

    up_to: int
    versions: list[tuple[int, StoredVersion]] = field(default_factory=list)
    encodings: list[Reencoding] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)


def expired(
    copies: Sequence[StoredVersion], rule: RetentionRule, now: float
) -> list[StoredVersion]:
    """Return the copies of a page that a rule removes.

    Args:
        copies: all copies of one page, oldest first.
    """
    enough = len(copies) - (rule.keep_versions or len(copies))
    oldest_at = now - rule.keep_days * DAY_S if rule.keep_days is not None else -math.inf
    return [
        copy
        for index, (copy, later) in enumerate(itertools.pairwise(copies))
        if index > 0 and (index < enough or later.visited_at < oldest_at)
    ]


_PAGES: Final = """
SELECT version.page_id, site_id, page.version_id
FROM version CROSS JOIN page USING (page_id)
WHERE version.page_id > ? AND version.page_id <= ?
GROUP BY version.page_id HAVING count(*) > 2
"""

_COPIES: Final = """
SELECT version_id, visited_at, body_id FROM version
WHERE page_id = ? ORDER BY visited_at, version_id
"""

_PINNED: Final = "SELECT version_id FROM pin WHERE page_id = ?"


def plan(
    connection: apsw.Connection, rules: Mapping[int, RetentionRule], now: float, *, after: int
) -> RemovalPlan | None:
    """Return the next slice of work, None after the last page; changes nothing.

    Everything must be read on one snapshot.

    Args:
        rules: by site_id; a site without one keeps all copies.
        after: page_id of the last finished page.
    """
    last: int = connection.execute("SELECT ifnull(max(page_id), 0) FROM page").get
    if after >= last:
        return None
    slice_ = RemovalPlan(min(after + SLICE_PAGES, last))
    work = _Removal(connection, slice_)
    pages: list[tuple[Any, ...]] = connection.execute(_PAGES, (after, slice_.up_to)).fetchall()
    for page_id, site_id, newest_id in pages:
        if site_id not in rules:
            continue
        copies = _copies(connection, page_id)
        kept = {newest_id, connection.execute(_PINNED, (page_id,)).get}
        old = expired(copies, rules[site_id], now)
        found = [each for each in old if each.version_id not in kept]
        room = SLICE_VERSIONS - len(slice_.versions)
        work.add(page_id, copies, found[:room])
        if len(found) >= room:
            # the next slice starts with this page again, which may have more
            slice_.up_to = page_id - 1 if found else page_id
            break
    work.plan_bodies()
    return slice_


def plan_removal(connection: apsw.Connection, page_id: int) -> RemovalPlan:
    """Return the plan to remove every copy of a page, the first and the last included."""
    copies = _copies(connection, page_id)
    return plan_copies(connection, {page_id: copies})


def _copies(connection: apsw.Connection, page_id: int) -> list[StoredVersion]:
    return [StoredVersion(*row) for row in connection.execute(_COPIES, (page_id,))]


def plan_copies(
    connection: apsw.Connection, found: Mapping[int, Sequence[StoredVersion]]
) -> RemovalPlan:
    """Return the plan to remove some copies of pages, by page_id."""
    removal = RemovalPlan(0)
    work = _Removal(connection, removal)
    for page_id, given in found.items():
        work.add(page_id, _copies(connection, page_id), given)
    work.plan_bodies()
    return removal


class _Removal:
    """A slice that is being planned."""

    def __init__(self, connection: apsw.Connection, slice_: RemovalPlan) -> None:
        self._connection = connection
        self._slice = slice_
        self._links = DeltaChains(connection)
        self._gone: set[int] = set()
        self._heirs: dict[int, int] = {}

    def add(
        self, page_id: int, copies: Sequence[StoredVersion], found: Sequence[StoredVersion]
    ) -> None:
        """Add copies of a page; note for each of their bodies the next one that stays."""
        self._slice.versions.extend((page_id, copy) for copy in found)
        gone = {copy.version_id for copy in found}
        self._gone |= gone
        heir: int | None = None
        for copy in reversed(copies if found else ()):
            if copy.version_id not in gone:
                heir = copy.body_id
            if heir is not None:
                self._heirs[copy.body_id] = heir

    def plan_bodies(self) -> None:
        """Plan which bodies are deleted, and the new bases of deltas on them."""
        candidates = dict.fromkeys(copy.body_id for _, copy in self._slice.versions)
        doomed = {each for each in candidates if not self._is_used(each)}
        held: set[int] = set()
        for body_id in doomed:
            for delta_id in self._deltas_on(body_id):
                if delta_id not in doomed and not self._rebase(delta_id, doomed):
                    held.update(self._links.chain(body_id))
        # a delta is deleted before its base
        depths = {each: sum(1 for _ in self._links.chain(each)) for each in doomed - held}
        self._slice.bodies = sorted(depths, key=lambda each: -depths[each])

    def _is_used(self, body_id: int) -> bool:
        rows = self._connection.execute(
            "SELECT version_id FROM version WHERE body_id = ?", (body_id,)
        )
        return any(version_id not in self._gone for (version_id,) in rows)

    def _deltas_on(self, body_id: int) -> list[int]:
        rows = self._connection.execute("SELECT body_id FROM body WHERE base_id = ?", (body_id,))
        return [delta_id for (delta_id,) in rows]

    def _rebase(self, body_id: int, doomed: set[int]) -> bool:
        """Plan a new base for a delta; return False if it is damaged and stays."""
        try:
            content = self._links.content(body_id)
        except CorruptDatabaseError:
            return False
        self._slice.encodings.append(self._rebased(body_id, content, doomed))
        return True

    def _rebased(self, body_id: int, content: bytes, doomed: set[int]) -> Reencoding:
        links, whole = self._links, body.encode(content)
        old_base_id, stored_bytes = self._connection.execute(
            "SELECT base_id, length(data) FROM body WHERE body_id = ?", (body_id,)
        ).get
        base_id = self._new_base(body_id, old_base_id, doomed)
        encoding = Reencoding(body_id, whole.encoding, None, whole.data, 0)
        if base_id is not None:
            data = proven_delta(content, links.content(base_id))
            if body.saves(len(data), len(whole.data)):
                encoding = Reencoding(body_id, body.ZSTD, base_id, data, 0)
        links.set_base(body_id, encoding.base_id)
        return encoding._replace(saved_bytes=stored_bytes - len(encoding.data))

    def _new_base(self, body_id: int, old_base_id: int, doomed: set[int]) -> int | None:
        """Return the nearest remaining base, else the body of the next copy; None: neither."""
        for each in self._links.chain(old_base_id):
            if each not in doomed:
                return each
        heir = self._heirs.get(old_base_id)
        if heir is None or heir in doomed or not self._links.can_base_on(body_id, heir):
            return None
        return heir


_LOWER_CURSORS: Final = """
UPDATE meta SET value = newest FROM (SELECT ifnull(max(version_id), 0) AS newest FROM version)
WHERE key IN (?, ?, ?) AND CAST(value AS INTEGER) > newest
"""


def apply(connection: apsw.Connection, slice_: RemovalPlan) -> None:
    """Carry out a slice of work."""
    put_encodings(connection, slice_.encodings)
    connection.executemany(
        "UPDATE visit SET version_id = NULL WHERE page_id = ? AND visited_at = ?"
        " AND version_id = ?",
        [(page_id, copy.visited_at, copy.version_id) for page_id, copy in slice_.versions],
    )
    connection.executemany(
        "DELETE FROM version WHERE version_id = ?",
        [(copy.version_id,) for _, copy in slice_.versions],
    )
    if slice_.versions:
        # version_ids of removed newest copies are used again: cursors must not be past them.
        connection.execute(_LOWER_CURSORS, (delta.CURSOR, unanalysed.CURSOR, search_index.CURSOR))
    _delete_unused(connection, slice_.bodies)


def _delete_unused(connection: apsw.Connection, bodies: Iterable[int]) -> None:
    connection.executemany(
        "DELETE FROM body WHERE body_id = ?1"
        " AND NOT EXISTS (SELECT 1 FROM version WHERE version.body_id = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM body AS delta WHERE delta.base_id = ?1)",
        [(body_id,) for body_id in bodies],
    )
