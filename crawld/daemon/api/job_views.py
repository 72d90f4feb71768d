"""Jobs and what they know, as the control socket shows them."""

from __future__ import annotations

from crawld.daemon.api.schemas import status
from crawld.daemon.daemon import Daemon
from crawld.daemon.jobs.runner import JobState
from crawld.sources.mediawiki_site import WikiFacts
from crawld.store.changes import wiki


async def job_status(state: JobState) -> status.JobStatus:
    """Return a job with its last run and its progress."""
    last, duration_s = state.last, None
    if last and last.last_started_at is not None and last.last_finished_at is not None:
        # While a run is under way its start is later than the last end.
        span_s = last.last_finished_at - last.last_started_at
        duration_s = span_s if span_s >= 0 else None
    return status.JobStatus(
        name=state.job.name,
        running=state.running,
        every_s=state.job.every_s,
        next_run_at=state.next_run_at,
        last_started_at=last.last_started_at if last else None,
        last_finished_at=last.last_finished_at if last else None,
        last_duration_s=duration_s,
        result=last.result if last else None,
        detail=last.detail if last else None,
        progress=await state.job.progress(),
    )


async def wiki_statuses(daemon: Daemon) -> list[status.WikiStatus]:
    """Return every wiki that was recognised, with its pages by state."""
    found = []
    for row in await daemon.database.read(wiki.list_wikis):
        site = daemon.state.sites.get(row.site_id)
        if row.api_url is None:
            continue
        found.append(
            status.WikiStatus(
                site=site.name if site else "",
                origin=row.origin,
                api_url=row.api_url,
                generator=WikiFacts.from_json(row.facts).generator if row.facts else None,
                pages=await daemon.database.read(wiki.progress, row.wiki_id),
                request_count=row.request_count,
                change_count=row.change_count,
                trouble=row.trouble,
                trouble_detail=row.trouble_detail,
                trouble_count=row.trouble_count,
                closed_until=row.closed_until,
            )
        )
    return found
