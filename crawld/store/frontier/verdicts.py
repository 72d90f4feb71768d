"""Verdicts on links that waited: new URLs become packed pages, known ones may come nearer.

`settle` is the turn of a repository (`crawld.store.seen.seen`), in one transaction. Caps and
tombstones are checked for new URLs, in order of arrival: those that are refused stay unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

import apsw
import numpy as np
import numpy.typing as npt

from crawld.core.page import PageState
from crawld.core.seen.judge import Flags
from crawld.core.seen.keys import UrlKeys, by_repository
from crawld.core.seen.place import MAX_SITE, NOWHERE, depths_of, sites_of
from crawld.core.seen.run import Positions
from crawld.core.seen.texts import TextBlock, decoded
from crawld.core.url import split_url
from crawld.store.frontier import packed, packed_shared, page_counts, refusal, tombstone
from crawld.store.frontier.caps import HOST_CAP, PACKED, SITE_CAP, Caps, NewPage
from crawld.store.frontier.packed_block import Columns
from crawld.store.frontier.refusal import Refusal
from crawld.store.frontier.shared_entries import SharedEntries, begins_of, bounds_of
from crawld.store.seen import pending, seen
from crawld.store.seen.links import Links
from crawld.store.seen.seen import RepositoryTurn, SeenFile

FEW_HOSTS: Final = 64
"""New pages of so many hosts that are told at once go to blocks of their queues: a visit's links
are on few hosts, mostly its own."""


class NewQueues(NamedTuple):
    """Queues that have new packed pages, as columns: a turn has thousands.

    Attributes:
        urls: one of each.
    """

    hosts: npt.NDArray[np.int64]
    sites: npt.NDArray[np.int64]
    depths: npt.NDArray[np.int64]
    urls: TextBlock

    def parts(self, size: int) -> Iterator[NewQueues]:
        """Yield the queues, so many at a time."""
        for start in range(0, len(self.hosts), size):
            end = min(start + size, len(self.hosts))
            of = slice(start, end)
            urls = self.urls.part(start, end)
            yield NewQueues(self.hosts[of], self.sites[of], self.depths[of], urls)

    def pages(self) -> list[NewPage]:
        """Return one page of each."""
        columns = self.hosts.tolist(), self.sites.tolist(), self.depths.tolist()
        return [
            NewPage(PACKED, host_id, 0, site_id, depth, url)
            for host_id, site_id, depth, url in zip(*columns, self.urls.decoded(), strict=True)
        ]


class Settled(NamedTuple):
    """What a turn concluded.

    Attributes:
        judged: how many links had their verdict.
        queues: where new packed pages are.
    """

    judged: int
    queues: tuple[NewQueues, ...]

    @property
    def new(self) -> list[NewPage]:
        """Return one page of each site and host that has new packed pages."""
        pages = (page for queues in self.queues for page in queues.pages())
        return list({(page.host_id, page.site_id): page for page in pages}.values())


class _Entries(NamedTuple):
    """Entries of blocks: positions of links, and the site and depth of each."""

    at: Positions
    sites: npt.NDArray[np.int64]
    depths: npt.NDArray[np.int64]

    def select(self, positions: Positions) -> _Entries:
        return _Entries(self.at[positions], self.sites[positions], self.depths[positions])


def offer(connection: apsw.Connection, links: Links, caps: Caps) -> list[NewQueues]:
    """Let links wait for their verdict; return the queues that have new pages already.

    While the keys of the file are in memory (`Packing.keys`) new URLs are packed at once.
    """
    file = SeenFile.of(connection)
    memory = None if caps.packing is None else caps.packing.keys
    if memory is None or memory.keys is None:
        seen.put(connection, file, links)
        return []
    keys = file.keys(links.texts)
    new = memory.take_new(keys)
    accepted = _accepted(connection, links, new, caps)
    packed_now, refused = new[accepted], new[~accepted]
    links.facts["told"][packed_now] = True
    added = _enter_new(connection, links, packed_now, keys.take(packed_now))
    if len(refused):
        waiting = np.delete(np.arange(len(links)), refused)
        links, keys = links.select(waiting), keys.take(waiting)
    if len(links):
        seen.put(connection, file, links, keys)
    return added


def settle(connection: apsw.Connection, repository: int, caps: Caps) -> Settled:
    """Give the links of a repository their verdict."""
    turn = seen.begin_turn(connection, repository, _retired(connection))
    verdicts, links = turn.verdicts, turn.waiting.links
    untold, found_by = verdicts.new_told < 0, _finders(turn)
    again = found_by & (verdicts.before == NOWHERE)
    # New URLs that nobody was told of, and forgotten ones.
    at = np.concatenate([verdicts.new[untold], verdicts.changed_by[again]])
    accepted = _accepted(connection, links, at, caps)
    new, changed = np.ones(len(untold), bool), found_by.copy()
    first_again = int(untold.sum())
    new[untold], changed[again] = accepted[:first_again], accepted[first_again:]
    seen.end_turn(connection, turn, new=new, changed=changed)
    at = at[accepted]
    found = _Entries(
        at, links.facts["site"][at].astype(np.int64), links.facts["depth"][at].astype(np.int64)
    )
    added = _enter(connection, links, found, repository)
    _count_on_sites(connection, found.sites)
    moved = _move(connection, turn)
    return Settled(len(links), (added, moved))


def _finders(turn: RepositoryTurn) -> Flags:
    """Return which changed places another link than one that was told has found.

    What was told is packed where it was found: if the URL was forgotten since, it stays so.
    """
    told = turn.waiting.links.facts["told"]
    return np.asarray(~told[turn.verdicts.changed_by])


def settle_all(connection: apsw.Connection, caps: Caps) -> Settled:
    """Give every link that waits its verdict."""
    while seen.divide_some(connection):
        pass
    turns = [settle(connection, each.repository, caps) for each in pending.backlogs(connection)]
    return Settled(
        sum(turn.judged for turn in turns), tuple(each for turn in turns for each in turn.queues)
    )


def _retired(connection: apsw.Connection) -> Flags:
    """Return by site_id whether no config names a site."""
    retired = np.zeros(MAX_SITE + 1, bool)
    for (site_id,) in connection.execute("SELECT site_id FROM site WHERE definition IS NULL"):
        if site_id <= MAX_SITE:
            retired[site_id] = True
    return retired


# --- tombstones and caps -------------------------------------------------------------------------


def _accepted(connection: apsw.Connection, links: Links, at: Positions, caps: Caps) -> Flags:
    """Return which new URLs become pages; those that a cap refuses are counted."""
    accepted = np.ones(len(at), bool)
    if tombstone.any_exists(connection):
        urls = map(decoded, links.texts.take(at))
        accepted[:] = [not tombstone.exists(connection, url) for url in urls]
    if not caps.per_site and not caps.per_host:
        return accepted
    left = np.flatnonzero(accepted)
    left = left[
        np.lexsort((at[left], links.facts["site"][at[left]], links.facts["host"][at[left]]))
    ]
    room = _Room(connection, caps, np.unique(links.facts["host"][at[left]]).tolist())
    refused = []
    hosts, sites = links.facts["host"][at[left]], links.facts["site"][at[left]]
    for start, end in bounds_of(hosts, sites):
        taken, reason = room.take(int(hosts[start]), int(sites[start]), end - start)
        if reason is not None:
            beyond = left[start + taken : end]
            accepted[beyond] = False
            refused.append(_refusal(links, at[beyond], reason))
    refusal.record(connection, refused)
    return accepted


def _refusal(links: Links, at: Positions, reason: str) -> Refusal:
    url = decoded(links.texts.take(at[-1:])[0])
    last = float(links.facts["found_at"][at[-1]])
    return Refusal(split_url(url).host, reason, url, last, len(at))


class _Room:
    """How many pages the caps of sites and hosts leave."""

    def __init__(self, connection: apsw.Connection, caps: Caps, hosts: list[int]) -> None:
        self._connection = connection
        self._caps = caps
        self._of_site: dict[int, int] = {}
        self._of_host: dict[int, int] = defaultdict(int)
        if caps.per_host:
            self._of_host.update(packed_shared.count_of_hosts(connection, hosts))

    def take(self, host_id: int, site_id: int, wanted: int) -> tuple[int, str | None]:
        """Take room for pages; return for how many, and why not for all."""
        taken, reason = wanted, None
        per_site = self._caps.per_site.get(site_id)
        if per_site is not None:
            if site_id not in self._of_site:
                sql = "SELECT page_count FROM site WHERE site_id = ?"
                self._of_site[site_id] = self._connection.execute(sql, (site_id,)).get
            room = max(per_site - self._of_site[site_id], 0)
            if room < taken:
                taken, reason = room, SITE_CAP
        per_host = self._caps.per_host.get(site_id)
        if per_host is not None:
            sql = "SELECT page_count FROM host WHERE host_id = ?"
            known = self._connection.execute(sql, (host_id,)).get + self._of_host[host_id]
            room = max(per_host - known, 0)
            if room < taken:
                taken, reason = room, HOST_CAP
        if per_site is not None:
            self._of_site[site_id] += taken
        self._of_host[host_id] += taken
        return taken, reason


# --- entries of blocks ---------------------------------------------------------------------------


def _enter_new(
    connection: apsw.Connection, links: Links, at: Positions, keys: UrlKeys
) -> list[NewQueues]:
    """Add and count the entries of new pages.

    Args:
        at: their links, ascending.
        keys: of these.
    """
    if not len(at):
        return []
    facts = links.facts
    sites, depths = facts["site"][at].astype(np.int64), facts["depth"][at].astype(np.int64)
    _count_on_sites(connection, sites)
    if len(set(facts["host"][at].tolist())) <= FEW_HOSTS:
        return [_enter(connection, links, _Entries(at, sites, depths))]
    order, parts = by_repository(keys)
    return [
        _enter(connection, links, _Entries(at, sites, depths).select(order[start:end]), repository)
        for repository, start, end in parts
    ]


def _count_on_sites(connection: apsw.Connection, sites: npt.NDArray[np.int64]) -> None:
    """Count new packed pages on their sites; their hosts: see `packed_shared`."""
    counts = np.bincount(sites)
    found = np.flatnonzero(counts)
    pairs = zip(found.tolist(), counts[found].tolist(), strict=True)
    page_counts.count_discovered(connection, pairs, ())


def _enter(
    connection: apsw.Connection, links: Links, entries: _Entries, repository: int | None = None
) -> NewQueues:
    """Add entries to their queues, in order of arrival.

    Args:
        repository: of all of them, which go to shared blocks; None: to blocks of their queues.
    """
    hosts = links.facts["host"][entries.at]
    order = np.lexsort((entries.at, entries.depths, entries.sites, hosts))
    hosts, sites, depths = hosts[order], entries.sites[order], entries.depths[order]
    chosen = links.select(entries.at[order])
    columns = Columns(chosen.texts, chosen.facts["found_at"], chosen.facts["referrer"])
    found = SharedEntries(hosts, sites, depths, columns)
    if repository is None:
        packed_shared.append_own(connection, found)
    else:
        packed_shared.add(connection, repository, found)
    begins = begins_of(hosts, sites)
    return NewQueues(hosts[begins], sites[begins], depths[begins], chosen.texts.picked(begins))


def _move(connection: apsw.Connection, turn: RepositoryTurn) -> NewQueues:
    """Enter known pages again that were found nearer, or by another site."""
    verdicts, links = turn.verdicts, turn.waiting.links
    told = verdicts.new_told >= 0
    told[told] = verdicts.new_places[told] != links.places[verdicts.new_told[told]]
    known = _finders(turn) & (verdicts.before != NOWHERE)
    at = np.concatenate([verdicts.new[told], verdicts.changed_by[known]])
    before = np.concatenate([links.places[verdicts.new_told[told]], verdicts.before[known]])
    after = np.concatenate([verdicts.new_places[told], verdicts.after[known]])
    # A place has no large depths; one that it has is that of the nearest link, or smaller.
    is_own = depths_of(after) == depths_of(links.places[at])
    depths = np.where(is_own, links.facts["depth"][at], depths_of(after)).astype(np.int64)
    entered = _enter(connection, links, _Entries(at, sites_of(after), depths), turn.repository)
    hosts = links.facts["host"][at]
    for host_id, site_id, count in _by_host_and_site(hosts, sites_of(before)):
        packed.add_void(connection, host_id, site_id, count)
        page_counts.count_discovered(connection, (), [(host_id, -count)])  # entered once more
    discovered = PageState.DISCOVERED
    columns = hosts.tolist(), sites_of(before).tolist(), sites_of(after).tolist()
    moved = [each for each in zip(*columns, strict=True) if each[1] != each[2]]
    moves: list[page_counts.Move]
    moves = [(old, host_id, discovered, None) for host_id, old, _ in moved]
    moves += [(new, host_id, None, discovered) for host_id, _, new in moved]
    page_counts.count_moves(connection, moves)
    return entered


def _by_host_and_site(
    hosts: Positions, sites: npt.NDArray[np.int64]
) -> Iterator[tuple[int, int, int]]:
    """Yield how many links there are of each host and site."""
    order = np.lexsort((sites, hosts))
    hosts, sites = hosts[order], sites[order]
    for start, end in bounds_of(hosts, sites):
        yield int(hosts[start]), int(sites[start]), end - start
