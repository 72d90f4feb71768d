"""The page of the dashboard about one page of the mirror, and about URLs that are none."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException

from crawld.daemon.api.lookup import known_page
from crawld.daemon.api.schemas.status import VersionStatus, VisitStatus
from crawld.daemon.api.views import page_detail, visit_status
from crawld.daemon.api.why import why_of
from crawld.daemon.daemon import Daemon
from crawld.daemon.dashboard.view import Parameters, View
from crawld.daemon.dashboard.visit_words import KIND_NAMES, mark_of
from crawld.dashboard.chart import Chart
from crawld.dashboard.strip import TimeMark, strip
from crawld.dashboard.words import duration, share
from crawld.store import visit_log

VISITS_DRAWN: Final = 300
"""Visits in the history strip."""


async def show_page(daemon: Daemon, query: Parameters) -> View:
    """Show a page: history, copies, change model, and why it is visited when it is."""
    url = query.text("url")
    if url is None:
        raise HTTPException(404, "Type the URL of a page into the field above.")
    why = await why_of(daemon, url)
    if not why.known:
        return View("page.html", "pages", why.url, {"why": why, "page": None})
    record = await known_page(daemon, why.url)
    page = await page_detail(daemon, record)
    rows = await daemon.database.read(visit_log.of_page, record.page_id, limit=VISITS_DRAWN)
    visits = [visit_status(row) for row in rows]
    return View(
        "page.html",
        "pages",
        page.title or page.url,
        {
            "why": why,
            "page": page,
            "visits": [(each, *mark_of(each.outcome)) for each in page.visits],
            "history": _history(visits, page.discovered_at, why.at),
            "copies": _pairs(page.versions),
        },
    )


def _history(visits: list[VisitStatus], found_at: float, now: float) -> Chart | None:
    if not visits:
        return None
    marks = []
    for each in reversed(visits):
        kind, name = mark_of(each.outcome)
        words = [name]
        if each.status is not None:
            words.append(f"status {each.status}")
        if each.failure:
            words.append(f"{each.failure}: {each.detail or ''}".rstrip(": "))
        if each.difference is not None:
            words.append(f"{share(each.difference)} of its text differs")
        if each.duration_s is not None:
            words.append(f"took {duration(each.duration_s)}")
        marks.append(TimeMark(each.visited_at, each.visited_at, kind, name, ", ".join(words)))
    # Older visits than those drawn are not shown: the strip begins with the first of them.
    begin = found_at if len(visits) < VISITS_DRAWN else marks[0].at
    return strip(
        "Visits of the page", marks, min(begin, marks[0].at), max(now, marks[-1].at), KIND_NAMES
    )


def _pairs(versions: list[VersionStatus]) -> list[tuple[VersionStatus, VersionStatus | None]]:
    """Return each copy with the one before it."""
    return [
        (each, versions[place + 1] if place + 1 < len(versions) else None)
        for place, each in enumerate(versions)
    ]
