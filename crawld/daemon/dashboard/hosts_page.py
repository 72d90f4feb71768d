"""Pages of the dashboard about hosts: their slots, delays, back-off and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from crawld.core.page import Outcome, PageState
from crawld.daemon.api.lookup import known_host
from crawld.daemon.api.schemas.status import VisitStatus
from crawld.daemon.api.views import host_detail, host_status, visit_status
from crawld.daemon.daemon import Daemon
from crawld.daemon.dashboard.overview_page import states_chart
from crawld.daemon.dashboard.view import PER_PAGE, Parameters, View
from crawld.daemon.dashboard.visit_words import KIND_NAMES, mark_of
from crawld.daemon.schedule.recent_turns import TurnSpan
from crawld.dashboard.chart import Chart
from crawld.dashboard.rendering import link
from crawld.dashboard.strip import TimeMark, sparkline, strip
from crawld.dashboard.words import duration
from crawld.store import visit_log
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import page_list

TURNS_SHOWN: Final = 100
"""Turns in the timeline of a host."""

LIST_WINDOW_S: Final = 600.0
LIST_TURNS: Final = 60
"""What the list shows of the turns of each host."""

VISITS_LOOKED_AT: Final = 2_000
"""The newest visits of all hosts, in which those of a host are looked for."""

VISITS_SHOWN: Final = 20

SAME_VISIT_S: Final = 1.0
"""A visit is dated at most so long from the turn that made it."""


async def show_hosts(daemon: Daemon, query: Parameters) -> View:
    """List hosts by name, from the one after a name."""
    after = query.text("after") or ""
    rows = await daemon.database.read(host_rows.list_hosts, after=after, limit=PER_PAGE)
    hosts = [host_status(daemon, row) for row in rows]
    now = trio.current_time()
    turns = daemon.crawl.schedule.recent.by_host({each.host for each in hosts}, LIST_TURNS)
    lines = {
        host: sparkline(
            f"Requests of the last {duration(LIST_WINDOW_S)}",
            [(span.began_at, span.ended_at) for span in spans],
            now - LIST_WINDOW_S,
            now,
        )
        for host, spans in turns.items()
    }
    return View(
        "hosts.html",
        "hosts",
        "Hosts",
        {
            "hosts": hosts,
            "lines": lines,
            "after": after,
            "first": link("hosts") if after else "",
            "following": link("hosts", after=hosts[-1].host) if len(hosts) == PER_PAGE else "",
        },
    )


async def show_host(daemon: Daemon, query: Parameters) -> View:
    """Show one host: its slot timeline, politeness, back-off, errors and robots.txt."""
    row = await known_host(daemon, query.required("name"))
    host = await host_detail(daemon, row.host)
    visits = await _newest_visits(daemon, row.host_id)
    spans = daemon.crawl.schedule.recent.of_host(row.host, TURNS_SHOWN)
    return View(
        "host.html",
        "hosts",
        row.host,
        {
            "host": host,
            "states": states_chart(host.pages),
            "timeline": _timeline(daemon, spans, visits),
            "visits": visits[:VISITS_SHOWN],
            "failures": [
                each for each in visits if each.outcome in (Outcome.FAILED, Outcome.BLOCKED)
            ][:20],
        },
    )


async def _newest_visits(daemon: Daemon, host_id: int) -> list[VisitStatus]:
    """Return visits of a host among the newest of all hosts, the newest first."""
    newest = await daemon.database.read(visit_log.log, limit=1)
    if not newest:
        return []
    after = max(newest[-1].visit_id - VISITS_LOOKED_AT, 0)
    rows = await daemon.database.read(
        visit_log.log, after=after, limit=VISITS_LOOKED_AT, host_id=host_id
    )
    return [visit_status(row) for row in reversed(rows)]


def _timeline(
    daemon: Daemon, spans: Sequence[TurnSpan], visits: Sequence[VisitStatus]
) -> Chart | None:
    """Draw the newest turns of a host; one that made a visit has its outcome."""
    if not spans:
        return None
    clock = daemon.clock
    marks = []
    last = None
    made = iter(reversed(visits))
    visit = next(made, None)
    for span in spans:
        began_at, ended_at = clock.to_wall(span.began_at), clock.to_wall(span.ended_at)
        while visit is not None and visit.visited_at < began_at - SAME_VISIT_S:
            visit = next(made, None)
        own = visit if visit and visit.visited_at <= ended_at + SAME_VISIT_S else None
        kind, name = mark_of(own.outcome) if own else ("other", KIND_NAMES["other"])
        words = [name if own is None else f"{name}: {own.url[:200]}"]
        words.append(f"took {duration(span.ended_at - span.began_at)}")
        if last is not None:
            words.append(f"{duration(span.began_at - last)} after the one before")
        last = span.ended_at
        marks.append(TimeMark(began_at, ended_at, kind, name, "\n".join(words)))
        if own is not None:
            visit = next(made, None)
    return strip(
        "Requests of the host", marks, marks[0].at, max(daemon.clock.now(), marks[0].at), KIND_NAMES
    )


async def show_pages(daemon: Daemon, query: Parameters) -> View:
    """List the pages of a host, by state; without a host those whose last visit failed."""
    name = query.text("host")
    if name is None:
        after = query.given.get("after")
        part = await daemon.database.read(page_list.list_retried, after=_number(after))
        following = part.following is not None and link("pages", after=f"{part.following:.6f}")
        values = {"pages": part.pages, "host": None, "state": "", "first": link("pages")}
        values |= {"following": following or "", "first": link("pages") if after else ""}
        return View("pages.html", "pages", "Pages that are retried", values)
    host = await known_host(daemon, name)
    wanted = query.text("state")
    state = PageState(wanted) if wanted in {each.value for each in PageState} else None
    begin = query.whole("after") if "after" in query.given else None
    begins_later = begin is not None or "packed" in query.given
    following = ""
    if "packed" in query.given:
        packed = query.whole("packed")
        part = await daemon.database.read(
            page_list.list_packed_of_host, host.host_id, after=packed, limit=PER_PAGE
        )
        if part.following is not None:
            following = link("pages", host=name, state=wanted, packed=part.following)
    else:
        part = await daemon.database.read(
            page_list.list_of_host, host.host_id, state=state, after=begin, limit=PER_PAGE
        )
        if part.following is not None:
            following = link("pages", host=name, state=wanted, after=part.following)
        elif state in (None, PageState.DISCOVERED) and await _has_packed(daemon, host.host_id):
            following = link("pages", host=name, state=wanted, packed=0)
    return View(
        "pages.html",
        "pages",
        f"Pages of {host.host}",
        {
            "pages": part.pages,
            "host": host_status(daemon, host),
            "state": state.value if state else "",
            "first": link("pages", host=name, state=wanted) if begins_later else "",
            "following": following,
        },
    )


async def _has_packed(daemon: Daemon, host_id: int) -> bool:
    part = await daemon.database.read(page_list.list_packed_of_host, host_id, limit=1)
    return bool(part.pages)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text[:40])
    except ValueError:
        return None
