"""The `replicas` job: find hosts with the same content and suspend the copies.

A run: read new pages ▸ redirects and canonical links ▸ judge all pairs in a thread ▸ decide ▸
store ▸ for each replica: compare its sample, withdraw or suspend, start the next sample when it is
due ▸ request visits that may decide a pair. Reads and writes are sliced, with rests between them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import apsw
import structlog

from crawld.core.content.html import parse as parse_html
from crawld.core.replica.canonical import HostProfile
from crawld.core.replica.owners import crowded_domains, inlink_domains
from crawld.core.replica.verdict import PROBED_PATHS, level_of
from crawld.core.url import canonicalize, split_url, target_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.replica_leases import ReplicaLeases
from crawld.daemon.jobs.replicas.decision import Decision
from crawld.daemon.jobs.replicas.plan import PlanInput, is_overdue, plan
from crawld.daemon.jobs.replicas.resting import REST_FACTOR
from crawld.daemon.jobs.replicas.sampling import ReplicaSampling
from crawld.daemon.jobs.replicas.search import ReplicaSearch, SearchResult, same_path_redirects
from crawld.daemon.jobs.replicas.storm import StormLimit
from crawld.daemon.jobs.runner import JITTER_SHARE
from crawld.daemon.pacing import PacedReader
from crawld.errors import CorruptDatabaseError, InvalidUrlError
from crawld.marks import Marks
from crawld.store.replica import inputs, replica
from crawld.store.replica import pages as replica_pages
from crawld.store.replica import pair as replica_pair
from crawld.store.replica.inputs import Cursors, SourceHost
from crawld.store.replica.pair import PairRow
from crawld.store.replica.replica import RESTING, ReplicaRow
from crawld.store.versions import version

log = structlog.get_logger(__name__)

SLICE: Final = 2_000
"""Pages read in one query."""

COPIES_PER_HOST: Final = 30
"""Copies of a host whose canonical links are read."""

MAX_COPY_BYTES: Final = 4 * 2**20
"""Larger copies are not looked at."""

HEAD_BYTES: Final = 64 * 1024
"""Part of a body that is searched for a canonical link."""

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
        self._canonicals: dict[int, dict[str, int]] = {}
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
                await self._workers.run(self._search.add, pages, abandon_on_cancel=True)
                last = step
        self._cursors = up_to

    async def _judge(self, hosts: list[SourceHost]) -> SearchResult:
        # What takes longer with more hosts runs in a thread.
        numbers, redirects = await self._database.read(_redirects, hosts)
        suspects = await self._workers.run(self._search.suspects, redirects, abandon_on_cancel=True)
        for host_id in suspects:
            self._canonicals[host_id] = await self._canonicals_of(host_id)
        canonicals = {
            (host_id, to): count
            for host_id, named in self._canonicals.items()
            for name, count in named.items()
            if (to := numbers.get(name)) is not None and to != host_id
        }
        rows = await self._database.read(replica.list_replicas)
        stale = {row.host_id: row.since for row in rows if row.status == "withdrawn"}
        return await self._workers.run(
            lambda: self._search.judge(hosts, redirects, canonicals, stale_before=stale),
            abandon_on_cancel=True,
        )

    async def _canonicals_of(self, host_id: int) -> dict[str, int]:
        """Count the hosts that a host's pages name as canonical under the same path."""
        copies, pages = await self._database.read(inputs.copies, host_id, COPIES_PER_HOST)
        named = await self._paced.read(_count_canonicals, copies, self._analyser.marks)
        return {name: round(count * pages / len(copies)) for name, count in named.items()}

    # --- deciding --------------------------------------------------------------------------------

    async def _decide(self, hosts: list[SourceHost], found: SearchResult) -> PlanInput:
        now = self._clock.now()
        rows = await self._database.read(replica.list_replicas)
        stored = await self._database.read(replica_pair.list_pairs)
        pruned = {row.host_id for row in rows if row.status in RESTING}
        fresh = {
            (pair.one_id, pair.other_id): pair
            for pair in found.pairs
            if not pruned & {pair.one_id, pair.other_id}
        }
        evidence = {(pair.one_id, pair.other_id): pair.evidence for pair in stored}
        kept = {pair: known for pair, known in evidence.items() if pruned & set(pair)}
        evidence = kept | {pair: judged.evidence for pair, judged in fresh.items()}
        operator_words = {(pair.one_id, pair.other_id): pair.word for pair in stored if pair.word}
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
        judgements = [
            PairRow(
                one_id=one,
                other_id=other,
                judged_at=now,
                level=level_of(judged.evidence),
                evidence=judged.evidence,
                features=judged.features,
            )
            for (one, other), judged in fresh.items()
        ]
        for begin in range(0, len(judgements), replica_pages.SLICE):
            part = judgements[begin : begin + replica_pages.SLICE]
            await self._database.write(replica_pair.put_pairs, part)
        await self._database.write(replica_pair.forget_pairs, now)
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
        self, hosts: list[SourceHost], pairs: set[tuple[int, int]], rows: list[ReplicaRow]
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
            own = await self._database.read(inputs.summarize_pages, host.host_id)
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
        pairs = [pair for pair in found.undecided if not settled.intersection(pair)]
        for one, other in pairs[:REQUESTED_PAIRS]:
            pages = await self._paced.read(replica_pages.shared_unvisited, one, other, PROBED_PATHS)
            for host_id, site_id in dict.fromkeys((page.host_id, page.site_id) for page in pages):
                host = self._state.hosts.get(names[host_id])
                if host is not None and site_id in self._state.sites:
                    first = [page.page_id for page in pages if page[:2] == (host_id, site_id)]
                    self._state.pages_of(host, site_id).add_new(first, soon=True)
            self._counts["asked"] += len(pages)


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


def _count_canonicals(
    connection: apsw.Connection, copies: list[tuple[str, int]], marks: Marks
) -> dict[str, int]:
    """Count canonical links by the host they name; on a reader's thread."""
    counts: dict[str, int] = {}
    for url, version_id in copies:
        try:
            if version.body_bytes(connection, version_id) > MAX_COPY_BYTES:
                continue
            kept = version.read_copy(connection, version_id)
            # Most pages have no canonical link; this check takes a tenth of the time of a parse.
            if kept is None or b"canonical" not in kept.body[:HEAD_BYTES].lower():
                continue
            if not kept.readable:
                continue
            with marks.under(url):
                named = parse_html(kept.body[: 2 * HEAD_BYTES]).canonical
            target = canonicalize(named, url) if named else None
        except (CorruptDatabaseError, InvalidUrlError):
            continue
        if target is not None and target_of(target) == target_of(url):
            name = split_url(target).host
            counts[name] = counts.get(name, 0) + 1
    return counts


def _summary(found: SearchResult, counts: dict[str, int]) -> str:
    method = "classified" if found.trained else "too few pairs to learn from, conservative rules"
    dropped = f", {found.dropped} dropped for lack of memory" if found.dropped else ""
    return (
        f"{found.hosts} hosts, {found.candidates} candidates{dropped}, {method};"
        f" {counts['pruned']} pruned, {counts['held']} held, {counts['withdrawn']} withdrawn"
    )
