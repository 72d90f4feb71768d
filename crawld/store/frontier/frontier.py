"""The stored frontier: the known URLs, and the order of their first visits.

The key of a URL is (host, 64-bit hash). On a hit its text is compared. A URL whose key another one
has (2^-64 a pair) takes a second key, from another hash; if that is taken, too, it is counted as a
refusal. One transaction of the only writer does it all.

In a large file a link to a URL that has no row waits for its verdict (`packed`, `verdicts`).

Caps are exact: the page counts of sites and hosts are columns of their rows (`page_counts`), and
pages of a host in shared blocks (`packed_shared`); they are read once per call.

Requisites (files that pages need to be shown) have the same key, but are counted, capped and listed
separately. A known page becomes a requisite if another page requires it and it was rejected for its
media type, or not fetched yet.

The order within a host is breadth-first: depth, then discovery. Unvisited pages are read in slices
from a partial index, so the first of a million cost as much as the first of ten.
"""

from __future__ import annotations

import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NamedTuple

import apsw

from crawld.core.page import PageState
from crawld.core.url import second_hash, split_url, url_hash
from crawld.store.engine import meta
from crawld.store.engine.in_parts import PART_ROWS, InParts, finish
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import packed_shared, page_counts, refusal, tombstone, verdicts
from crawld.store.frontier.caps import HOST_CAP, NO_CAPS, REQUISITE_CAP, SITE_CAP, Caps, NewPage
from crawld.store.frontier.packed import LinkBatch
from crawld.store.frontier.packed_block import PackedPage
from crawld.store.frontier.refusal import Refusal
from crawld.store.seen import pending, seen

COLLISION: Final = "collision"

SECOND_KEYS: Final = "second_keys"
"""Key in meta: there is a page under a second key, or was one."""


# Each link makes one: frozen, it would take 1.5 µs more, a sixth of the work of admission.
@dataclass(slots=True, kw_only=True)
class Discovery:
    """A URL that scope admitted; nobody changes it.

    Attributes:
        url_hash: its 64-bit hash as a signed integer.
        site_id: the site whose scope admitted it.
        origin: scheme, host and port, as `https://example.org:8443`.
        depth: links from a seed; a seed has 0.
        importance: weight of the page's freshness, > 0.
        seed: whether the operator named it.
        referrer_id: page_id of the page that linked to it.
        requisite: whether that page needs it to be shown.
    """

    url: str
    url_hash: int
    site_id: int
    host: str
    origin: str
    at: float
    depth: int = 0
    importance: float = 1.0
    seed: bool = False
    referrer_id: int | None = None
    requisite: bool = False

    @classmethod
    def of(
        cls, url: str, *, site_id: int, at: float, depth: int = 0, seed: bool = False
    ) -> Discovery:
        """Return the discovery of a canonical URL, with its hash, host and origin."""
        parts = split_url(url)
        return cls(
            url=url,
            url_hash=url_hash(url),
            site_id=site_id,
            host=parts.host,
            origin=parts.origin,
            at=at,
            depth=depth,
            seed=seed,
        )


_KNOWN: Final = """
SELECT page.url_hash, page.url, page.depth, page.site_id, page.seed, page.requisite, page_id
FROM carray(?1) AS wanted CROSS JOIN page
  ON page.host_id = ?2 AND page.url_hash = wanted.value
"""

_INSERT: Final = """
INSERT INTO page (site_id, host_id, origin_id, url_hash, state, depth, seed, importance,
                  discovered_at, referrer_id, requisite, url)
VALUES (?, ?, ?, ?, 'discovered', ?, ?, ?, ?, ?, ?, ?)
"""

_REVISE: Final = """
UPDATE page SET depth = min(depth, ?1), seed = max(seed, ?2), site_id = ?3
WHERE host_id = ?4 AND url_hash = ?5 RETURNING state, origin_id
"""

# A page that is required by another: rejected for its media type, or not fetched yet.
_BECOME_REQUISITE: Final = """
UPDATE page SET requisite = 1 WHERE page_id = ? AND seed = 0 AND version_id IS NULL
AND (state = 'discovered' OR state = 'visited' AND last_failure = 'wrong_type')
RETURNING state, origin_id, site_id, depth
"""


_Known = tuple[int, str, int, int, int, int, int]
"""url_hash, url, depth, site_id, seed, requisite, page_id of a known page; a plain tuple, since
each visit makes some 65."""


def discover(
    connection: apsw.Connection, found: Sequence[Discovery], caps: Caps = NO_CAPS
) -> list[NewPage]:
    """Add the URLs that are not known; count those that a cap or a collision refuses.

    In a large file (`Caps.packing`) links to URLs without a row wait for their verdict. Who finds
    more than may wait undivided does that work, too.

    A known page keeps its state; its depth can decrease, it can become a seed, and if its site is
    no longer configured it moves to the site that found it, and counts as new there.

    Args:
        found: URLs that scope admitted, in the order of their first visits.

    Returns:
        The new pages, in the order of `found` within each host.
    """
    return finish(discover_in_parts(connection, found, caps)).new


class Known(NamedTuple):
    """What the caller of `discover_in_parts` has read in the same transaction.

    Attributes:
        host_ids: host_id by name, of some hosts.
        tombstones: whether there is any tombstone; None: not read.
    """

    host_ids: Mapping[str, int] = {}
    tombstones: bool | None = None


NOTHING_KNOWN: Final = Known()


class Discovered(NamedTuple):
    """The result for the URLs of a page: the new pages, and the page_ids of all known now."""

    new: list[NewPage]
    known_ids: list[int]


def discover_in_parts(
    connection: apsw.Connection,
    found: Sequence[Discovery],
    caps: Caps = NO_CAPS,
    known: Known = NOTHING_KNOWN,
) -> InParts[Discovered]:
    """Do the same as `discover`, for pages or requisites, in parts."""
    if not found:
        return Discovered([], [])
    by_host: dict[str, list[Discovery]] = defaultdict(list)
    for one in found:
        by_host[one.host].append(one)
    call, done = _Admission(connection, caps, known), 0
    for name, group in by_host.items():
        for at in range(0, len(group), PART_ROWS):
            part = group[at : at + PART_ROWS]
            call.take(name, part)
            done += len(part)
            if done >= PART_ROWS:
                done = 0
                yield None
    call.count_requisites()
    if (links := call.waiting.links()) is not None:
        for queues in verdicts.offer(connection, links, caps):
            call.new += queues.pages()
        while pending.is_full(connection):
            yield partial(_divide, connection)
    yield from refusal.record_in_parts(connection, call.refused)
    yield from page_counts.count_moves_in_parts(connection, call.moves)
    return Discovered(call.new, call.known_ids)


def _divide(connection: apsw.Connection) -> None:
    seen.divide_some(connection)


class _Admission:
    """The state of one call of `discover`: pages added, URLs refused, and counts so far."""

    def __init__(self, connection: apsw.Connection, caps: Caps, known: Known) -> None:
        self.new: list[NewPage] = []
        self.refused: list[Refusal] = []
        self.moves: list[page_counts.Move] = []
        self.known_ids: list[int] = []
        self._connection = connection
        self._caps = caps
        self._origins: dict[str, int] = {}
        self._retired: dict[int, bool] = {}
        self._host_ids = known.host_ids
        self._second_keys: bool | None = None
        self._tombstones = known.tombstones
        if self._tombstones is None:
            self._tombstones = tombstone.any_exists(connection)
        self.waiting = LinkBatch(connection, caps.packing)
        # stored counts before this call, and what this call added to them
        self._before: dict[tuple[str, int], int] = {}
        self._added: dict[tuple[str, int], int] = defaultdict(int)

    def take(self, name: str, group: list[Discovery]) -> None:
        """Handle some discoveries of one host."""
        host_id = self._host_ids.get(name)
        if host_id is None:
            host_id = host_rows.ensure(self._connection, name, group[0].at)
        known = self._known(host_id, group)
        for one in group:
            if not self._take_one(host_id, one, known):
                self._take_second(host_id, replace(one, url_hash=second_hash(one.url)))

    def _take_second(self, host_id: int, one: Discovery) -> None:
        """Handle a discovery of which another URL has the key, under its second one."""
        known = self._known(host_id, [one])
        if not known:
            meta.put(self._connection, SECOND_KEYS, "1")
            self._second_keys = True
        if not self._take_one(host_id, one, known):
            self._refuse(one, COLLISION)

    def _has_second_key(self, host_id: int, one: Discovery) -> bool:
        """Return whether a URL is a page under its second key, and the other URL was purged."""
        if self._second_keys is None:
            self._second_keys = meta.get(self._connection, SECOND_KEYS) is not None
        second = replace(one, url_hash=second_hash(one.url))
        if not self._second_keys or one == second:
            return False
        return one.url in [row[1] for row in self._known(host_id, [second]).values()]

    def _take_one(self, host_id: int, one: Discovery, known: dict[int, _Known]) -> bool:
        """Handle a discovery; return False if another URL has its key."""
        old = known.get(one.url_hash)
        if old is None:
            if self._tombstones and self._has_second_key(host_id, one):
                return False
            self._add(host_id, one, known)
        elif old[1] != one.url:
            return False
        else:
            self._find_again(host_id, one, old)
        return True

    def _find_again(self, host_id: int, one: Discovery, old: _Known) -> None:
        """Update a known page from a later discovery."""
        self.known_ids.append(old[6])
        if one.depth < old[2] or one.site_id != old[3] or one.seed > old[4]:
            self._revise(host_id, one, old)
        if one.requisite and not old[5]:
            self._become_requisite(host_id, one, old[6])

    def _known(self, host_id: int, group: list[Discovery]) -> dict[int, _Known]:
        hashes = array.array("q", [one.url_hash for one in group])
        rows = self._connection.execute(_KNOWN, (apsw.carray(hashes), host_id))
        return {row[0]: row for row in rows}

    def count_requisites(self) -> None:
        """Store how many requisites this call added to each site."""
        self._connection.executemany(
            "UPDATE site SET requisite_count = requisite_count + ? WHERE site_id = ?",
            [(n, key) for (kind, key), n in self._added.items() if kind == "requisite"],
        )

    def _add(self, host_id: int, one: Discovery, known: dict[int, _Known]) -> None:
        """Add a page, or let its link wait, unless a cap or a tombstone refuses it."""
        if self._tombstones and tombstone.exists(self._connection, one.url):
            return  # not counted, since a refusal would show the URL
        reason = self._cap_reached(one, host_id)
        if reason:
            self._refuse(one, reason)
            return
        if not one.requisite and not one.seed and self.waiting.takes(one.site_id):
            self.waiting.add(host_id, one.depth, one.site_id, _as_packed(one))
            return
        page_id = self._insert(host_id, one)
        known[one.url_hash] = _as_known(one, page_id)
        self.known_ids.append(page_id)
        if one.requisite:
            self._added["requisite", one.site_id] += 1
        else:
            self.moves.append((one.site_id, host_id, None, PageState.DISCOVERED))
            self._added["site", one.site_id] += 1
            self._added["host", host_id] += 1

    def _insert(self, host_id: int, one: Discovery) -> int:
        """Insert the row of a new page; return its page_id."""
        origin_id = self._origin(host_id, one.origin)
        values = (one.site_id, host_id, origin_id, one.url_hash, one.depth, one.seed)
        more = (one.importance, one.at, one.referrer_id, one.requisite, one.url)
        self._connection.execute(_INSERT, (*values, *more))
        page_id = self._connection.last_insert_rowid()
        self.new.append(
            NewPage(page_id, host_id, origin_id, one.site_id, one.depth, one.url, one.requisite)
        )
        return page_id

    def _become_requisite(self, host_id: int, one: Discovery, page_id: int) -> None:
        row = self._connection.execute(_BECOME_REQUISITE, (page_id,)).fetchone()
        if row is None:
            return
        state, origin_id, site_id, depth = row
        self.moves.append((site_id, host_id, PageState(state), None))
        self._added["requisite", site_id] += 1
        self.new.append(NewPage(page_id, host_id, origin_id, site_id, depth, one.url, True))

    def _cap_reached(self, one: Discovery, host_id: int) -> str | None:
        site_id = one.site_id
        if one.requisite:
            most = self._caps.requisites.get(site_id)
            reached = most is not None and self._count("requisite", site_id) >= most
            return REQUISITE_CAP if reached else None
        per_site = self._caps.per_site.get(site_id)
        if per_site is not None and self._count("site", site_id) >= per_site:
            return SITE_CAP
        per_host = self._caps.per_host.get(site_id)
        if per_host is not None and self._count("host", host_id) >= per_host:
            return HOST_CAP
        return None

    def _count(self, table: str, key: int) -> int:
        if (table, key) not in self._before:
            before = self._connection.execute(_COUNTED[table], (key,)).get
            if table == "host":
                before += packed_shared.count_of_hosts(self._connection, [key]).get(key, 0)
            self._before[table, key] = before
        return self._before[table, key] + self._added[table, key]

    def _origin(self, host_id: int, origin: str) -> int:
        if origin not in self._origins:
            self._origins[origin] = host_rows.ensure_origin(self._connection, host_id, origin)
        return self._origins[origin]

    def _refuse(self, one: Discovery, reason: str) -> None:
        self.refused.append(Refusal(one.host, reason, one.url, one.at))

    def _revise(self, host_id: int, one: Discovery, old: _Known) -> None:
        """Update depth, seed and site of a known page from a later discovery."""
        _, _, depth, old_site_id, seed, requisite, page_id = old
        site_id = one.site_id if self._is_retired(old_site_id) else old_site_id
        if site_id == old_site_id and one.depth >= depth and one.seed <= seed:
            return
        values = (one.depth, one.seed, site_id, host_id, one.url_hash)
        [(name, origin_id)] = self._connection.execute(_REVISE, values)
        if site_id == old_site_id:
            return
        state = PageState(name)
        if requisite:
            self._added["requisite", old_site_id] -= 1
            self._added["requisite", site_id] += 1
        else:
            self.moves.append((old_site_id, host_id, state, None))
            self.moves.append((site_id, host_id, None, state))
        if state in (PageState.DISCOVERED, PageState.VISITED):
            page = NewPage(page_id, host_id, origin_id, site_id, one.depth, one.url)
            visited = state is PageState.VISITED
            self.new.append(page._replace(requisite=bool(requisite), was_visited=visited))

    def _is_retired(self, site_id: int) -> bool:
        if site_id not in self._retired:
            sql = "SELECT definition IS NULL FROM site WHERE site_id = ?"
            self._retired[site_id] = bool(self._connection.execute(sql, (site_id,)).get)
        return self._retired[site_id]


_COUNTED: Final = {
    "site": "SELECT page_count FROM site WHERE site_id = ?",
    "host": "SELECT page_count FROM host WHERE host_id = ?",
    "requisite": "SELECT requisite_count FROM site WHERE site_id = ?",
}


def _as_known(one: Discovery, page_id: int) -> _Known:
    return (one.url_hash, one.url, one.depth, one.site_id, one.seed, one.requisite, page_id)


def _as_packed(one: Discovery) -> PackedPage:
    return PackedPage(one.url, one.at, one.referrer_id or 0)


def counts(connection: apsw.Connection, site_id: int | None = None) -> dict[PageState, int]:
    """Return the number of pages in each state, of one site or of all; reads only counters."""
    columns = ", ".join(f"total({column})" for column in page_counts.COLUMNS.values())
    where = "" if site_id is None else " WHERE site_id = ?"
    row = connection.execute(
        f"SELECT {columns} FROM site{where}", () if site_id is None else (site_id,)
    ).get
    return {state: int(pages) for state, pages in zip(page_counts.COLUMNS, row, strict=True)}
