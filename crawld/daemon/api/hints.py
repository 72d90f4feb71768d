"""What the control socket says of hint sources: where each is, its cost and its worth."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from crawld.daemon.daemon import Daemon
from crawld.store.changes import hint, hint_source
from crawld.store.changes.hint_source import SourceRow


class HintSourceStatus(BaseModel):
    """One hint source.

    `trust`: share of its hints that are real; `missed_share`: share of the changes it never tells
    of; `gain`: share of freshness it adds to the pages it tells of, as the models see it; `lag_s`:
    from a change to its hint, the median; `interval_s`: pause between polls that pays best.
    """

    hint_source_id: int
    site: str
    host: str
    kind: str
    url: str
    cursor: str | None
    told_until: float | None
    last_poll_at: float | None
    next_poll_at: float | None
    poll_count: int
    request_count: int
    hint_count: int
    outstanding: int
    real_count: int
    false_count: int
    missed_count: int
    trust: float
    missed_share: float
    lag_s: float | None
    interval_s: float | None
    gain: float | None
    trouble: str | None
    trouble_detail: str | None
    trouble_count: int
    closed_until: float | None


def hint_routes(daemon: Daemon) -> APIRouter:
    """Return the routes about hint sources."""
    router = APIRouter()

    @router.get("/hints")
    async def hints() -> list[HintSourceStatus]:
        """Hint sources: cursor, lag, reliability, cost in requests, gain."""
        outstanding = await daemon.database.read(hint.count_by_source)
        rows = await daemon.database.read(hint_source.list_sources)
        return [_status(daemon, row, outstanding.get(row.hint_source_id, 0)) for row in rows]

    return router


def _status(daemon: Daemon, row: SourceRow, outstanding: int) -> HintSourceStatus:
    site = daemon.crawl.sites.get(row.site_id)
    known = hint.load_reliability(row.evidence)
    worth = daemon.hint_poller.budget.estimate(row.hint_source_id)
    same = {
        name: getattr(row, name)
        for name in HintSourceStatus.model_fields
        if name in row._fields and name != "lag_s"
    }
    return HintSourceStatus(
        **same,
        site=site.name if site else "",
        outstanding=outstanding,
        trust=known.trust,
        missed_share=known.missed_share,
        lag_s=known.lag_s() if row.lag_count else None,
        interval_s=worth.interval_s if worth else None,
        gain=worth.gain if worth else None,
    )
