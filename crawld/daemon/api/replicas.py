"""Routes about replicas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fastapi import APIRouter

from crawld.core.replica.reasons import reasons
from crawld.core.replica.storm import storm_limit
from crawld.core.replica.verdict import HostAgreement, VerdictLevel
from crawld.daemon.api.parameters import After, Limit, Served
from crawld.daemon.api.replica_decisions import JOB, decide, decide_all
from crawld.daemon.api.replica_selection import known_server_id
from crawld.daemon.api.schemas.replicas import (
    PairStatus,
    PreferForm,
    ReplicaDecision,
    ReplicaForm,
    Replicas,
    ReplicaStatus,
)
from crawld.daemon.api.schemas.status import Done
from crawld.daemon.daemon import Daemon
from crawld.daemon.pacing import LoopSlices, parts_of
from crawld.store.replica import pair as replica_pair
from crawld.store.replica import replica
from crawld.store.replica.pair import PairRow
from crawld.store.replica.replica import ReplicaRow

MAX_PAIRS: Final = 2_000
"""Pairs in one response, the most certain: a wiki farm may have 100,000."""


def add_replica_routes(router: APIRouter) -> None:
    """Add the routes."""

    @router.get("/replicas")
    async def replicas(
        daemon: Served,
        host: str | None = None,
        all: bool = False,
        start: After = 0,
        limit: Limit = 100,
    ) -> Replicas:
        """Replicas, questions first, and pairs: those decided, those of one host, or all.

        `start` is the number of replicas and pairs before the first of this part.
        """
        return await replica_statuses(daemon, host, every_pair=all, start=start, limit=limit)

    @router.post("/replicas/confirm")
    async def confirm(daemon: Served, form: ReplicaForm) -> ReplicaDecision:
        """Confirm that hosts are replicas: a pair, a group, or those that match a pattern."""
        return await decide(daemon, form, "confirmed")

    @router.post("/replicas/confirm-all")
    async def confirm_all(daemon: Served, dry_run: bool = False) -> ReplicaDecision:
        """Permit the next search to prune every replica that waits for its turn."""
        return await decide_all(daemon, dry_run=dry_run)

    @router.post("/replicas/reject")
    async def reject(daemon: Served, form: ReplicaForm) -> ReplicaDecision:
        """Reject that hosts are replicas; their pages return."""
        return await decide(daemon, form, "rejected")

    @router.post("/replicas/forget")
    async def forget(daemon: Served, form: ReplicaForm) -> ReplicaDecision:
        """Forget what was confirmed or rejected: the searches decide again."""
        return await decide(daemon, form, None)

    @router.post("/replicas/prefer")
    async def prefer(daemon: Served, form: PreferForm) -> Done:
        """Keep this host among its replicas."""
        await daemon.database.write(replica.prefer, await known_server_id(daemon, form.host))
        daemon.background.jobs.run_soon(JOB)
        return Done(done=f"{form.host} is preferred among its replicas; the job {JOB} runs")


async def replica_statuses(
    daemon: Daemon, host: str | None, *, every_pair: bool, start: int, limit: int
) -> Replicas:
    """Return a part of the replicas, of one host or all, and of the pairs.

    Args:
        host: a replica or a canonical host; None: every replica.
        every_pair: whether pairs are returned that led to no decision.
        start: replicas and pairs before the first of the part.
        limit: most replicas, and most pairs, in it.
    """
    server_id = None if host is None else await known_server_id(daemon, host)
    rows = await daemon.database.read(replica.list_replicas)
    pairs = await daemon.database.read(
        replica_pair.list_pairs,
        server_id,
        decided=server_id is None and not every_pair,
        limit=MAX_PAIRS,
    )
    known = await daemon.database.read(replica_pair.count_pairs)
    shown = [
        row for row in rows if server_id is None or server_id in (row.server_id, row.canonical_id)
    ]
    workers = daemon.context.workers
    shown = await workers.run(by_importance, shown, pairs)
    compared = await workers.run(_by_hosts, rows)
    settings = daemon.config.replicas
    slices = LoopSlices()
    replicas: list[ReplicaStatus] = []
    for some in parts_of(shown[start : start + limit]):
        leased = daemon.crawl.leases.is_leased
        replicas += [_replica_status(row, stands_in=leased(row.slot_name)) for row in some]
        await slices.pause()
    pair_statuses: list[PairStatus] = []
    for some_pairs in parts_of(pairs[start : start + limit]):
        pair_statuses += [
            _pair_status(pair, compared.get(frozenset((pair.one_id, pair.other_id))))
            for pair in some_pairs
        ]
        await slices.pause()
    return Replicas(
        replicas=replicas,
        replicas_in_all=len(shown),
        questions=sum(row.waits_for == "operator" for row in shown),
        waiting=sum(row.waits_for == "turn" for row in shown),
        pairs=pair_statuses,
        pairs_in_all=len(pairs),
        pairs_left_out=known - len(pairs),
        turn_hosts=storm_limit(len(daemon.state.hosts), settings.storm_share),
        every_s=settings.every_s,
    )


def by_importance(rows: Iterable[ReplicaRow], pairs: Iterable[PairRow]) -> list[ReplicaRow]:
    """Return replicas by what they ask of the operator: questions first, about most pages first.

    A question about many pages that is probably answered with yes saves most visits. The replicas
    of a group stay together otherwise.
    """
    likely = {
        frozenset((pair.one_id, pair.other_id)): pair.evidence.share
        if pair.evidence.probability is None
        else pair.evidence.probability
        for pair in pairs
    }

    def place(row: ReplicaRow) -> tuple[int, float, str, str]:
        asks = row.waits_for == "operator"
        waits = row.status == "held"
        pages = row.pages * likely.get(frozenset((row.server_id, row.canonical_id)), 0.0)
        return (
            0 if asks else 1 if waits else 2,
            -pages if asks else 0.0,
            row.canonical_host,
            row.host,
        )

    return sorted(rows, key=place)


def _by_hosts(rows: Iterable[ReplicaRow]) -> dict[frozenset[int], ReplicaRow]:
    return {frozenset((row.server_id, row.canonical_id)): row for row in rows}


def _replica_status(row: ReplicaRow, *, stands_in: bool) -> ReplicaStatus:
    own = ReplicaStatus.model_fields.keys() - {"stands_in"}
    return ReplicaStatus(stands_in=stands_in, **{name: getattr(row, name) for name in own})


def _pair_status(pair: PairRow, row: ReplicaRow | None) -> PairStatus:
    """Return a pair in words.

    Args:
        row: one as a copy of the other, if it is: what the comparison of their pages has shown
            counts more than what was expected from their texts.
    """
    evidence = pair.evidence
    root = None if row is None or row.root is None else bool(row.root)
    agreement = row and HostAgreement(row.twins, row.agreeing, row.differing, root)
    return PairStatus(
        hosts=evidence.names,
        level=pair.level if row is None else _shown_level(row, pair.level),
        probability=evidence.probability,
        reasons=reasons(evidence, agreement),
        pages=evidence.pages,
        common=evidence.common,
        compared=evidence.compared,
        equal=evidence.equal,
        similar=int(evidence.partial),
        features=pair.features,
        word=pair.word,
        judged_at=pair.judged_at,
    )


def _shown_level(row: ReplicaRow, expected: VerdictLevel) -> VerdictLevel:
    """Return what the comparison of the pages of two hosts has shown, or what was expected."""
    if row.status == "pruned":
        return VerdictLevel.CERTAIN
    # A host is served partly, too, while few of its pages are compared.
    refuted = row.status == "withdrawn" or (row.status == "partly" and row.differing > 0)
    return VerdictLevel.UNLIKELY if refuted else expected
