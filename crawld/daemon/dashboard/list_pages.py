"""Pages of the dashboard that are lists: hint sources and wikis, replicas, jobs."""

from __future__ import annotations

from crawld.daemon.api.hints import hint_statuses
from crawld.daemon.api.replicas import replica_statuses
from crawld.daemon.api.views import job_status
from crawld.daemon.api.wiki_views import wiki_statuses
from crawld.daemon.daemon import Daemon
from crawld.daemon.dashboard.view import PER_PAGE, Parameters, View
from crawld.dashboard.rendering import link


async def show_hints(daemon: Daemon, query: Parameters) -> View:
    """List hint sources, and wikis beside the first of them."""
    start = max(query.whole("start"), 0)
    sources = await hint_statuses(daemon)
    return View(
        "hints.html",
        "hints",
        "Hints",
        {
            "sources": sources[start : start + PER_PAGE],
            "count": len(sources),
            "wikis": [] if start else await wiki_statuses(daemon),
            **_places("hints", start, len(sources)),
        },
    )


async def show_replicas(daemon: Daemon, query: Parameters) -> View:
    """List replicas, questions first, and pairs with their evidence; all pairs, or of one host."""
    start, host = max(query.whole("start"), 0), query.text("host")
    every_pair = query.text("all") is not None
    found = await replica_statuses(daemon, host, every_pair=every_pair, start=start, limit=PER_PAGE)
    count = max(found.replicas_in_all, found.pairs_in_all)
    return View(
        "replicas.html",
        "replicas",
        "Replicas" if host is None else f"Replicas of {host}",
        {
            "replicas": found.replicas,
            "pairs": found.pairs,
            "pairs_left_out": found.pairs_left_out,
            "whole": every_pair or host is not None,
            "questions": found.questions,
            "waiting": found.waiting,
            "turn_hosts": found.turn_hosts,
            "every_s": found.every_s,
            **_places("replicas", start, count, host=host, all=query.text("all")),
        },
    )


async def show_jobs(daemon: Daemon, _query: Parameters) -> View:
    """List jobs: last run, next run, progress."""
    jobs = [await job_status(state) for state in await daemon.background.jobs.states()]
    return View("jobs.html", "jobs", "Jobs", {"jobs": jobs})


def _places(page: str, start: int, count: int, **query: str | None) -> dict[str, str]:
    following = start + PER_PAGE
    return {
        "first": link(page, **query) if start else "",
        "following": link(page, **query, start=following) if following < count else "",
    }
