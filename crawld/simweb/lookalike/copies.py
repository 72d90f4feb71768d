"""True copies: one site under several names, ports and addresses, and what happens to it later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crawld.simweb.lookalike.draft import (
    CrawlFacts,
    HostFamily,
    diverging,
    dotted,
    in_section,
    naming_canonical,
    redirecting,
)
from crawld.simweb.lookalike.host import PLAIN, Decoration
from crawld.simweb.lookalike.pages import SitePages

_TOP_LEVELS = ("com", "de", "fr", "it", "net", "org")


def usual_site(family: HostFamily) -> SitePages:
    """Return a site of 15 to 60 pages in three sections."""
    count = family.count
    return family.site({"docs": count(6, 30), "news": count(5, 20), "team": count(3, 10)})


def _own_links(family: HostFamily, shared: Decoration) -> Decoration:
    """Return what one name of a site adds to its pages: only its links may be its own."""
    return replace(shared, absolute_links=bool(family.rng.random() < 0.25))


def imperfect(family: HostFamily, pages: SitePages) -> SitePages:
    """Return the pages of a usual copy: a few are missing, a few edited, some changes come late."""
    rng = family.rng
    shown = family.copied(pages, kept=float(1 - rng.choice((0, 0, 0.02, 0.05, 0.15))))
    if rng.random() < 0.3:
        shown = family.edited(shown, family.chosen(shown, float(rng.uniform(0, 0.05))))
    if rng.random() < 0.2:
        extra = family.site({"local": family.count(1, 3)}, numbered=False)
        shown = shown.joined(extra)
    return replace(shown, lag_days=float(rng.choice((0, 0, 0, 0.05, 0.5))))


def _one_owner(family: HostFamily, names: list[str], facts: list[CrawlFacts]) -> None:
    """Add one site under some names of one owner, the first to keep; any may be kept."""
    site, group, owner = usual_site(family), family.new_group(), family.new_owner()
    shared = family.decoration() if family.rng.random() < 0.6 else PLAIN
    for at, (name, fact) in enumerate(zip(names, facts, strict=True)):
        family.host(
            name,
            imperfect(family, site) if at else site,
            owner=owner,
            group=group,
            original=at == 0,
            keepable=True,
            decoration=_own_links(family, shared),
            facts=fact,
        )


def www(family: HostFamily) -> None:
    """Add a domain with and without www."""
    domain, address = family.domain(), family.address()
    facts = CrawlFacts(address=address)
    _one_owner(family, [domain, family.claim(f"www.{domain}")], [facts, facts])


def mirrors(family: HostFamily) -> None:
    """Add several machines with one site under one domain."""
    domain, count = family.domain(), family.count(2, 5)
    stem = ("www", "mirror", "web", "cdn")[family.count(0, 3)]
    names = [family.claim(f"{stem}{at}.{domain}") for at in range(1, count + 1)]
    _one_owner(family, names, [CrawlFacts() for _ in names])


def ports(family: HostFamily) -> None:
    """Add a site that answers on two ports."""
    domain, facts = family.domain(), CrawlFacts(address=family.address())
    _one_owner(family, [domain, family.claim(f"{domain}:8080")], [facts, facts])


def bare_addresses(family: HostFamily) -> None:
    """Add a site that answers under its address too and declares its name as canonical."""
    site, group, owner = usual_site(family), family.new_group(), family.new_owner()
    address = dotted(int(family.rng.integers(1 << 24, 223 << 24)))
    facts = CrawlFacts(address=address)
    first = family.host(family.domain(), site, owner=owner, group=group, original=True, facts=facts)
    declares = family.rng.random() < 0.5
    pages = naming_canonical(site, np.full(len(site), declares), first.number)
    family.host(family.claim(address), pages, owner=owner, group=group, facts=facts)


def staging(family: HostFamily) -> None:
    """Add production and its staging host, which a crawler met a day earlier."""
    site, group, owner = usual_site(family), family.new_group(), family.new_owner()
    domain, rng = family.domain(), family.rng
    label = ("staging", "dev", "preview", "test")[family.count(0, 3)]
    staged = family.edited(site, family.chosen(site, float(rng.uniform(0, 0.04))))
    met = float(rng.uniform(-100, -10))
    production = CrawlFacts(first_seen_day=met, linked_from=family.count(20, 90), https=False)
    name = f"www.{domain}" if rng.random() < 0.5 else domain
    family.host(family.claim(name), site, owner=owner, group=group, original=True, facts=production)
    family.host(
        family.claim(f"{label}.{domain}"),
        staged,
        owner=owner,
        group=group,
        decoration=Decoration(absolute_links=bool(rng.random() < 0.5)),
        facts=CrawlFacts(first_seen_day=met - 1, linked_from=0, https=True),
    )


def moves(family: HostFamily) -> None:
    """Add a site and its former domain: it redirects, names the new one, or says nothing."""
    site, group, owner = usual_site(family), family.new_group(), family.new_owner()
    met = float(family.rng.uniform(-300, -30))
    first = family.host(
        family.domain(),
        site,
        owner=owner,
        group=group,
        original=True,
        facts=CrawlFacts(first_seen_day=met, linked_from=family.count(3, 20)),
    )
    old, style = family.copied(site, kept=0.95), family.rng.random()
    every = np.ones(len(old), dtype=bool)
    if style < 0.3:
        old = redirecting(old, every, first.number)
    elif style < 0.6:
        old = naming_canonical(old, family.chosen(old, 0.9, root=True), first.number)
    else:
        old = replace(old, frozen_day=float(family.rng.uniform(-60, 30)))
    facts = CrawlFacts(first_seen_day=met - 200, linked_from=family.count(0, 30))
    name = family.domain()
    family.host(name, old, owner=owner, group=group, facts=facts)


def countries(family: HostFamily) -> None:
    """Add one site under several top-level domains, all naming the first as canonical."""
    site, group, owner = usual_site(family), family.new_group(), family.new_owner()
    label = f"{family.names.word()}{family.names.word()}"
    names = [family.claim(f"{label}.{top}") for top in _TOP_LEVELS[: family.count(2, 5)]]
    first = family.host(names[0], site, owner=owner, group=group, original=True)
    pages = naming_canonical(site, np.ones(len(site), dtype=bool), first.number)
    for name in names[1:]:
        decoration = Decoration(absolute_links=bool(family.rng.random() < 0.5))
        family.host(name, pages, owner=owner, group=group, decoration=decoration)


def open_mirrors(family: HostFamily) -> None:
    """Add mirrors of open data at universities: true copies of several owners, none declared."""
    site, group = usual_site(family), family.new_group()
    for at in range(family.count(3, 6)):
        family.host(
            family.claim(f"mirror.{family.domain()}"),
            replace(site, lag_days=0.3 * at),
            owner=family.new_owner(),
            group=group,
            original=at == 0,
            keepable=True,
        )


def latest(family: HostFamily) -> None:
    """Add versions of a documentation and `latest`, a copy of the newest that may move on."""
    site, owner, domain = usual_site(family), family.new_owner(), family.domain()
    group, moves_on = family.new_group(), float(family.rng.choice((12.0, 25.0, np.inf)))
    older = family.own(site, family.chosen(site, 0.5, root=True))
    family.host(family.claim(f"v1.docs.{domain}"), older, owner=owner)
    facts = CrawlFacts(linked_from=family.count(5, 20))
    family.host(family.claim(f"v2.docs.{domain}"), site, owner=owner, group=group, keepable=True)
    newest = diverging(site, family.chosen(site, 0.6, root=True), moves_on)
    family.host(
        family.claim(f"latest.docs.{domain}"),
        newest,
        owner=owner,
        group=group,
        original=True,
        facts=facts,
    )


def diverging_copies(family: HostFamily) -> None:
    """Add a copy that begins to differ: in a part of one section, or everywhere."""
    rng, domain, count = family.rng, family.domain(), family.count
    site, group, owner = usual_site(family), family.new_group(), family.new_owner()
    facts, shared = CrawlFacts(linked_from=count(8, 20), first_seen_day=-200.0), PLAIN
    if rng.random() < 0.4:
        shared = family.decoration(0.5)
    family.host(
        domain, site, owner=owner, group=group, original=True, decoration=shared, facts=facts
    )
    share = float(rng.choice((0.1, 0.3, 0.5, 1.0)))
    which = family.chosen(site, share, root=True)
    if rng.random() < 0.5:
        which = family.chosen(site, share) & in_section(site, ("docs",))
    copy = diverging(site, which, float(rng.uniform(8, 40)))
    family.host(
        family.claim(f"mirror.{domain}"),
        copy,
        owner=owner,
        group=group,
        facts=CrawlFacts(linked_from=0, first_seen_day=-100.0),
        decoration=_own_links(family, shared),
    )


def large_sites(family: HostFamily) -> None:
    """Add a site of many pages and its mirror; a section of it is its own, or becomes so."""
    rng, domain, count = family.rng, family.domain(), family.count
    site = family.site({"docs": count(90, 300), "wiki": count(60, 300), "local": count(55, 120)})
    group, owner = family.new_group(), family.new_owner()
    facts = CrawlFacts(linked_from=family.count(8, 20), first_seen_day=-200.0)
    family.host(domain, site, owner=owner, group=group, original=True, facts=facts)
    share = family.chosen(site, float(rng.choice((0.3, 1.0)))) & in_section(site, ("local",))
    day = float(rng.choice((-500.0, rng.uniform(10, 40), np.inf)))
    family.host(
        family.claim(f"mirror.{domain}"),
        diverging(site, share, day),
        owner=owner,
        group=group,
        facts=CrawlFacts(linked_from=0, first_seen_day=-100.0),
    )
