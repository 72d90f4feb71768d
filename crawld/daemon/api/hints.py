"""Routes about hint sources: their position, cost and gain."""

from __future__ import annotations

from fastapi import APIRouter

from crawld.daemon.api.parameters import Served
from crawld.daemon.api.schemas.hints import HintSourceStatus
from crawld.daemon.api.views import site_names
from crawld.daemon.daemon import Daemon
from crawld.store.changes import hint, hint_source
from crawld.store.changes.hint_source import SourceRow


def add_hint_routes(router: APIRouter) -> None:
    """Add the routes."""

    @router.get("/hints")
    async def hints(daemon: Served) -> list[HintSourceStatus]:
        """Hint sources: cursor, lag, reliability, cost in requests, gain."""
        return await hint_statuses(daemon)


async def hint_statuses(daemon: Daemon) -> list[HintSourceStatus]:
    """Return every hint source with its position, cost and gain."""
    outstanding = await daemon.database.read(hint.count_by_source)
    rows = await daemon.database.read(hint_source.list_sources)
    return [_status(daemon, row, outstanding.get(row.hint_source_id, 0)) for row in rows]


def _status(daemon: Daemon, row: SourceRow, outstanding: int) -> HintSourceStatus:
    known = hint.load_reliability(row.evidence)
    estimate = daemon.background.hint_poller.budget.estimate(row.hint_source_id)
    same = {
        name: getattr(row, name)
        for name in HintSourceStatus.model_fields
        if name in row._fields and name != "lag_s"
    }
    return HintSourceStatus(
        **same,
        sites=site_names(daemon, row.site_ids),
        outstanding=outstanding,
        trust=known.trust,
        missed_share=known.missed_share,
        lag_s=known.lag_s() if row.lag_count else None,
        interval_s=estimate.interval_s if estimate else None,
        gain=estimate.gain if estimate else None,
    )
