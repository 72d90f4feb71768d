"""Hosts in the middle of a change: partly moved, archived, late, closed for a while, on trial.

And sites that others quote, rent or serve again: tenants, regions, syndicated texts, networks of
mirrors. Written after the verdict stood, and before it was run on them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crawld.simweb.lookalike.copies import imperfect, usual_site
from crawld.simweb.lookalike.draft import (
    CrawlFacts,
    HostFamily,
    in_section,
    naming_canonical,
    only_root,
    redirecting,
)

_REGIONS = ("us", "uk", "ca", "au", "ie", "nz", "in", "sg")
_KNOWN = CrawlFacts(linked_from=12, first_seen_day=-250.0)
_UNKNOWN = CrawlFacts(linked_from=0, first_seen_day=-120.0)


def partly_moved(family: HostFamily) -> None:
    """Add a site that moves: most of the old host redirects, the rest has other texts there."""
    site, domain, owner = usual_site(family), family.domain(), family.new_owner()
    new = family.host(domain, site, owner=owner, facts=_KNOWN)
    moved = family.chosen(site, float(family.rng.uniform(0.35, 0.9)))
    old = redirecting(family.own(site, ~moved), moved, new.number)
    below = family.rng.random() < 0.5
    name = family.claim(f"old.{domain}") if below else family.domain()
    family.host(name, old, owner=owner, facts=CrawlFacts(first_seen_day=-380.0))


def region_shops(family: HostFamily) -> None:
    """Add the shops of one company by country: other prices on most pages, equal terms."""
    domain, owner, address = family.domain(), family.new_owner(), family.address()
    site = family.site({"shop": family.count(25, 60), "terms": family.count(3, 12)})
    share, own_root = float(family.rng.uniform(0.5, 1.0)), family.rng.random() < 0.5
    for code in _REGIONS[: family.count(2, 6)]:
        priced = family.chosen(site, share) & in_section(site, ("shop",))
        shown = family.edited(site, priced | (only_root(site) & own_root))
        name = family.claim(f"{code}.{domain}")
        family.host(name, shown, owner=owner, facts=CrawlFacts(address=address))


def archives(family: HostFamily) -> None:
    """Add a site and what it was on a day long ago: what never changes is equal."""
    site, domain, owner = usual_site(family), family.domain(), family.new_owner()
    family.host(domain, site, owner=owner, facts=_KNOWN)
    old = replace(site, frozen_day=float(family.rng.uniform(-350, -90)))
    old = family.own(old, family.chosen(site, 0.1) | only_root(site))
    label = ("archive", "2024", "web-archive", "history")[family.count(0, 3)]
    family.host(family.claim(f"{label}.{domain}"), old, owner=owner, facts=_UNKNOWN)


def syndicators(family: HostFamily) -> None:
    """Add an agency, and blogs that name it as canonical on its articles, beside their own."""
    agency = family.site({"world": family.count(20, 40), "desk": family.count(5, 15)})
    first = family.host(family.domain(), agency, owner=family.new_owner(), facts=_KNOWN)
    for _ in range(family.count(2, 5)):
        taken = agency.only(in_section(agency, ("world",)) | only_root(agency))
        taken = family.own(taken, only_root(taken) | family.chosen(taken, 0.1))
        taken = naming_canonical(taken, ~only_root(taken), first.number)
        local = family.site({"local": family.count(4, 14)}, numbered=True)
        family.host(family.domain(), taken.joined(local), owner=family.new_owner())


def tenants(family: HostFamily) -> None:
    """Add two or three tenants of a service: its pages are equal, each has few of its own."""
    domain = family.domain()
    site = family.site({"help": family.count(20, 40), "board": family.count(3, 10)}, numbered=True)
    facts = CrawlFacts(address=family.address(), linked_from=family.count(0, 2))
    for _ in range(family.count(2, 3)):
        shown = family.own(site, in_section(site, ("board",)) | only_root(site))
        name = family.claim(f"{family.names.word()}.{domain}")
        family.host(name, shown, owner=family.new_owner(), facts=facts)


def mirror_networks(family: HostFamily) -> None:
    """Add the mirrors of one site under any names of its domain."""
    site, domain = usual_site(family), family.domain()
    group, owner = family.new_group(), family.new_owner()
    family.host(domain, site, owner=owner, group=group, original=True, facts=_KNOWN)
    for _ in range(family.count(4, 12)):
        name = family.claim(f"{family.names.word()}.{domain}")
        pages = imperfect(family, site)
        family.host(name, pages, owner=owner, group=group, keepable=True, facts=_UNKNOWN)


def slow_mirrors(family: HostFamily) -> None:
    """Add a mirror that follows its original some days late."""
    site, domain = usual_site(family), family.domain()
    group, owner = family.new_group(), family.new_owner()
    family.host(domain, site, owner=owner, group=group, original=True, facts=_KNOWN)
    late = replace(site, lag_days=float(family.rng.uniform(2.5, 12.0)))
    name = family.claim(f"mirror.{domain}")
    family.host(name, late, owner=owner, group=group, facts=_UNKNOWN)


def trials(family: HostFamily) -> None:
    """Add two names of a site that shows one of two texts on some pages, drawn at each fetch."""
    site, domain = usual_site(family), family.domain()
    site = replace(site, drawn=family.chosen(site, float(family.rng.uniform(0.1, 0.6)), root=True))
    group, owner = family.new_group(), family.new_owner()
    family.host(domain, site, owner=owner, group=group, original=True, keepable=True)
    family.host(family.claim(f"www.{domain}"), site, owner=owner, group=group, keepable=True)


def maintenance(family: HostFamily) -> None:
    """Add a site and its mirror, of which one shows a notice on all pages for some time."""
    site, domain = usual_site(family), family.domain()
    begin = float(family.rng.uniform(8, 40))
    end = begin + float(family.rng.choice((0.2, 1.0, 3.0, 12.0)))
    closed = replace(site, closed=(begin, end), notice=int(family.texts(1)[0]))
    group, owner = family.new_group(), family.new_owner()
    is_first = family.rng.random() < 0.5
    shown = (closed, site) if is_first else (site, closed)
    family.host(domain, shown[0], owner=owner, group=group, original=True, facts=_KNOWN)
    name = family.claim(f"mirror.{domain}")
    family.host(name, shown[1], owner=owner, group=group, facts=_UNKNOWN)


def other_closed_sites(family: HostFamily) -> None:
    """Add sites of one program and domain that share nothing but a notice of some days."""
    domain, owner, notice = family.domain(), family.new_owner(), int(family.texts(1)[0])
    begin = float(family.rng.choice((-2.0, family.rng.uniform(5, 30))))
    closed = (begin, begin + float(family.rng.uniform(4, 20)))
    paths = family.site({"node": family.count(15, 40)}, numbered=True)
    for _ in range(family.count(2, 4)):
        shown = family.own(paths, np.ones(len(paths), dtype=bool))
        shown = replace(shown, closed=closed, notice=notice)
        family.host(family.claim(f"{family.names.word()}.{domain}"), shown, owner=owner)
