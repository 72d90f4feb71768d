"""The `replicas` job: find hosts with the same pages, and let those rest that agree.

A run: read new pages ▸ redirects and canonical links ▸ judge all pairs in a thread ▸ decide ▸
store ▸ compare the pages of replicas that were visited, suspend, resume and sample them ▸ request
visits that may decide a pair. Reads and writes are sliced, with rests between them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import apsw
import structlog

from crawld.core.replica.canonical import HostProfile
from crawld.core.replica.owners import crowded_domains, inlink_domains
from crawld.core.replica.verdict import PROBED_PATHS, PairEvidence
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.replica_leases import ReplicaLeases
from crawld.daemon.jobs.replicas.copies import CopyReader
from crawld.daemon.jobs.replicas.decision import Decision
from crawld.daemon.jobs.replicas.judged import JudgedPair
from crawld.daemon.jobs.replicas.ledger import PairLedger
from crawld.daemon.jobs.replicas.plan import PlanInput, is_overdue, plan
from crawld.daemon.jobs.replicas.resting import REST_FACTOR
from crawld.daemon.jobs.replicas.sampling import ReplicaSampling
from crawld.daemon.jobs.replicas.search import ReplicaSearch, SearchResult, same_path_redirects
from crawld.daemon.jobs.replicas.storm import StormLimit
from crawld.daemon.jobs.runner import JITTER_SHARE
from crawld.daemon.pacing import PacedReader
from crawld.store.replica import inputs, replica
from crawld.store.replica import pages as replica_pages
from crawld.store.replica.inputs import Cursors, HostPageSummary, SourceHost
from crawld.store.replica.pair import Pair
from crawld.store.replica.replica import RESTING, ReplicaRow

log = structlog.get_logger(__name__)

SLICE: Final = 2_000
"""Pages read in one query."""

REQUESTED_PAIRS: Final = 500
"""Undecided pairs whose pages are requested in one run."""


class ReplicasJob(BackgroundWork):
    """The `replicas` job."""

    name = "replicas"

    def __init__(self, context: CrawlContext, leases: ReplicaLeases) -> None:
        super().__init__(context)
        self._paced = PacedReader(context.database, REST_FACTOR)
        self._search = ReplicaSearch()
        self._sampling = ReplicaSampling(context, leases)
        self._cursors: Cursors | None = None
        self._crowded: frozenset[str] = frozenset()
        self._crowded_among = 0
        self._copies = CopyReader(self._paced, context.analyser.marks)
        self._ledger = PairLedger(context.database, context.workers)
        self._summaries: dict[int, HostPageSummary] = {}
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
        await self._read_pages()
        hosts = await self._database.read(inputs.hosts)
        if len(hosts) < 2:
            return "fewer than two hosts"
        found = await self._judge(hosts)
        known = await self._decide(hosts, found)
        rows = await self._database.read(replica.list_replicas)
        await self._sampling.check(rows)
        rows = await self._database.read(replica.list_replicas)
        known = replace(known, replicas=rows)
        if await self._workers.run(is_overdue, known, abandon_on_cancel=True):
            planned = await self._workers.run(plan, known, abandon_on_cancel=True)
            await self._apply(planned, rows, self._clock.now())
            await self._sampling.check(await self._database.read(replica.list_replicas))
            rows = await self._database.read(replica.list_replicas)
        await self._sampling.grant_leases(rows)
        await self._request_visits(hosts, found, rows)
        self._counts["pairs"] = len(found.pairs)
        for status in ("pruned", "held", "withdrawn"):
            self._counts[status] = sum(row.status == status for row in rows)
        return _summary(found, self._counts)

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
                for host_id in {page.host_id for page in pages}:
                    self._summaries.pop(host_id, None)
                await self._workers.run(self._search.add, pages, abandon_on_cancel=True)
                last = step
        self._cursors = up_to

    async def _judge(self, hosts: list[SourceHost]) -> SearchResult:
        # What takes longer with more hosts runs in a thread.
        numbers, redirects = await self._database.read(_redirects, hosts)
        suspects = await self._workers.run(self._search.suspects, redirects, abandon_on_cancel=True)
        for host_id in suspects:
            self._search.set_links(host_id, await self._copies.read(host_id))
        canonicals = self._copies.canonicals(numbers)
        rows = await self._database.read(replica.list_replicas)
        stale = {row.host_id: row.since for row in rows if row.status == "withdrawn"}
        stored = list(await self._ledger.load())
        return await self._workers.run(
            lambda: self._search.judge(
                hosts, redirects, canonicals, stale_before=stale, stored=stored
            ),
            abandon_on_cancel=True,
        )

    # --- deciding --------------------------------------------------------------------------------

    async def _decide(self, hosts: list[SourceHost], found: SearchResult) -> PlanInput:
        now = self._clock.now()
        rows = await self._database.read(replica.list_replicas)
        stored = await self._ledger.load()
        resting = {row.host_id for row in rows if row.status in RESTING}
        fresh, kept = await self._workers.run(
            _split_pairs, found.pairs, stored, resting, abandon_on_cancel=True
        )
        evidence = kept | {pair: judged.evidence for pair, judged in fresh.items()}
        # The operator may have decided pairs that the search does not know.
        evidence |= {pair: stored[pair] for pair in self._ledger.words if pair not in evidence}
        operator_words = self._ledger.words
        released = await self._database.read(replica.all_allowed)
        known = PlanInput(
            evidence=evidence,
            operator_words=operator_words,
            replicas=rows,
            crowded=self._crowded_domains(hosts),
            profiles=await self._host_profiles(hosts, {*evidence, *operator_words}, rows),
            hosts=len(hosts),
            limit=StormLimit(
                share=None if released else self._config().replicas.storm_share,
                since=now - (1.0 - JITTER_SHARE) * self.every_s,
                prune=self._config().replicas.prune,
            ),
        )
        await self._ledger.put(fresh, kept, now)
        planned = await self._workers.run(plan, known, abandon_on_cancel=True)
        await self._apply(planned, rows, now)
        if released:
            await self._database.write(replica.allow_all, allowed=False)
        return known

    def _crowded_domains(self, hosts: list[SourceHost]) -> frozenset[str]:
        if len(hosts) != self._crowded_among:
            self._crowded = crowded_domains(host.host for host in hosts)
            self._crowded_among = len(hosts)
        return self._crowded

    async def _host_profiles(
        self, hosts: list[SourceHost], pairs: set[Pair], rows: list[ReplicaRow]
    ) -> dict[int, HostProfile]:
        partners: dict[int, set[int]] = {}
        for one, other in (*pairs, *((row.host_id, row.canonical_id) for row in rows)):
            partners.setdefault(one, set()).add(other)
            partners.setdefault(other, set()).add(one)
        preferred = set(self._config().replicas.prefer)
        linking = {host_id: self._search.linking_hosts(host_id) for host_id in partners}
        named = {*partners, *(source for sources in linking.values() for source in sources)}
        names = await self._database.read(inputs.host_names, named)
        profiles = {}
        for host in hosts:
            if host.host_id not in partners:
                continue
            own = self._summaries.get(host.host_id)
            if own is None:
                own = await self._database.read(inputs.summarize_pages, host.host_id)
                self._summaries[host.host_id] = own
            profiles[host.host_id] = HostProfile(
                name=host.host,
                preferred=host.preferred or host.host in preferred,
                https=own.https,
                first_seen_at=host.added_at,
                inlinks=inlink_domains(
                    (names[at] for at in linking[host.host_id] if at in names),
                    (names[at] for at in (host.host_id, *partners[host.host_id])),
                ),
                pages=own.pages,
                changed_at=own.changed_at,
            )
        return profiles

    async def _apply(self, decisions: list[Decision], rows: list[ReplicaRow], now: float) -> None:
        before = {row.host_id: row for row in rows}
        after = {decision.host_id: decision for decision in decisions}
        for host_id, row in before.items():
            decision = after.get(host_id)
            moved = decision is None or decision.canonical_id != row.canonical_id
            if row.status in RESTING and (moved or (decision and decision.status not in RESTING)):
                await self._sampling.resume(row)
            if decision is None and row.status != "withdrawn":
                await self._sampling.forget(host_id)
                await self._database.write(replica.drop_replica, host_id)
                log.info("replica_dropped", host=row.host, canonical=row.canonical_host)
        look_at = now + self._config().replicas.first_sample_s
        for decision in decisions:
            previous = before.get(decision.host_id)
            if previous is None or (previous.status, previous.canonical_id) != (
                decision.status,
                decision.canonical_id,
            ):
                log.info(
                    "replica_status_changed",
                    host_id=decision.host_id,
                    canonical_id=decision.canonical_id,
                    status=decision.status,
                    why=decision.reason,
                )
        for begin in range(0, len(decisions), replica_pages.SLICE):
            part = decisions[begin : begin + replica_pages.SLICE]
            await self._database.write(_put_decisions, part, now, look_at)

    async def _request_visits(
        self, hosts: list[SourceHost], found: SearchResult, rows: list[ReplicaRow]
    ) -> None:
        """Request early visits of pages that may decide a pair."""
        names = {host.host_id: host.host for host in hosts}
        settled = {row.host_id for row in rows if row.status in RESTING}
        evidence = {(pair.one_id, pair.other_id): pair.evidence for pair in found.promising}
        pairs = [
            pair
            for pair in found.undecided
            if not settled.intersection(pair) and self._asked.get(pair) != evidence[pair]
        ][:REQUESTED_PAIRS]
        self._asked |= {pair: evidence[pair] for pair in pairs}
        for one, other in pairs:
            pages = await self._paced.read(replica_pages.shared_unvisited, one, other, PROBED_PATHS)
            for host_id, site_id in dict.fromkeys((page.host_id, page.site_id) for page in pages):
                host = self._state.hosts.get(names[host_id])
                if host is not None and site_id in self._state.sites:
                    first = [page.page_id for page in pages if page[:2] == (host_id, site_id)]
                    self._state.pages_of(host, site_id).add_new(first, soon=True)
            self._counts["asked"] += len(pages)


def _split_pairs(
    judged: Sequence[JudgedPair], stored: Mapping[Pair, PairEvidence], resting: Collection[int]
) -> tuple[dict[Pair, JudgedPair], dict[Pair, PairEvidence]]:
    """Return the judged pairs that count, and the stored ones that stay as they are.

    The texts of resting pages age, so that their hosts keep the evidence for which they rest.
    """
    fresh = {
        (pair.one_id, pair.other_id): pair
        for pair in judged
        if pair.one_id not in resting and pair.other_id not in resting
    }
    kept = {
        pair: known for pair, known in stored.items() if pair[0] in resting or pair[1] in resting
    }
    return fresh, kept


def _put_decisions(
    connection: apsw.Connection, decisions: list[Decision], now: float, look_at: float
) -> None:
    for decision in decisions:
        replica.put_replica(
            connection,
            decision.host_id,
            decision.canonical_id,
            decision.status,
            decision.reason,
            waits_for=decision.waits_for,
            now=now,
            look_at=look_at,
        )


def _redirects(
    connection: apsw.Connection, hosts: list[SourceHost]
) -> tuple[dict[str, int], dict[tuple[int, int], int]]:
    """Return host numbers by name, and counts of redirects by pair; on a reader's thread."""
    numbers = {host.host: host.host_id for host in hosts}
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
