"""Compose the answer to why a URL was, or was not, fetched; the same online and offline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crawld.core.page import PageState
from crawld.core.url import server_name
from crawld.core.why.cause import Effect, VisitCause
from crawld.core.why.causes import find_causes, next_visit_at
from crawld.core.why.facts import ConfigPlace, PageFacts, UrlFacts
from crawld.core.why.found_cause import FoundCause
from crawld.core.why.replica_words import page_words, replica_words
from crawld.core.why.words import moment, visit_words
from crawld.daemon.api.schemas import why as schemas

NOT_NOW: Final = frozenset(
    {
        *(
            VisitCause.STOPPING,
            VisitCause.EVERYTHING_PAUSED,
            VisitCause.DISK,
            VisitCause.NETWORK_DOWN,
        ),
        *(VisitCause.SITE_PAUSED, VisitCause.SITE_QUOTA, VisitCause.HOST_PAUSED),
    }
)
"""Causes that pass."""


def answer(facts: UrlFacts, not_known: Sequence[str] = ()) -> schemas.Why:
    """Return the answer that the facts give; `not_known` lists what they leave out."""
    found = find_causes(facts)
    at = next_visit_at(facts, found)
    site, host, page, robots = facts.site, facts.host, facts.page, facts.robots
    return schemas.Why(
        given=facts.given,
        url=facts.url,
        at=facts.now,
        live=facts.live is not None,
        known=page is not None,
        answer=_answer_text(found[0], page),
        causes=[_cause(each) for each in found],
        next_visit_at=at,
        next_visit_text=_next_text(facts, found, at),
        site=None
        if site is None
        else schemas.WhySite(
            name=site.name,
            refusal=site.refusal or site.wiki_refusal,
            rule=site.rule,
            pages_in_all=site.pages,
            max_pages=site.max_pages,
            max_pages_per_host=site.max_pages_per_host,
            source=site.source,
            configured=site.configured,
            paused=site.paused,
            place=_place(site.place),
            shared_with=list(site.shared_with),
        ),
        robots=schemas.WhyRobots(
            url=robots.url,
            verdict=robots.verdict,
            status=robots.status,
            fetched_at=robots.fetched_at,
            allowed=robots.allowed,
            line=robots.line,
            text=robots.text,
        ),
        host=schemas.WhyHost(
            host=host.name,
            paused=host.paused,
            pages_in_all=host.pages,
            delay_s=host.delay_s,
            base_delay_s=host.base_delay_s,
            backoff_level=host.backoff_level,
            closed_until=host.closed_until,
            replica_of=facts.replica.canonical_host if facts.replica else None,
            replica_status=facts.replica.status if facts.replica else None,
            replica_text=_replica_text(facts),
        ),
        page=_page(page) if page is not None else None,
        part=schemas.WhyPart(title=facts.part.title, reasons=list(facts.part.reasons))
        if facts.part
        else None,
        trap=site.trap if site is not None else None,
        not_known=list(not_known),
    )


def _replica_text(facts: UrlFacts) -> str:
    """Return why the host rests; and about a page that does not rest, why it does not."""
    replica, page = facts.replica, facts.page
    if replica is None:
        return ""
    text = replica_words(server_name(facts.url), replica, facts.now)
    if page is not None and page.state is not PageState.SUSPENDED:
        text = f"{text} {page_words(replica, facts.now)}".strip()
    return text


def _answer_text(first: FoundCause, page: PageFacts | None) -> str:
    visited = page is not None and page.last_visit_at is not None
    if first.effect is Effect.BLOCKS and first.cause in NOT_NOW:
        return f"It is not fetched now. {first.text}"
    if first.effect is Effect.BLOCKS:
        return f"It is not fetched{' any more' if visited else ''}. {first.text}"
    if first.effect is Effect.DELAYS:
        return f"It is fetched{' again' if visited else ''} later. {first.text}"
    return f"It is {'visited regularly' if visited else 'to be fetched'}. {first.text}"


def _next_text(facts: UrlFacts, found: list[FoundCause], at: float | None) -> str:
    if at is None:
        first = next(each for each in found if each.effect is Effect.BLOCKS)
        return "none while this lasts" if first.cause in NOT_NOW else "none is planned"
    if at <= facts.now:
        return "as soon as its turn comes"
    return f"{moment(at, facts.now)} at the earliest"


def _cause(each: FoundCause) -> schemas.WhyCause:
    return schemas.WhyCause(
        cause=each.cause,
        effect=each.effect,
        text=each.text,
        remedy=each.remedy,
        until=each.until,
        place=_place(each.place),
    )


def _place(place: ConfigPlace | None) -> schemas.WhyPlace | None:
    return None if place is None else schemas.WhyPlace(file=place.file, line=place.line)


def _page(page: PageFacts) -> schemas.WhyPage:
    return schemas.WhyPage(
        state=page.state,
        title=page.title,
        depth=page.depth,
        seed=page.seed,
        requisite=page.requisite,
        discovered_at=page.discovered_at,
        found_on=page.found_on,
        visit_count=page.visit_count,
        change_count=page.change_count,
        failure_count=page.failure_count,
        redirect_url=page.redirect_url,
        ahead=page.ahead,
        version_id=page.copy_id,
        copy_text=page.copy_note,
        change=page.change,
        hints=[schemas.WhyHint(source=each.source, at=each.at) for each in page.hints],
        visits=[
            schemas.WhyVisit(
                visited_at=each.at,
                outcome=each.outcome,
                failure=each.failure,
                status=each.status,
                text=visit_words(each),
            )
            for each in page.visits
        ],
    )
