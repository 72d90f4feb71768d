"""The `replicas` job: find hosts with the same pages, and let those rest that agree.

A run: read new pages ▸ redirects and canonical links ▸ judge all pairs in a thread ▸ decide ▸
store ▸ compare the pages of replicas that were visited, suspend, resume and sample them ▸ request
visits that may decide a pair. Reads and writes are sliced, with rests between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import apsw
import structlog

from crawld.core.replica.owners import without_port
from crawld.core.replica.verdict import PROBED_PATHS, PairEvidence, pages_to_probe
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.replica_leases import ReplicaLeases
from crawld.daemon.jobs.replicas.copies import CopyReader
from crawld.daemon.jobs.replicas.decision import Decision
from crawld.daemon.jobs.replicas.judged import JudgedPair
from crawld.daemon.jobs.replicas.ledger import PairLedger
from crawld.daemon.jobs.replicas.plan import PlanInput, pair_of
from crawld.daemon.jobs.replicas.planner import Planner
from crawld.daemon.jobs.replicas.profiles import HostProfiles
from crawld.daemon.jobs.replicas.resting import REST_FACTOR
from crawld.daemon.jobs.replicas.sampling import ReplicaSampling
from crawld.daemon.jobs.replicas.search import ReplicaSearch, SearchResult, same_path_redirects
from crawld.daemon.jobs.replicas.storm import StormLimit
from crawld.daemon.jobs.runner import JITTER_SHARE
from crawld.daemon.pacing import LoopSlices, PacedReader, parts_of
from crawld.store.replica import alternates, inputs, replica
from crawld.store.replica import pages as replica_pages
from crawld.store.replica.inputs import Cursors, SourceHost
from crawld.store.replica.pair import Pair
from crawld.store.replica.replica import RESTING, ReplicaRow

log = structlog.get_logger(__name__)

SLICE: Final = 2_000
"""Pages read in one query."""

DECISIONS_AT_ONCE: Final = 50
"""Decisions written at once."""

REQUESTED_PAIRS: Final = 500
"""Pairs whose pages are requested in one run."""


class ReplicasJob(BackgroundWork):
    """The `replicas` job."""

    name = "replicas"

    def __init__(self, context: CrawlContext, leases: ReplicaLeases) -> None:
        super().__init__(context)
        self._paced = PacedReader(context.database, REST_FACTOR)
        self._search = ReplicaSearch()
        self._sampling = ReplicaSampling(context, leases)
        self._cursors: Cursors | None = None
        self._copies = CopyReader(self._paced, context.analyser.marks)
        self._planner = Planner()
        self._ledger = PairLedger(context.database, context.workers)
        self._profiles = HostProfiles(context, self._search, self._paced)
        self._asked: dict[Pair, PairEvidence] = {}
        self._counts = {"pages": 0, "pairs": 0, "pruned": 0, "held": 0, "withdrawn": 0, "asked": 0}

    @property
    def every_s(self) -> float:
        """Pause between two runs, seconds."""
        return self._config().replicas.every_s

    async def progress(self) -> dict[str, int]:
        """Return counts of pages, pairs and replicas by status."""
        return {**self._counts, "pages": self._search.pages}

    async def run(self) -> str:
        """Search for replicas once; does nothing in a one-off mirror."""
        if self._state.settings.once:
            return "skipped in a one-off mirror"
        if len(await self._database.read(inputs.hosts)) < 2:
            return "fewer than two hosts"  # pages that are read now would wait in memory for ever
        await self._read_pages()
        hosts = await self._database.read(inputs.hosts)
        rows = await self._database.read(replica.list_replicas)
        found = await self._judge(hosts, rows)
        known, decided = await self._decide(hosts, found, rows)
        rows = await self._list(rows, has_changed=decided)
        rows = await self._list(rows, has_changed=await self._sampling.check(rows))
        known = replace(known, replicas=rows)
        if await self._workers.run(self._planner.is_overdue, known, abandon_on_cancel=True):
            planned = await self._workers.run(self._planner.plan, known, abandon_on_cancel=True)
            decided = await self._apply(planned, rows, self._clock.now())
            rows = await self._list(rows, has_changed=decided)
            rows = await self._list(rows, has_changed=await self._sampling.check(rows))
        await self._sampling.grant_leases(rows)
        await self._request_visits(found, rows)
        self._counts["pairs"] = len(found.pairs)
        for status in ("pruned", "held", "withdrawn"):
            self._counts[status] = sum(row.status == status for row in rows)
        return _summary(found, self._counts)

    async def _list(self, rows: list[ReplicaRow], *, has_changed: bool) -> list[ReplicaRow]:
        """Return all replicas; `rows` are those before what may have changed them."""
        return await self._database.read(replica.list_replicas) if has_changed else rows

    # --- reading ---------------------------------------------------------------------------------

    async def _read_pages(self) -> None:
        """Pass new pages to the search; all pages in the first run."""
        up_to = await self._database.read(inputs.cursors)
        if self._cursors is None:
            after = 0
            while pages := await self._paced.read(inputs.pages_after, after, SLICE):
                await self._workers.run(self._search.add, pages, abandon_on_cancel=True)
                after = pages[-1].page_id
        else:
            last = self._cursors
            while last != up_to:
                step = Cursors(
                    min(last.visit_id + SLICE, up_to.visit_id),
                    min(max(last.version_id, 0) + SLICE, up_to.version_id),
                )
                pages = await self._paced.read(inputs.pages_between, last, step)
                self._profiles.forget({page.server_id for page in pages})
                await self._workers.run(self._search.add, pages, abandon_on_cancel=True)
                last = step
        self._cursors = up_to

    async def _judge(self, hosts: list[SourceHost], rows: Sequence[ReplicaRow]) -> SearchResult:
        # What takes longer with more hosts runs in a thread.
        numbers, redirects = await self._database.read(_redirects, hosts)
        suspects = await self._workers.run(self._search.suspects, redirects, abandon_on_cancel=True)
        self._search.set_links(await self._copies.read(suspects))
        stale = {row.server_id: row.since for row in rows if row.status == "withdrawn"}
        stored = await self._ledger.load()
        return await self._workers.run(
            lambda: self._search.judge(
                hosts,
                redirects,
                self._copies.canonicals(numbers),
                stale_before=stale,
                stored=stored.keys(),
            ),
            abandon_on_cancel=True,
        )

    # --- deciding --------------------------------------------------------------------------------

    async def _decide(
        self, hosts: list[SourceHost], found: SearchResult, rows: list[ReplicaRow]
    ) -> tuple[PlanInput, bool]:
        """Decide on all hosts; return what was known, and whether a decision is new."""
        now = self._clock.now()
        stored = await self._ledger.load()
        # What takes longer with more pairs runs in threads.
        fresh, kept, evidence = await self._workers.run(
            _split_pairs, found.pairs, stored, rows, self._ledger.words, abandon_on_cancel=True
        )
        operator_words = self._ledger.words
        pairs = await self._workers.run(_pairs, evidence, operator_words, rows)
        released = await self._database.read(replica.all_allowed)
        known = PlanInput(
            evidence=evidence,
            operator_words=operator_words,
            replicas=rows,
            crowded=await self._profiles.crowded(hosts),
            profiles=await self._profiles.of(hosts, pairs),
            hosts=len(hosts),
            limit=StormLimit(
                share=None if released else self._config().replicas.storm_share,
                since=now - (1.0 - JITTER_SHARE) * self.every_s,
                prune=self._config().replicas.prune,
            ),
        )
        await self._ledger.put(fresh, kept, now)
        planned = await self._workers.run(self._planner.plan, known, abandon_on_cancel=True)
        has_news = await self._apply(planned, rows, now)
        if released:
            await self._database.write(replica.allow_all, allowed=False)
        return known, has_news

    async def _apply(self, decisions: list[Decision], rows: list[ReplicaRow], now: float) -> bool:
        """Store what decisions change; return whether they change anything."""
        # There are thousands of both at first: they are compared in a thread.
        news = await self._workers.run(_changes, decisions, rows, abandon_on_cancel=True)
        for row in news.resumed:
            await self._sampling.resume(row)
        for row in news.dropped:
            await self._sampling.forget(row.server_id)
            await self._database.write(replica.drop_replica, row.server_id)
            log.info("replica_dropped", host=row.host, canonical=row.canonical_host)
        look_at = now + self._config().replicas.first_sample_s
        slices = LoopSlices()
        for part in parts_of(news.changed, DECISIONS_AT_ONCE):
            for decision, row_before in part:
                _log_status(decision, row_before)
                await slices.pause()
            await self._database.write(_put_decisions, [each for each, _ in part], now, look_at)
        return any(news)

    async def _request_visits(self, found: SearchResult, rows: list[ReplicaRow]) -> None:
        """Request early visits of pages that may decide a pair, or rest if their twin agrees."""
        wanted = await self._workers.run(
            _pairs_to_ask, found, rows, self._asked, abandon_on_cancel=True
        )
        if not wanted:
            return
        self._asked |= {pair: evidence for pair, (evidence, _) in wanted.items()}
        names = {
            server_id: name
            for pair, (evidence, _) in wanted.items()
            for server_id, name in zip(pair, evidence.names, strict=True)
        }
        for (one, other), (_, paths) in wanted.items():
            pages = await self._paced.read(replica_pages.shared_unvisited, one, other, paths)
            for place in dict.fromkeys((page.server_id, page.site_id) for page in pages):
                server_id, site_id = place
                host = self._state.hosts.get(without_port(names[server_id]))
                if host is not None and site_id in self._state.sites:
                    first = [page.page_id for page in pages if page[:2] == place]
                    self._state.pages_of(host, site_id).add_new(first, soon=True)
            self._counts["asked"] += len(pages)


class _Changes(NamedTuple):
    """What decisions change.

    Attributes:
        resumed: replicas whose resting pages return.
        dropped: replicas of which nothing is decided any more.
        changed: decisions that are not stored yet, each with the stored row of its host.
    """

    resumed: list[ReplicaRow]
    dropped: list[ReplicaRow]
    changed: list[tuple[Decision, ReplicaRow | None]]


def _changes(decisions: Sequence[Decision], rows: Sequence[ReplicaRow]) -> _Changes:
    before = {row.server_id: row for row in rows}
    after = {decision.server_id: decision for decision in decisions}
    found = _Changes([], [], [])
    for server_id, row in before.items():
        decision = after.get(server_id)
        moved = decision is None or decision.canonical_id != row.canonical_id
        if row.status in RESTING and (moved or (decision and decision.status not in RESTING)):
            found.resumed.append(row)
        if decision is None and row.status != "withdrawn":
            found.dropped.append(row)
    for each in decisions:
        stored = before.get(each.server_id)
        if not _is_stored(each, stored):
            found.changed.append((each, stored))
    return found


def _split_pairs(
    judged: Sequence[JudgedPair],
    stored: Mapping[Pair, PairEvidence],
    rows: Iterable[ReplicaRow],
    decided: Iterable[Pair],
) -> tuple[dict[Pair, JudgedPair], dict[Pair, PairEvidence], dict[Pair, PairEvidence]]:
    """Return the judged pairs that count, the stored ones that stay as they are, and all evidence.

    The texts of resting pages age, so that their hosts keep the evidence for which they rest. How
    rare these texts are is taken from now: more hosts that show them may have been met since.

    Args:
        decided: pairs that the operator has decided; the search may not know them.
    """
    resting = {row.server_id for row in rows if row.status in RESTING}
    found = {(pair.one_id, pair.other_id): pair for pair in judged}
    fresh = {
        pair: now
        for pair, now in found.items()
        if pair[0] not in resting and pair[1] not in resting
    }
    kept = {
        pair: known.as_rare_as(found[pair].evidence) if pair in found else known
        for pair, known in stored.items()
        if pair[0] in resting or pair[1] in resting
    }
    evidence = kept | {pair: judged.evidence for pair, judged in fresh.items()}
    evidence |= {pair: stored[pair] for pair in decided if pair not in evidence}
    return fresh, kept, evidence


def _pairs(
    evidence: Iterable[Pair], decided: Iterable[Pair], rows: Iterable[ReplicaRow]
) -> set[Pair]:
    """Return all pairs of which the hosts are to be known."""
    return {*evidence, *decided, *((row.server_id, row.canonical_id) for row in rows)}


def _pairs_to_ask(
    found: SearchResult, rows: Sequence[ReplicaRow], asked: Mapping[Pair, PairEvidence]
) -> dict[Pair, tuple[PairEvidence, int]]:
    """Return the first pairs of which pages are requested: their evidence, and how many paths.

    These are the pairs that more pages may decide, and those of which only pages rest, if they
    moved since they were asked.
    """
    resting = {row.server_id for row in rows if row.status in RESTING}
    partly = {pair_of(row) for row in rows if row.status == "partly"}
    known = {(pair.one_id, pair.other_id): pair.evidence for pair in found.promising}
    undecided = (pair for pair in found.undecided if not resting.intersection(pair))
    wanted: dict[Pair, tuple[PairEvidence, int]] = {}
    for pair in (*undecided, *sorted(partly & known.keys())):
        evidence = known[pair]
        if asked.get(pair) != evidence:
            needed = PROBED_PATHS if pair in partly else pages_to_probe(evidence) or 0
            wanted[pair] = evidence, min(PROBED_PATHS, needed)
            if len(wanted) == REQUESTED_PAIRS:
                break
    return wanted


def _log_status(decision: Decision, row: ReplicaRow | None) -> None:
    if row is None or (row.status, row.canonical_id) != (decision.status, decision.canonical_id):
        log.info(
            "replica_status_changed",
            server_id=decision.server_id,
            canonical_id=decision.canonical_id,
            status=decision.status,
            why=decision.reason,
        )


def _is_stored(decision: Decision, row: ReplicaRow | None) -> bool:
    return row is not None and (
        (row.canonical_id, row.status, row.reason, row.waits_for, row.alternate_ids)
        == (
            decision.canonical_id,
            decision.status,
            decision.reason,
            decision.waits_for,
            decision.alternates,
        )
    )


def _put_decisions(
    connection: apsw.Connection, decisions: list[Decision], now: float, look_at: float
) -> None:
    for decision in decisions:
        replica.put_replica(
            connection,
            decision.server_id,
            decision.canonical_id,
            decision.status,
            decision.reason,
            waits_for=decision.waits_for,
            now=now,
            look_at=look_at,
        )
        alternates.put(connection, decision.server_id, decision.alternates)


def _redirects(
    connection: apsw.Connection, hosts: list[SourceHost]
) -> tuple[dict[str, int], dict[tuple[int, int], int]]:
    """Return host numbers by name, and counts of redirects by pair; on a reader's thread."""
    numbers = {host.host: host.server_id for host in hosts}
    return numbers, same_path_redirects(inputs.redirects(connection), numbers)


def _summary(found: SearchResult, counts: dict[str, int]) -> str:
    method = "too few pairs to learn from, conservative rules"
    if found.evidence is not None:
        method = f"probabilities from {found.evidence}"
    dropped = f", {found.dropped} dropped for lack of memory" if found.dropped else ""
    return (
        f"{found.hosts} hosts, {found.candidates} candidates{dropped}, {method};"
        f" {counts['pruned']} pruned, {counts['held']} held, {counts['withdrawn']} withdrawn"
    )
