"""Causes that decide when a page is visited: pauses, waits, and its place in the queue.

See `causes.py` for their order.
"""

from __future__ import annotations

from typing import Final

from crawld.core.display import count_text, duration_text, plural, size_text, time_text
from crawld.core.page import GONE_GRACE_S, GONE_GRACE_VISITS, Outcome, PageState
from crawld.core.why.cause import Effect, VisitCause
from crawld.core.why.facts import AHEAD_SHOWN, UrlFacts
from crawld.core.why.found_cause import FoundCause
from crawld.core.why.words import failure_remedy, failure_words, moment, removal_words

# --- what is paused ---------------------------------------------------------------------------

FAULT_PAUSES: Final = frozenset({"disk", "disk_room", "network"})
"""Reasons of a pause that are faults; any other is the operator's."""


def stopping(facts: UrlFacts) -> FoundCause | None:
    """The daemon is shutting down."""
    if facts.live is None or not facts.live.stopping:
        return None
    return FoundCause(
        VisitCause.STOPPING, Effect.BLOCKS, "The daemon is shutting down.", "start it again"
    )


def everything_paused(facts: UrlFacts) -> FoundCause | None:
    """The operator paused everything."""
    if facts.live is None or not facts.live.pauses - FAULT_PAUSES:
        return None
    return FoundCause(
        VisitCause.EVERYTHING_PAUSED, Effect.BLOCKS, "Everything is paused.", "crawlctl resume"
    )


def disk(facts: UrlFacts) -> FoundCause | None:
    """Nothing can be written."""
    if facts.live is None or not facts.live.pauses & {"disk", "disk_room"}:
        return None
    text = "The disk is full or cannot be written, so nothing is fetched."
    return FoundCause(
        VisitCause.DISK, Effect.BLOCKS, text, "free some disk space; see: crawlctl status"
    )


def network_down(facts: UrlFacts) -> FoundCause | None:
    """The network is down."""
    if facts.live is None or "network" not in facts.live.pauses:
        return None
    text = "The network of this machine seems to be down: no host answers."
    return FoundCause(
        VisitCause.NETWORK_DOWN,
        Effect.BLOCKS,
        text,
        "check the network; the crawl resumes by itself",
    )


def site_paused(facts: UrlFacts) -> FoundCause | None:
    """Its site is paused."""
    site = facts.site
    if site is None or not site.paused or not site.configured:
        return None
    text, remedy = f"Its site {site.name} is paused.", f"crawlctl resume --site {site.name}"
    return FoundCause(VisitCause.SITE_PAUSED, Effect.BLOCKS, text, remedy)


def site_quota(facts: UrlFacts) -> FoundCause | None:
    """Its site has used up its monthly quota."""
    site = facts.site
    if site is None or site.monthly_bytes is None or site.received_bytes < site.monthly_bytes:
        return None
    text = (
        f"Site {site.name} has used up its {size_text(site.monthly_bytes)} of this month; "
        "it goes on next month (UTC)."
    )
    remedy = f"monthly_bytes of site {site.name}"
    return FoundCause(VisitCause.SITE_QUOTA, Effect.BLOCKS, text, remedy)


def host_paused(facts: UrlFacts) -> FoundCause | None:
    """Its host is paused."""
    host = facts.host
    if not host.paused:
        return None
    text, remedy = f"Its host {host.name} is paused.", f"crawlctl resume --host {host.name}"
    return FoundCause(VisitCause.HOST_PAUSED, Effect.BLOCKS, text, remedy)


# --- when it is due ---------------------------------------------------------------------------


def gone(facts: UrlFacts) -> FoundCause | None:
    """It is gone, and rarely looked for."""
    page = facts.page
    if page is None or page.state is not PageState.GONE:
        return None
    text = "It is gone: several visits over days did not find it, or its wiki says so."
    text += removal_words(facts, page) + " Its last copy is kept."
    if page.retry_at is not None:
        text += f" It is looked for again {moment(page.retry_at, facts.now)}."
    return FoundCause(VisitCause.GONE, Effect.DELAYS, text, until=page.retry_at)


def visited_once(facts: UrlFacts) -> FoundCause | None:
    """This run visits each page once."""
    page, live = facts.page, facts.live
    if live is None or not live.once or page is None or page.last_visit_at is None or page.failing:
        return None
    text = "This run visits each page once (--once), and it was visited."
    return FoundCause(VisitCause.VISITED_ONCE, Effect.BLOCKS, text, "crawld mirror without --once")


def robots_unreachable(facts: UrlFacts) -> FoundCause | None:
    """robots.txt cannot be read."""
    until = facts.host.robots_closed_until
    if until is None and facts.robots.verdict != "closed":
        return None
    status = f" (status {facts.robots.status})" if facts.robots.status is not None else ""
    text = f"{facts.robots.url} could not be read{status}; until it can, its pages wait."
    if until is not None:
        text += f" It is fetched again {moment(until, facts.now)}."
    return FoundCause(VisitCause.ROBOTS_UNREACHABLE, Effect.DELAYS, text, until=until)


def host_closed(facts: UrlFacts) -> FoundCause | None:
    """Its host sent a Retry-After."""
    host = facts.host
    if host.closed_until is None or host.closed_until <= facts.now:
        return None
    text = (
        f"{host.name} asked for no requests (Retry-After) until "
        f"{time_text(host.closed_until)}, in {duration_text(host.closed_until - facts.now)}."
    )
    remedy = f"crawlctl forgive {host.name}"
    return FoundCause(VisitCause.HOST_CLOSED, Effect.DELAYS, text, remedy, until=host.closed_until)


def quiet_hours(facts: UrlFacts) -> FoundCause | None:
    """Its host has quiet hours."""
    host = facts.host
    if host.quiet_until is None or host.quiet_until <= facts.now:
        return None
    text = f"Its host has quiet hours, until {time_text(host.quiet_until)}."
    remedy = "quiet_hours of the site or of [politeness]"
    return FoundCause(VisitCause.QUIET_HOURS, Effect.DELAYS, text, remedy, until=host.quiet_until)


def retry(facts: UrlFacts) -> FoundCause | None:
    """Its last visit failed or did not find it."""
    page = facts.page
    if page is None or page.last_outcome is None or page.state is PageState.GONE:
        return None
    lost = page.last_outcome in (Outcome.GONE, Outcome.SOFT_GONE)
    if not (page.failing or lost) or page.state in (PageState.EXCLUDED, PageState.SUSPENDED):
        return None
    detail = page.visits[0].detail if page.visits else None
    if lost:
        text = f"The last visit did not find it ({plural(page.gone_count, 'time')} in a row); "
        if facts.host.vanishing_since is None:
            days = duration_text(GONE_GRACE_S)
            text += f"it counts as gone after {GONE_GRACE_VISITS} times over {days}."
        else:
            text += "so many pages of its host vanish that none counts as gone."
    else:
        times = f" ({count_text(page.failure_count)} times in a row)"
        text = f"The last visit failed{times if page.failure_count > 1 else ''}: "
        text += f"{failure_words(page.last_failure, detail)}."
    if page.retry_at is not None:
        text += f" It is tried again {moment(max(page.retry_at, facts.now), facts.now)}."
    remedy = "" if lost else failure_remedy(page.last_failure)
    return FoundCause(VisitCause.RETRY, Effect.DELAYS, text, remedy, until=page.retry_at)


def host_backoff(facts: UrlFacts) -> FoundCause | None:
    """Its host gets fewer requests after trouble."""
    host = facts.host
    if not host.backoff_level:
        return None
    text = (
        f"After trouble, {host.name} gets one request every {duration_text(host.delay_s)} instead "
        f"of every {duration_text(host.base_delay_s)}; each good answer after a quiet minute "
        "halves that."
    )
    remedy = f"crawlctl forgive {host.name}"
    return FoundCause(VisitCause.HOST_BACKOFF, Effect.FETCHED, text, remedy)


def no_address(facts: UrlFacts) -> FoundCause | None:
    """The address of its host is not known."""
    if facts.host.located or facts.page is None:
        return None
    text = f"No address of {facts.host.name} is known yet (DNS)."
    return FoundCause(VisitCause.NO_ADDRESS, Effect.DELAYS, text, "check the name; [dns] hosts")


def quarantined(facts: UrlFacts) -> FoundCause | None:
    """It is stored without analysis."""
    page = facts.page
    if page is None or page.quarantined is None:
        return None
    what = "decompressed or analysed" if page.quarantined == "decoding" else "analysed"
    text = (
        f"It froze or killed the process, so it is fetched and stored, but not {what}: it has no "
        "title, no links and no search."
    )
    return FoundCause(
        VisitCause.QUARANTINED,
        Effect.FETCHED,
        text,
        "crawlctl quarantine release URL analyses it again",
    )


def removed(facts: UrlFacts) -> FoundCause | None:
    """Its wiki reports it as deleted or moved."""
    page = facts.page
    if page is None or page.removal is None or page.state is PageState.GONE:
        return None
    text = f"{removal_words(facts, page).strip()} A visit confirms it next."
    return FoundCause(VisitCause.REMOVED, Effect.FETCHED, text)


def redirect(facts: UrlFacts) -> FoundCause | None:
    """It redirects."""
    page = facts.page
    if page is None or page.redirect_url is None:
        return None
    known = "" if page.redirect_known else ", which is no page of the mirror"
    text = f"It redirects to {page.redirect_url}{known}; ask about that URL."
    return FoundCause(VisitCause.REDIRECT, Effect.FETCHED, text)


def hinted(facts: UrlFacts) -> FoundCause | None:
    """A source reports a change."""
    page = facts.page
    if page is None or not page.hints or page.last_visit_at is None:
        return None
    first = page.hints[0]
    source = first.source.replace("_", " ")
    text = (
        f"A source ({source}) reported a change {moment(first.at, facts.now)}: its host visits "
        "reported pages before new pages and revisits."
    )
    return FoundCause(VisitCause.HINTED, Effect.FETCHED, text)


def never_visited(facts: UrlFacts) -> FoundCause | None:
    """It waits for its first visit."""
    page, host = facts.page, facts.host
    if page is None or page.last_visit_at is not None or page.state is not PageState.DISCOVERED:
        return None
    if page.ahead >= AHEAD_SHOWN:
        before = f"more than {count_text(AHEAD_SHOWN)} pages are"
    elif page.ahead:
        before = "1 page is" if page.ahead == 1 else f"{count_text(page.ahead)} pages are"
    else:
        before = "no page of its host is"
    text = f"It was never visited and waits for its turn: {before} before it in the queue."
    wait_s = page.ahead * host.delay_s
    if wait_s >= 60.0:
        text += f" One request every {duration_text(host.delay_s)} makes that about "
        text += f"{duration_text(wait_s)} or more."
    remedy = "host_delay_s of the site, if you may; [schedule] discovery_share"
    until = facts.now + wait_s if wait_s else None
    return FoundCause(VisitCause.NEVER_VISITED, Effect.DELAYS, text, remedy, until=until)


def rests(facts: UrlFacts) -> FoundCause | None:
    """It rests after a visit."""
    page, site = facts.page, facts.site
    if page is None or site is None or page.last_visit_at is None or page.hints:
        return None
    if page.state is not PageState.VISITED or page.failing:
        return None
    if page.requisite and page.retry_at is not None and page.retry_at > facts.now:
        text = "It was visited; images, styles, scripts and fonts rest for half of their age."
        return FoundCause(VisitCause.RESTS, Effect.DELAYS, text, until=page.retry_at)
    until = page.last_visit_at + site.min_revisit_s
    if page.retry_at is not None or until <= facts.now:
        return None
    text = (
        f"It was visited {moment(page.last_visit_at, facts.now)} and rests for "
        f"{duration_text(site.min_revisit_s)} after a visit."
    )
    return FoundCause(
        VisitCause.RESTS, Effect.DELAYS, text, "[schedule] min_revisit_s", until=until
    )


def queued(facts: UrlFacts) -> FoundCause | None:
    """It is due, and the policy picks it."""
    page, site, host = facts.page, facts.site, facts.host
    if page is None or site is None or page.last_visit_at is None:
        return None
    if page.state is not PageState.VISITED or page.failing:
        return None
    if page.requisite:
        text = "Its host gives images, styles, scripts and fonts a share of its requests."
        return FoundCause(VisitCause.QUEUED, Effect.FETCHED, text, "[schedule] requisite_share")
    chosen = {
        "index": "the page whose visit gains most freshness",
        "uniform": "the page unvisited for the longest time",
    }.get(site.policy, f"a page by the policy {site.policy}")
    round_s = host.visited * host.delay_s
    text = f"Its host then picks {chosen}, among {plural(host.visited, 'visited page')}"
    text += f"; a round of all takes about {duration_text(round_s)}." if round_s >= 60.0 else "."
    remedy = "weights of the site, [schedule] policy, host_delay_s"
    return FoundCause(VisitCause.QUEUED, Effect.FETCHED, text, remedy)


def robots_unread(facts: UrlFacts) -> FoundCause | None:
    """robots.txt is fetched first."""
    if facts.robots.verdict is not None or facts.site is None:
        return None
    text = f"{facts.robots.url} was not read yet; it is fetched first and may forbid the URL."
    return FoundCause(VisitCause.ROBOTS_UNREAD, Effect.FETCHED, text)


def host_delay(facts: UrlFacts) -> FoundCause | None:
    """The delay of its host runs."""
    host = facts.host
    if host.next_at is None or host.next_at <= facts.now or facts.page is None:
        return None
    text = (
        f"The next request to {host.name} is in {duration_text(host.next_at - facts.now)}, by the "
        f"delay of {duration_text(host.delay_s)}."
    )
    return FoundCause(
        VisitCause.HOST_DELAY, Effect.DELAYS, text, "host_delay_s", until=host.next_at
    )


def shared_rate(facts: UrlFacts) -> FoundCause | None:
    """A rate that its host shares with others is used up."""
    host = facts.host
    if host.shared_rate is None or facts.page is None:
        return None
    others = plural(max(host.rate_waiting - 1, 0), "other host")
    text = f"{host.name} and {others} wait for the limit of {host.shared_rate}"
    left_s = host.rate_opens_at - facts.now
    text += f"; the next of them has its turn in {duration_text(left_s)}." if left_s >= 1.0 else "."
    return FoundCause(
        VisitCause.SHARED_RATE,
        Effect.DELAYS,
        text,
        "max_requests_per_s, max_bytes_per_s",
        until=host.rate_opens_at if left_s >= 1.0 else None,
    )
