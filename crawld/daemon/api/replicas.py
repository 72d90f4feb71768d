"""Routes about replicas."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter
from starlette.exceptions import HTTPException

from crawld.core.replica.verdict import reasons
from crawld.daemon.api.schemas.replicas import PairStatus, ReplicaForm, Replicas, ReplicaStatus
from crawld.daemon.api.schemas.status import Done
from crawld.daemon.daemon import Daemon
from crawld.errors import OperatorError
from crawld.store.frontier import host as host_rows
from crawld.store.replica import pair as replica_pair
from crawld.store.replica import replica
from crawld.store.replica.pair import PairRow, Word
from crawld.store.replica.replica import ReplicaRow

JOB = "replicas"


def replica_routes(daemon: Daemon) -> APIRouter:
    """Return the routes."""
    router = APIRouter()

    @router.get("/replicas")
    async def replicas(host: str | None = None) -> Replicas:
        """Replicas and judged pairs, of one host or all."""
        return await replica_statuses(daemon, host)

    @router.post("/replicas/confirm")
    async def confirm(form: ReplicaForm) -> Done:
        """Confirm that a host is a replica of another."""
        one, other = await _decide(daemon, form, "confirmed")
        return Done(done=f"{one} and {other} are one host; the job {JOB} runs")

    @router.post("/replicas/confirm-all")
    async def confirm_all() -> Done:
        """Permit the next search to prune any number of hosts at once."""
        await daemon.database.write(partial(replica.allow_all, allowed=True))
        daemon.jobs.run_soon(JOB)
        return Done(done=f"however many there are at once, they may be pruned; the job {JOB} runs")

    @router.post("/replicas/reject")
    async def reject(form: ReplicaForm) -> Done:
        """Reject that a host is a replica of another; its pages return."""
        one, other = await _decide(daemon, form, "rejected")
        return Done(done=f"{one} and {other} are two hosts; the job {JOB} runs")

    @router.post("/replicas/prefer")
    async def prefer(form: ReplicaForm) -> Done:
        """Keep this host among its replicas."""
        await daemon.database.write(replica.prefer, await _host_id(daemon, form.host))
        daemon.jobs.run_soon(JOB)
        return Done(done=f"{form.host} is preferred among its replicas; the job {JOB} runs")

    return router


async def replica_statuses(daemon: Daemon, host: str | None = None) -> Replicas:
    """Return the replicas and the judged pairs, of one host or all."""
    host_id = None if host is None else await _host_id(daemon, host)
    rows = await daemon.database.read(replica.list_replicas)
    pairs = await daemon.database.read(replica_pair.list_pairs, host_id)
    return Replicas(
        replicas=[
            _replica_status(row, stands_in=daemon.crawl.leases.is_leased(row.host))
            for row in rows
            if host_id is None or host_id in (row.host_id, row.canonical_id)
        ],
        pairs=[_pair_status(pair) for pair in pairs],
    )


async def _decide(daemon: Daemon, form: ReplicaForm, word: Word) -> tuple[str, str]:
    """Store the operator's decision on a pair; return the names of its hosts."""
    host_id = await _host_id(daemon, form.host)
    pairs = await daemon.database.read(replica_pair.list_pairs, host_id)
    rows = await daemon.database.read(replica.list_replicas)
    meant = [pair for pair in pairs if form.other is None or form.other in pair.evidence.names]
    if form.other is None and len(meant) > 1:
        of_row = {row.canonical_id for row in rows if row.host_id == host_id}
        meant = [pair for pair in meant if of_row & {pair.one_id, pair.other_id}] or meant
    if len(meant) != 1:
        others = [name for pair in meant for name in pair.evidence.names if name != form.host]
        hint = f"name the other host: {', '.join(others)}" if others else "see: crawlctl replicas"
        problem = "stands in several pairs" if meant else "stands in no pair that was judged"
        raise OperatorError(f"{form.host} {problem}", hint=hint)
    pair = meant[0]
    await daemon.database.write(replica_pair.put_word, pair.one_id, pair.other_id, word)
    daemon.jobs.run_soon(JOB)
    return pair.evidence.names


def _replica_status(row: ReplicaRow, *, stands_in: bool) -> ReplicaStatus:
    own = ReplicaStatus.model_fields.keys() - {"stands_in"}
    return ReplicaStatus(stands_in=stands_in, **{name: getattr(row, name) for name in own})


def _pair_status(pair: PairRow) -> PairStatus:
    evidence = pair.evidence
    return PairStatus(
        hosts=evidence.names,
        level=pair.level,
        probability=evidence.probability,
        reasons=reasons(evidence),
        pages=evidence.pages,
        common=evidence.common,
        compared=evidence.compared,
        equal=evidence.equal,
        features=pair.features,
        word=pair.word,
        judged_at=pair.judged_at,
    )


async def _host_id(daemon: Daemon, name: str) -> int:
    row = await daemon.database.read(host_rows.by_name, name)
    if row is None:
        raise HTTPException(404, f"{name} is no host of the crawl; see: hosts")
    return row.host_id
