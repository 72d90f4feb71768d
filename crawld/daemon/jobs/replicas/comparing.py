"""Compare the pages of replicas with their twins, and store the results.

Pages of several replicas are read and written together, since most replicas have few of them. A
page that differs from that of the canonical host, or that it does not have, is compared with those
of the alternates (`store/replica/alternates.py`), until one agrees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import apsw

from crawld.core.replica.agreement import MANY_PATHS, PageVerdict
from crawld.core.replica.owners import without_port
from crawld.core.revisit.due import AT_ONCE
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.jobs.replicas.resting import REST_FACTOR, WRITTEN_AT_ONCE
from crawld.daemon.jobs.replicas.twin_texts import TwinTexts
from crawld.daemon.pacing import Pace, PacedReader, parts_of
from crawld.store.frontier import server
from crawld.store.replica import alternates, replica, twin, twin_facts
from crawld.store.replica import pages as replica_pages
from crawld.store.replica.replica import ReplicaRow
from crawld.store.replica.twin import ReleasedPage, TwinRow
from crawld.store.replica.twin_facts import TwinFacts

HOSTS_AT_ONCE = 200
"""Hosts whose texts on many paths are looked for at once."""

Wanted = tuple[ReplicaRow, Sequence[int]]
"""A replica and pages of it."""


class _Twins(NamedTuple):
    """Pages of a replica with their twins on one server: its name, and the origins of both."""

    host: str
    origins: tuple[str, ...]
    pages: list[TwinFacts]


class _Facts(NamedTuple):
    """What is known of some pages of a replica.

    Attributes:
        wanted: page_ids of all of them.
        twins: those of which the canonical host has a copy.
        released: those that wait to be compared.
        elsewhere: those that were last compared with another host than the canonical one.
    """

    row: ReplicaRow
    wanted: Sequence[int]
    twins: _Twins
    released: dict[int, ReleasedPage]
    elsewhere: frozenset[int]


class _Question(NamedTuple):
    """Pages of a replica to compare with those of an alternate; some of them agreed with one."""

    server_id: int
    alternate_id: int
    page_ids: Sequence[int]
    agreed: frozenset[int]


class _Compared(NamedTuple):
    """Some pages of a replica, and the results of their comparisons by page_id."""

    facts: _Facts
    rows: dict[int, TwinRow]

    def question(self, turn: int) -> _Question | None:
        """Return what to compare with the next alternate; None: nothing more."""
        row = self.facts.row
        if not row.alternates or turn >= len(row.alternate_ids):
            return None
        left = [page for page in self.facts.wanted if self._is_open(page)]
        if not left:
            return None
        return _Question(row.server_id, row.alternate_ids[turn], left, self.facts.elsewhere)

    def _is_open(self, page_id: int) -> bool:
        """Whether a page may rest under an alternate.

        Its canonical page differs for certain, or there is none; one that rested so far may go on.
        """
        row = self.rows.get(page_id)
        if row is None or row.verdict is PageVerdict.DIFFERS:
            return True
        return row.verdict is PageVerdict.UNKNOWN and page_id in self.facts.elsewhere

    def add(self, found: Mapping[int, TwinRow]) -> None:
        """Add comparisons with an alternate that agree, or that end an earlier agreement."""
        for page_id, row in found.items():
            is_first = page_id not in self.rows and page_id in self.facts.elsewhere
            if row.verdict is PageVerdict.AGREES or is_first:
                self.rows[page_id] = row._replace(instead_of=self.facts.row.canonical_id)


class ReplicaComparing(BackgroundWork):
    """Compares the pages of replicas with their twins."""

    def __init__(self, context: CrawlContext) -> None:
        super().__init__(context)
        self._paced = PacedReader(context.database, REST_FACTOR)
        self._texts = TwinTexts(context)

    async def compare(self, wanted: Iterable[Wanted]) -> dict[int, int]:
        """Compare pages of replicas, and store the results; return how many by server_id."""
        compared: dict[int, int] = {}
        for part in _together(wanted, twin_facts.AT_ONCE):
            # A visit of a twin while pages are compared is later than their comparison.
            began_at = self._clock.now()
            some = [
                _Compared(facts, await self._compare(facts.row.server_id, facts.twins, began_at))
                for facts in await self._paced.read(_read_facts, part)
            ]
            await self._compare_alternates(some, began_at)
            results = [(one.facts, [*one.rows.values()]) for one in some if one.rows]
            for facts, rows in results:
                server_id = facts.row.server_id
                compared[server_id] = compared.get(server_id, 0) + len(rows)
            if results:
                await self._database.write(_put_compared, results)
            for facts, rows in results:
                self._visit_twins(facts, rows)
        for hosts in parts_of(list(compared), HOSTS_AT_ONCE):
            repeated = await self._paced.read(_repeated, hosts)
            for pages in parts_of(repeated, WRITTEN_AT_ONCE):
                await self._database.write(twin.mark_repeated, pages)
        return compared

    async def _compare_alternates(self, some: Sequence[_Compared], began_at: float) -> None:
        """Compare pages with those of alternates, the first of each replica first."""
        turn = 0
        while wanted := [
            (one, question) for one in some if (question := one.question(turn)) is not None
        ]:
            turn += 1
            found = await self._paced.read(_read_alternates, [each for _, each in wanted])
            for (one, _), twins in zip(wanted, found, strict=True):
                one.add(await self._compare(one.facts.row.server_id, twins, began_at))

    async def _compare(self, server_id: int, twins: _Twins, began_at: float) -> dict[int, TwinRow]:
        rows: dict[int, TwinRow] = {}
        pace = Pace(REST_FACTOR)
        for one in twins.pages:
            found = await self._texts.compare(one, twins.origins, twins.host)
            await pace.rest()
            if found is not None:
                rows[one.page.page_id] = TwinRow(
                    one.page.page_id,
                    server_id,
                    one.twin.page_id,
                    found.comparison.verdict,
                    found.digest,
                    one.page.last_visit_at,
                    began_at,
                    found.comparison.lag_s,
                )
        return rows

    def _visit_twins(self, facts: _Facts, rows: Sequence[TwinRow]) -> None:
        """Let the twins of sampled pages be visited next, which decides the comparisons."""
        waiting = [
            facts.released.get(row.page_id)
            for row in rows
            if _waits_for_twin(row) and row.page_id not in facts.elsewhere
        ]
        host = self._state.hosts.get(without_port(facts.row.canonical_host))
        if host is None or not any(waiting):
            return
        for page in waiting:
            if page is not None and page.twin_site_id in self._state.sites:
                self._state.pages_of(host, page.twin_site_id).visit_until(page.twin_id, AT_ONCE)
        self._state.schedule.wake(host.slot)


def _together(wanted: Iterable[Wanted], pages: int) -> Iterator[list[Wanted]]:
    """Yield pages of replicas that are compared together."""
    some: list[Wanted] = []
    left = pages
    for row, page_ids in wanted:
        begin = 0
        while begin < len(page_ids):
            part = page_ids[begin : begin + left]
            some.append((row, part))
            begin, left = begin + len(part), left - len(part)
            if not left:
                yield some
                some, left = [], pages
    if some:
        yield some


def _read_facts(connection: apsw.Connection, wanted: Sequence[Wanted]) -> list[_Facts]:
    """Read the facts of pages, on a reader's thread."""
    return [
        _Facts(
            row,
            page_ids,
            _Twins(
                row.canonical_host,
                replica_pages.origins_of_pair(connection, (row.server_id, row.canonical_id)),
                twin_facts.twin_facts(connection, page_ids, row.canonical_id),
            ),
            twin.released_pages(connection, page_ids),
            alternates.elsewhere(connection, page_ids if row.alternates else (), row.canonical_id),
        )
        for row, page_ids in wanted
    ]


def _read_alternates(connection: apsw.Connection, questions: Sequence[_Question]) -> list[_Twins]:
    """Read pages of replicas with their twins on alternates, on a reader's thread."""
    names = server.names(connection, {one.alternate_id for one in questions})
    return [
        _Twins(
            names.get(one.alternate_id, ""),
            replica_pages.origins_of_pair(connection, (one.server_id, one.alternate_id)),
            twin_facts.alternate_facts(
                connection, one.page_ids, one.alternate_id, unlike_too=one.agreed
            ),
        )
        for one in questions
    ]


def _repeated(connection: apsw.Connection, server_ids: Sequence[int]) -> list[int]:
    return [
        page_id
        for server_id in server_ids
        for page_id in twin.repeated_pages(connection, server_id, MANY_PATHS)
    ]


def _put_compared(
    connection: apsw.Connection, results: Sequence[tuple[_Facts, Sequence[TwinRow]]]
) -> None:
    """Store comparisons; those of released pages are results of the sample."""
    for facts, rows in results:
        twin.put(connection, rows)
        sampled = _sampled(facts.released, rows)
        if sampled:
            lags = [one.lag_s for one in sampled if one.lag_s is not None]
            replica.put_sample(
                connection,
                facts.row.server_id,
                sampled=len(sampled),
                agreed=sum(one.verdict is PageVerdict.AGREES for one in sampled),
                lag_s=max(lags, default=None),
            )


def _sampled(released: Mapping[int, ReleasedPage], rows: Iterable[TwinRow]) -> list[TwinRow]:
    return [row for row in rows if row.page_id in released and not _waits_for_twin(row)]


def _waits_for_twin(row: TwinRow) -> bool:
    """Whether the next visit of the twin decides; a page that is behind waits for its own."""
    return row.verdict is PageVerdict.UNKNOWN and row.lag_s is None
