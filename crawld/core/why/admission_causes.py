"""Causes that decide whether a URL may be a page, and whether it is one; see `causes.py`."""

from __future__ import annotations

from typing import Final

from crawld.core.display import count_text, plural
from crawld.core.page import PageState
from crawld.core.url import server_name
from crawld.core.why.cause import Effect, VisitCause
from crawld.core.why.facts import SiteFacts, UrlFacts
from crawld.core.why.found_cause import FoundCause
from crawld.core.why.replica_words import page_words
from crawld.core.why.words import moment, refusal_words, removal_words, trap_words

_Text = tuple[str, str]


def purged(facts: UrlFacts) -> FoundCause | None:
    """The operator purged it."""
    if facts.purged_at is None:
        return None
    reason = f" Reason: {facts.purge_reason}." if facts.purge_reason else ""
    text = f"The operator purged it {moment(facts.purged_at, facts.now)}: it never comes back."
    return FoundCause(
        VisitCause.PURGED, Effect.BLOCKS, text + reason, "crawlctl purge --release URL"
    )


def no_site(facts: UrlFacts) -> FoundCause | None:
    """No site covers it."""
    site = facts.site
    if site is not None and (facts.page is not None or site.refusal not in ("host", "scheme")):
        return None
    known = f" Sites: {', '.join(facts.sites[:10])}." if facts.sites else " There is no site."
    text = f"No site covers the host {facts.host.name}, and no page there is known.{known}"
    remedy = "crawlctl add URL makes a site of it; hosts of a [[site]] adds the host to one"
    return FoundCause(VisitCause.NO_SITE, Effect.BLOCKS, text, remedy)


def site_removed(facts: UrlFacts) -> FoundCause | None:
    """Its site is no longer configured."""
    site = facts.site
    if site is None or site.configured:
        return None
    text = f"Its site {site.name} is no longer configured; its copies are kept."
    return FoundCause(
        VisitCause.SITE_REMOVED,
        Effect.BLOCKS,
        text,
        f"put [[site]] {site.name} back, or crawlctl add",
    )


def scope(facts: UrlFacts) -> FoundCause | None:
    """The scope of its site refuses it."""
    site, page = facts.site, facts.page
    if site is None or site.refusal is None or (page is None and site.refusal == "host"):
        return None
    if page is not None and page.seed and not page.requisite:
        return None  # a seed is visited wherever it is
    text, remedy = _scope_words(facts, site)
    return FoundCause(VisitCause.SCOPE, Effect.BLOCKS, text, remedy, place=site.rule_place)


def _scope_words(facts: UrlFacts, site: SiteFacts) -> _Text:
    depth, host = facts.page.depth if facts.page else 1, facts.host.name
    named = f"site {site.name}"
    seed = f"crawlctl add --site {site.name} URL makes it a seed"
    words: dict[str, _Text] = {
        "depth": (
            f"It is {plural(depth, 'link')} from a seed, and {named} follows "
            f"{site.max_depth} (max_depth).",
            f"raise max_depth of {named}, or: {seed}",
        ),
        "host": (
            f"Its host {host} does not belong to {named}.",
            f"hosts or subdomains of {named}",
        ),
        "exclude": (
            f'{named.capitalize()} excludes it by the rule "{site.rule}".',
            f"exclude of {named}, then crawlctl reload",
        ),
        "include": (
            f"It matches none of the include rules of {named}.",
            f"include of {named}, then crawlctl reload",
        ),
        "requisite": (
            f"{named.capitalize()} mirrors no images, styles, scripts and fonts.",
            f"requisites of {named}",
        ),
        "requisite_host": (
            f"{named.capitalize()} loads no images, styles, scripts and fonts from {host}.",
            f"requisite_hosts of {named}",
        ),
    }
    return words.get(site.refusal or "", (f"{named.capitalize()} refuses it: {site.refusal}.", ""))


def wiki_part(facts: UrlFacts) -> FoundCause | None:
    """It is outside of the part of a wiki that its site covers."""
    site, page, part = facts.site, facts.page, facts.part
    if site is None or site.wiki_refusal is None or (page is not None and page.seed):
        return None
    if page is not None and page.requisite:
        return None
    title = f'"{part.title}"' if part is not None and part.title else "It"
    keys = "wiki_titles, wiki_categories or wiki_prefixes"
    if site.wiki_refusal == "wiki_view":
        text, remedy = "It is a view of a wiki page (history, edit form, old version).", ""
    elif site.wiki_refusal == "wiki_talk":
        text = f"{title} is a discussion page."
        remedy = f"wiki_talk of site {site.name}"
    elif part is None or not part.known:
        text = f"The wiki of site {site.name} has not been asked yet which titles belong to it."
        remedy = "crawlctl run-job members"
    elif page is not None and page.visit_count:
        text = (
            f"{title} has left the part of the wiki that site {site.name} covers: no listed title, "
            "category or prefix names it any more. Its copies are kept."
        )
        text += removal_words(facts, page)
        remedy = f"{keys} of site {site.name}"
    else:
        text = f"{title} is not in the part of the wiki that site {site.name} covers."
        remedy = f"{keys} of site {site.name}"
    return FoundCause(VisitCause.WIKI_PART, Effect.BLOCKS, text, remedy, place=site.rule_place)


def trap(facts: UrlFacts) -> FoundCause | None:
    """It looks like a trap for crawlers."""
    site = facts.site
    if site is None or site.trap is None or facts.page is not None:
        return None
    words, key = trap_words(site.trap)
    text = f"It looks like a trap for crawlers: {words}."
    return FoundCause(VisitCause.TRAP, Effect.BLOCKS, text, f"[frontier] {key}" if key else "")


def growth(facts: UrlFacts) -> FoundCause | None:
    """URLs of its form grow without new content."""
    site = facts.site
    if site is None or site.growth is None or facts.page is not None:
        return None
    ended = site.growth
    text = (
        f"Links of the form {ended.host}{ended.pattern} are not followed any more: they led to "
        f"{plural(ended.pages, 'page')}, of which {count_text(ended.fresh)} had new text. One a "
        "day is still tried."
    )
    seed = f"crawlctl add --site {site.name} URL makes it a seed"
    return FoundCause(VisitCause.GROWTH, Effect.BLOCKS, text, seed)


def plugin(facts: UrlFacts) -> FoundCause | None:
    """A plug-in refuses it."""
    site = facts.site
    if site is None or site.plugin is None or facts.page is not None:
        return None
    refusing = site.plugin
    why = f": {refusing.why}" if refusing.why else ", and gives no reason"
    text = f"The plug-in {refusing.name} refuses it{why}."
    remedy = f"its [[plugin]] block; or crawlctl add --site {site.name} URL makes it a seed"
    return FoundCause(VisitCause.PLUGIN, Effect.BLOCKS, text, remedy)


def robots(facts: UrlFacts) -> FoundCause | None:
    """robots.txt forbids it."""
    robots, page = facts.robots, facts.page
    excluded = page is not None and page.robots_excluded
    if robots.allowed is not False and not excluded:
        return None
    remedy = "only its webmaster can; robots.txt is read again within a day"
    if robots.allowed is False and robots.line is not None:
        text = f'robots.txt forbids it by line {robots.line}: "{robots.text}".'
    elif robots.allowed is False:
        text = "robots.txt has more rules than are matched exactly, so it counts as forbidden."
    else:
        text = "robots.txt forbade it when its turn came; the rules are checked again as they read."
    if page is not None and not excluded:
        text += " It is left out when its turn comes."
    return FoundCause(VisitCause.ROBOTS, Effect.BLOCKS, text, remedy)


def replica(facts: UrlFacts) -> FoundCause | None:
    """Its host is a replica of another."""
    replica, page = facts.replica, facts.page
    if replica is None or page is None or page.state is not PageState.SUSPENDED:
        return None
    text = f"It rests, and {replica.canonical_host} is visited instead."
    if compared := page_words(replica, facts.now):
        text += f" {compared}"
    elif replica.canonical_url is not None:
        text += f" Its copy there: {replica.canonical_url}"
    hosts = f"{server_name(facts.url)} {replica.canonical_host}"
    remedy = f"crawlctl replicas reject {hosts}, if they are two sites"
    until = replica.page.visit_at if replica.page is not None else None
    effect = Effect.BLOCKS if until is None else Effect.DELAYS
    return FoundCause(VisitCause.REPLICA, effect, text, remedy, until=until)


def duplicate(facts: UrlFacts) -> FoundCause | None:
    """Another URL shows the same page, and is visited instead."""
    same, page = facts.duplicate, facts.page
    hidden = page is None or page.state is PageState.SUSPENDED
    if same is None or not hidden or (page is not None and page.seed):
        return None
    text = f"It shows the same page as {same.url}: {'; '.join(same.reasons)}."
    if page is not None and page.visit_count:
        text += " Its copies are kept."
    remedy = f"crawlctl dust revoke {same.number}, if it shows another page"
    return FoundCause(VisitCause.DUPLICATE, Effect.BLOCKS, text, remedy)


def cap(facts: UrlFacts) -> FoundCause | None:
    """Its site or host has as many pages as it may."""
    site, host = facts.site, facts.host
    if site is None or facts.page is not None:
        return None
    if site.max_pages is not None and site.pages >= site.max_pages:
        text = f"Site {site.name} has its {plural(site.max_pages, 'page')} (max_pages)."
        remedy = f"raise max_pages of site {site.name}"
        return FoundCause(VisitCause.CAP, Effect.BLOCKS, text, remedy, place=site.cap_place)
    most = site.max_pages_per_host
    if most is not None and host.pages >= most:
        text = f"The host {host.name} has its {plural(most, 'page')} (max_pages_per_host)."
        return FoundCause(
            VisitCause.CAP, Effect.BLOCKS, text, "raise [frontier] max_pages_per_host"
        )
    return None


def unknown(facts: UrlFacts) -> FoundCause | None:
    """It was never seen."""
    if facts.page is not None:
        return None
    if facts.refused is None:
        text = "It was never seen: no page that was read names it, no seed, no sitemap."
    else:
        when = moment(facts.refused.at, facts.now)
        text = f"A link to it was refused {when}: {refusal_words(facts.refused.reason)}."
    remedy = ""
    by_plugin = facts.refused is not None and facts.refused.reason == "plugin"
    if facts.site is not None and not by_plugin and not any(rule(facts) for rule in REFUSALS):
        text += f" Site {facts.site.name} would take it."
        remedy = f"crawlctl add --site {facts.site.name} URL"
    return FoundCause(VisitCause.UNKNOWN, Effect.BLOCKS, text, remedy)


REFUSALS: Final = (
    *(no_site, scope, wiki_part, trap, growth, plugin, robots, replica, duplicate, cap),
)
"""What keeps a URL from becoming a page."""
