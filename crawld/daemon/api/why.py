"""Answer why a URL was, or was not, fetched: from the file, and what only the daemon knows."""

from __future__ import annotations

import math
from dataclasses import replace

import apsw
import trio
from fastapi import APIRouter
from starlette.exceptions import HTTPException

from crawld.config.places import read_places
from crawld.core.url import canonicalize_given, split_url, suggest_url
from crawld.core.why.facts import HostFacts, LiveFacts, PluginFacts, SiteFacts, UrlFacts
from crawld.daemon.api.parameters import Served
from crawld.daemon.api.schemas.why import Why
from crawld.daemon.api.why_answer import answer
from crawld.daemon.api.why_facts import LINK_DEPTH, Question, read_facts
from crawld.daemon.daemon import Daemon
from crawld.daemon.frontier.host import HostState
from crawld.errors import InvalidUrlError


def add_why_routes(router: APIRouter) -> None:
    """Add the route."""

    @router.get("/why")
    async def why(daemon: Served, url: str) -> Why:
        """Why a URL was (not) fetched, when it will be, and why then; also for unknown URLs."""
        return await why_of(daemon, url)


async def why_of(daemon: Daemon, url: str) -> Why:
    """Return why a URL was (not) fetched; respond 422 with a suggestion if it is invalid."""
    wanted = _canonical(url)
    path = daemon.start.config_path
    places = None if path is None else await daemon.context.workers.run(read_places, path)
    now = daemon.clock.now()
    question = Question(url, wanted, daemon.state.sites, daemon.config, places, now)
    facts = await daemon.database.read(_read, question, daemon)
    return answer(_with_live(facts, daemon))


def _canonical(url: str) -> str:
    """Return a URL in canonical form; respond 422 with a suggestion if it is invalid."""
    try:
        return canonicalize_given(url)
    except InvalidUrlError as error:
        raise HTTPException(422, f"{error.message}; {suggest_url(url, error)}") from error


def _read(connection: apsw.Connection, question: Question, daemon: Daemon) -> UrlFacts:
    # What takes long is the robots.txt, as where it is fetched.
    with daemon.analyser.marks.under(f"{split_url(question.url).origin}/robots.txt"):
        return read_facts(connection, question)


def _with_live(facts: UrlFacts, daemon: Daemon) -> UrlFacts:
    """Add what only the running daemon knows."""
    live = LiveFacts(
        pauses=daemon.crawl.schedule.pauses,
        stopping=daemon.phase in ("draining", "stopping"),
        once=daemon.state.settings.once,
    )
    facts = replace(facts, live=live, site=_with_site(facts, daemon))
    host = daemon.state.hosts.get(facts.host.name)
    if host is None:
        return facts
    clock = daemon.clock
    origin = facts.robots.url.removesuffix("/robots.txt")
    robots_until = max(daemon.crawl.robots.closed_until(origin), host.shut_until)
    closed_until = host.backoff.closed_until
    rested_at = host.rested_at(clock)
    # Quiet hours end on a minute; the way there and back over trio's clock is off by less.
    quiet_until = None if rested_at == -math.inf else float(round(clock.to_wall(rested_at)))
    if quiet_until is not None and closed_until is not None and quiet_until <= closed_until + 1.0:
        quiet_until = None
    is_closed = robots_until > trio.current_time()
    known = replace(
        _with_rate(facts.host, host, daemon),
        paused=host.paused,
        closed_until=closed_until,
        backoff_level=host.backoff.level,
        delay_s=host.delay_s(),
        base_delay_s=host.base_delay_s(),
        quiet_until=quiet_until,
        robots_closed_until=clock.to_wall(robots_until) if is_closed else None,
        next_at=clock.to_wall(host.slot.next_at) if math.isfinite(host.slot.next_at) else None,
        located=facts.host.located or host.slot.address is not None,
    )
    return replace(facts, host=known)


def _with_rate(known: HostFacts, host: HostState, daemon: Daemon) -> HostFacts:
    """Add the limit of requests or bytes per second that a host waits for."""
    gate = host.slot.gate
    if gate is None:
        return known
    if gate.holder is not None and gate.holder.gate is not None:
        gate = gate.holder.gate  # where the host waits that is the next of this one
    return replace(
        known,
        shared_rate=gate.name,
        rate_opens_at=daemon.clock.to_wall(max(gate.rate.next_at, trio.current_time())),
        rate_waiting=daemon.state.rates.waiting_for(gate),
    )


def _with_site(facts: UrlFacts, daemon: Daemon) -> SiteFacts | None:
    """Add the bytes that the file does not count yet, and which plug-in refuses a URL."""
    site = facts.site
    for site_id, active in daemon.state.sites.items():
        if site is None or active.name != site.name:
            continue
        refusing = None
        if facts.page is None and active.queue is not None:
            found = active.queue.refusal(facts.url, LINK_DEPTH)
            refusing = None if found is None else PluginFacts(*found)
        received = daemon.state.traffic.of(site_id)
        return replace(site, received_bytes=received, plugin=refusing)
    return site
