"""Collect the facts about a URL from the file; the daemon adds what only it knows.

Everything is looked up by key, so that the cost does not depend on how many pages there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import apsw

from crawld.config.model import Config
from crawld.config.places import ConfigPlaces
from crawld.core.change.model import PageModel
from crawld.core.display import time_text
from crawld.core.page import Outcome, PageState
from crawld.core.politeness import Backoff, base_delay_s, clamp_restored
from crawld.core.robots import Robots, RobotsVerdict, deciding_line
from crawld.core.traps import detect_trap
from crawld.core.url import Url, split_url
from crawld.core.url_growth import UrlGrowth, wildcard
from crawld.core.why.facts import (
    AHEAD_SHOWN,
    ConfigPlace,
    DuplicateFacts,
    GrowthFacts,
    HintFacts,
    HostFacts,
    PageFacts,
    RefusalFacts,
    ReplicaFacts,
    RobotsFacts,
    SiteFacts,
    UrlFacts,
    VisitFacts,
)
from crawld.core.why.words import change_words
from crawld.daemon.api.replica_views import replica_facts
from crawld.daemon.api.why_wiki import WikiOfUrl
from crawld.daemon.fetch.metered_fetcher import month_of
from crawld.daemon.frontier.site import ActiveSite
from crawld.daemon.visit.content import PRODUCT
from crawld.store import visit_log
from crawld.store.changes import hint
from crawld.store.frontier import (
    dust,
    page_share,
    quarantine,
    server,
    tombstone,
    traffic,
    unvisited,
    url_pattern,
)
from crawld.store.frontier import host as host_rows
from crawld.store.frontier import page as page_rows
from crawld.store.frontier import refusal as refusal_rows
from crawld.store.frontier import site as site_rows
from crawld.store.frontier.host import HostRow, OriginRobots
from crawld.store.frontier.page import PageRecord
from crawld.store.mirror.selection import Reason, ShownCopy, select_copy

VISITS_SHOWN: Final = 5
"""Last visits in an answer."""

LINK_DEPTH: Final = 1
"""Depth at which a URL is judged that nobody knows: as a link on a seed."""

_BY_FIT: Final = (None, "wiki", "include", "exclude", "depth", "host", "scheme")
"""Refusals of a scope, the one of the best fitting site first."""


@dataclass(frozen=True, slots=True)
class Question:
    """A URL, and the configuration in force.

    Attributes:
        given: as it was asked for; `url` is its canonical form.
        sites: the sites under crawl by number.
        places: lines of the config file; None: there is none.
        now: Unix seconds.
    """

    given: str
    url: str
    sites: Mapping[int, ActiveSite]
    config: Config
    places: ConfigPlaces | None
    now: float


def read_facts(connection: apsw.Connection, question: Question) -> UrlFacts:
    """Return what the file tells about a URL."""
    url, now = question.url, question.now
    parts = split_url(url)
    purged = tombstone.get(connection, url)
    record = page_rows.by_url(connection, url)
    if record is not None and record.url != url:  # a former URL of the page
        return read_facts(connection, replace(question, url=record.url))
    row = host_rows.by_name(connection, parts.host)
    of_wiki = WikiOfUrl(connection, url)
    site = _site_of(of_wiki, question, parts, record)
    stored = host_rows.origin_robots(connection, parts.origin)
    page_id = record.page_id if record is not None else None
    return UrlFacts(
        given=question.given,
        url=url,
        now=now,
        purged_at=purged.purged_at if purged else None,
        purge_reason=purged.reason if purged else None,
        robots=_robots(connection, parts, stored),
        host=_host(parts.host, row, site, stored, now),
        site=_site_facts(connection, of_wiki, question, parts, record, site),
        page=_page(connection, record, now) if record is not None else None,
        replica=_replica(connection, url, page_id),
        duplicate=_duplicate(connection, url, parts.origin, site),
        part=of_wiki.part(site) if site is not None else None,
        refused=_refusal(connection, parts) if record is None else None,
        sites=tuple(sorted(each.name for each in question.sites.values())),
    )


def _replica(connection: apsw.Connection, url: str, page_id: int | None) -> ReplicaFacts | None:
    own = server.of_url(connection, url)
    return replica_facts(connection, own.server_id, url, page_id) if own is not None else None


def _duplicate(
    connection: apsw.Connection, url: str, origin: str, site: ActiveSite | None
) -> DuplicateFacts | None:
    """Return the URL that stands for a URL by the rules of its origin."""
    if site is not None and not site.config.dust:
        return None
    rules = dust.applied_rules(connection, origin=origin).get(origin)
    found = rules.apply(url) if rules is not None else None
    if found is None:
        return None
    numbers = {row.rule: row.dust_rule_id for row in dust.list_rules(connection, origin=origin)}
    reasons = tuple(rule.rewrite.words() for rule in found.used)
    return DuplicateFacts(found.url, reasons, numbers[found.used[0]])


# --- the site ---------------------------------------------------------------------------------


def _site_of(
    of_wiki: WikiOfUrl, question: Question, parts: Url, record: PageRecord | None
) -> ActiveSite | None:
    """Return the site of a page, or the one that fits a URL best that is no page yet."""
    if record is not None:
        return question.sites.get(record.site_id)

    def fit(site: ActiveSite) -> int:
        refusal = site.scope.refusal(question.url, parts.host, LINK_DEPTH)
        if refusal is None and of_wiki.refusal(site) is not None:
            refusal = "wiki"
        return _BY_FIT.index(refusal)

    return min(question.sites.values(), key=fit, default=None)


def _site_facts(
    connection: apsw.Connection,
    of_wiki: WikiOfUrl,
    question: Question,
    parts: Url,
    record: PageRecord | None,
    site: ActiveSite | None,
) -> SiteFacts | None:
    if site is None:
        gone = site_rows.get(connection, record.site_id) if record is not None else None
        return SiteFacts(name=gone.name, source=gone.source, configured=False) if gone else None
    row = site_rows.get(connection, site.site_id)
    url = question.url
    if record is not None and record.requisite:
        refusal = site.refuses_requisite(url, parts.host)
    else:
        depth = LINK_DEPTH if record is None else record.depth
        refusal = site.scope.refusal(url, parts.host, depth)
    at = site.scope.excluding_rule(url) if refusal == "exclude" else None
    rule = None if at is None else site.config.exclude[at]
    if refusal is None and (included := site.scope.including_rule(url)) is not None:
        rule = site.config.include[included]
    wiki_refusal = of_wiki.refusal(site)
    limit = site.config.max_pages
    shared = page_share.sites_of(connection, record.page_id) if record is not None else []
    received = traffic.of_month(connection, month_of(question.now))
    return SiteFacts(
        name=site.name,
        source=row.source if row is not None else "config",
        paused=site.paused,
        refusal=refusal,
        rule=rule,
        place=question.places.site(site.name) if question.places else None,
        rule_place=_rule_place(question.places, site, refusal, wiki_refusal, at),
        cap_place=question.places.site_key(site.name, "max_pages") if question.places else None,
        wiki_refusal=wiki_refusal,
        trap=detect_trap(url, site.traps, question.now),
        growth=_growth(connection, parts) if record is None else None,
        max_depth=site.config.max_depth,
        max_pages=limit,
        pages=row.page_count if row is not None else 0,
        max_pages_per_host=site.traps.max_pages_per_host,
        monthly_bytes=site.config.monthly_bytes,
        received_bytes=received.get(site.site_id, 0),
        min_revisit_s=question.config.schedule.min_revisit_s,
        policy=site.policy,
        shared_with=tuple(question.sites[each].name for each in shared if each in question.sites),
    )


def _growth(connection: apsw.Connection, parts: Url) -> GrowthFacts | None:
    hosts = [parts.host, *filter(None, [wildcard(parts.host)])]
    known = hosts[:1] if host_rows.by_name(connection, parts.host) is not None else ()
    growth = UrlGrowth(known)
    growth.restore(url_pattern.of_hosts(connection, hosts))
    ended = growth.ended(parts.host, parts.target)
    if ended is None:
        return None
    return GrowthFacts(ended.host, ended.pattern, ended.pages, ended.fresh)


def _rule_place(
    places: ConfigPlaces | None,
    site: ActiveSite,
    refusal: str | None,
    wiki_refusal: str | None,
    at: int | None,
) -> ConfigPlace | None:
    """Return the line of the rule or key that refuses a URL, else that of the site."""
    if places is None:
        return None
    if refusal == "exclude" and at is not None:
        return places.site_key(site.name, "exclude", at, value=site.config.exclude[at])
    key = {"include": "include", "depth": "max_depth", "requisite": "requisites"}.get(refusal or "")
    if key is None and wiki_refusal == "wiki_part":
        named = ("wiki_titles", "wiki_categories", "wiki_prefixes", "titles_file")
        key = next((each for each in named if getattr(site.config, each)), None)
    return places.site(site.name) if key is None else places.site_key(site.name, key)


# --- robots.txt and host ------------------------------------------------------------------------


def _robots(connection: apsw.Connection, parts: Url, stored: OriginRobots | None) -> RobotsFacts:
    file_url = f"{parts.origin}/robots.txt"
    if stored is None:
        return RobotsFacts(url=file_url)
    allowed: bool | None = True
    line = None
    if (
        stored.verdict is RobotsVerdict.CLOSED
        or quarantine.step_of_url(connection, file_url) is not None
    ):
        allowed = None
    elif stored.verdict is RobotsVerdict.RULES and stored.text:
        allowed = Robots.parse(stored.text, PRODUCT).allowed(parts.canonical)
        line = deciding_line(stored.text, PRODUCT, parts.canonical)
    decides = line if line is not None and line.allows == allowed else None
    return RobotsFacts(
        url=file_url,
        verdict=stored.verdict.value,
        status=stored.status,
        fetched_at=stored.fetched_at,
        allowed=allowed,
        line=decides.number if decides else None,
        text=decides.text[:200] if decides else None,
    )


def _host(
    name: str,
    row: HostRow | None,
    site: ActiveSite | None,
    stored: OriginRobots | None,
    now: float,
) -> HostFacts:
    """Return the host as the file knows it."""
    base_s = 0.0
    quiet_until = None
    if site is not None:
        crawl_delay_s = stored.crawl_delay_s if stored and site.respect_crawl_delay else None
        base_s = base_delay_s(site.rules, crawl_delay_s, None)
        quiet_until = site.rules.quiet_hours.open_at(now)
    if row is None:
        return HostFacts(name=name, delay_s=base_s, base_delay_s=base_s, quiet_until=quiet_until)
    backoff = clamp_restored(Backoff(row.backoff_level, row.backoff_at, row.closed_until), now)
    return HostFacts(
        name=name,
        paused=row.paused,
        pages=row.page_count,
        visited=row.pages_visited,
        closed_until=backoff.closed_until,
        backoff_level=backoff.level,
        backoff_at=backoff.at,
        delay_s=backoff.delay_s(base_s),
        base_delay_s=base_s,
        quiet_until=quiet_until,
        located=row.address is not None or stored is not None,
        vanishing_since=row.vanishing_since,
    )


# --- the page -----------------------------------------------------------------------------------


def _page(connection: apsw.Connection, record: PageRecord, now: float) -> PageFacts:
    page_id = record.page_id
    found_on = None
    if record.referrer_id is not None:
        referrer = page_rows.for_visit(connection, record.referrer_id)
        found_on = referrer.url if referrer is not None else None
    visits = visit_log.of_page(connection, page_id, limit=VISITS_SHOWN)
    shown = select_copy(connection, page_id, now)
    removal = shown.removal if shown is not None else None
    waits = record.state is PageState.DISCOVERED
    return PageFacts(
        state=record.state,
        depth=record.depth,
        seed=record.seed,
        requisite=record.requisite,
        title=record.title,
        discovered_at=record.discovered_at,
        found_on=found_on,
        last_visit_at=record.last_visit_at,
        last_change_at=record.last_change_at,
        last_outcome=record.last_outcome,
        last_failure=record.last_failure,
        visit_count=record.visit_count,
        change_count=record.change_count,
        failure_count=record.failure_count,
        gone_count=record.grace.count,
        retry_at=record.retry_at,
        redirect_url=record.redirect_url,
        redirect_known=_is_page(connection, record.redirect_url),
        ahead=unvisited.count_before(connection, page_id, AHEAD_SHOWN) if waits else 0,
        quarantined=quarantine.step_of_page(connection, page_id, record.url),
        hints=tuple(HintFacts(*each) for each in hint.of_page(connection, page_id)),
        visits=tuple(
            VisitFacts(each.visited_at, each.outcome, each.failure, each.detail, each.status)
            for each in visits
        ),
        change="" if record.requisite else change_words(_model(record.model)),
        copy_id=shown.version_id if shown is not None else None,
        copy_note=_copy_note(record, shown),
        removal=removal.kind if removal is not None else None,
        removed_at=removal.at if removal is not None else None,
        moved_to=removal.target_url if removal is not None else None,
    )


def _is_page(connection: apsw.Connection, url: str | None) -> bool:
    if url is None:
        return False
    return page_rows.by_url(connection, url) is not None


def _refusal(connection: apsw.Connection, parts: Url) -> RefusalFacts | None:
    """Return the last refusal of a URL, if it is the example of its count."""
    for each in refusal_rows.of_host(connection, parts.host):
        if each.example == parts.canonical:
            return RefusalFacts(each.reason, each.last_at)
    return None


def _model(stored: bytes | None) -> PageModel | None:
    try:
        return PageModel.from_bytes(stored) if stored is not None else None
    except ValueError:
        return None


def _copy_note(record: PageRecord, shown: ShownCopy | None) -> str:
    """Return what readers of the mirror see of a page."""
    if shown is not None and shown.withheld:
        left = not shown.gone and shown.removal is None
        cause = "it left its part of the wiki" if left else "the original is gone"
        return f"withheld from readers, since {cause} (deleted_pages of its site)"
    if shown is None or shown.version_id is None:
        forbids = record.last_outcome is Outcome.BLOCKED and record.last_failure == "robots"
        return "none: the page forbids copies of itself (noarchive)" if forbids else "none stored"
    if shown.reason is Reason.PINNED:
        return "an older one, pinned by the operator (crawlctl pin --release)"
    if shown.reason is Reason.SETTLED:
        return "an older one, until the newest has been current for settle_s of its site"
    if shown.gone or shown.removal is not None:
        return "the last one, shown with the note that the original is gone"
    if shown.left_at is not None:
        return "the last one, shown with the note that the page left its part of the wiki"
    since = record.last_change_at
    return "the newest" if since is None else f"the newest, stored {time_text(since)}"
