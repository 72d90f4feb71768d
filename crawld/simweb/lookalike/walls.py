"""Hosts whose pages say nothing about themselves: login walls, errors, placeholders, devices.

Their texts are equal on many hosts, at many paths, and prove nothing about any two of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crawld.simweb.lookalike.copies import usual_site
from crawld.simweb.lookalike.draft import CrawlFacts, HostFamily, dotted
from crawld.simweb.lookalike.host import PLAIN, Decoration
from crawld.simweb.lookalike.pages import Flags, SitePages


def _covered(pages: SitePages, which: Flags, key: int) -> SitePages:
    """Return pages of which some show one text that says nothing about them."""
    text = np.where(which, np.uint64(key), pages.text)
    return replace(pages, text=text, boilerplate=pages.boilerplate | which)


def _lifted(family: HostFamily, pages: SitePages) -> SitePages:
    """Return covered pages that show their own texts from some day on, or never."""
    if family.rng.random() < 0.6:
        return pages
    day = float(family.rng.uniform(8, 40))
    return replace(pages, own_from=np.where(pages.boilerplate, day, pages.own_from))


def login_walls(family: HostFamily) -> None:
    """Add hosts behind one login: every page asks for a name and a password."""
    domain, owner, key = family.domain(), family.new_owner(), int(family.texts(1)[0])
    site = family.site({"app": family.count(15, 40)}, numbered=True)
    with_root = family.rng.random() < 0.7
    for _ in range(family.count(3, 8)):
        which = np.ones(len(site), dtype=bool)
        which[0] = with_root
        shown = _lifted(family, _covered(site, which, key))
        shown = family.own(shown, ~which)
        name = family.claim(f"{family.names.word()}.{domain}")
        family.host(name, shown, owner=owner)


def echoing_errors(family: HostFamily) -> None:
    """Add hosts whose error page, sent with status 200, names the path asked for."""
    key, domain = int(family.texts(1)[0]), family.domain()
    site = family.site({"node": family.count(20, 40)}, numbered=True)
    share = float(family.rng.uniform(0.4, 1.0))
    below = family.rng.random() < 0.5
    for _ in range(family.count(3, 8)):
        which = family.chosen(site, share)
        shown = family.own(_covered(site, which, key), ~which)
        name = family.claim(f"{family.names.word()}.{domain}") if below else family.domain()
        decoration = Decoration(path=True)
        family.host(name, shown, owner=family.new_owner(), decoration=decoration)


def soft_errors(family: HostFamily) -> None:
    """Add hosts that show their provider's error page on every path but the root."""
    key, address = int(family.texts(1)[0]), family.address()
    for _ in range(family.count(5, 12)):
        site = family.site({"page": family.count(10, 30)}, numbered=True)
        which = np.ones(len(site), dtype=bool)
        which[0] = family.rng.random() < 0.5
        shown = _covered(site, which, key)
        family.host(
            family.domain(), shown, owner=family.new_owner(), facts=CrawlFacts(address=address)
        )


def placeholders(family: HostFamily) -> None:
    """Add new installations of one program: its sample pages until the owner writes others."""
    sample = family.site({"sample": family.count(8, 15)}, numbered=True)
    sample = replace(sample, boilerplate=np.ones(len(sample), dtype=bool))
    domain, below = family.domain(), family.rng.random() < 0.5
    for _ in range(family.count(5, 12)):
        name = family.claim(f"{family.names.word()}.{domain}") if below else family.domain()
        family.host(name, _lifted(family, sample), owner=family.new_owner())


def parked(family: HostFamily) -> None:
    """Add parked domains: few pages, the same for all but the domain's name."""
    facts = CrawlFacts(address=family.address())
    pages = family.site({"topic": family.count(3, 8)}, numbered=True)
    pages = replace(pages, boilerplate=np.ones(len(pages), dtype=bool))
    for _ in range(family.count(8, 20)):
        shown = family.edited(pages, np.ones(len(pages), dtype=bool))
        shown = shown if family.rng.random() < 0.5 else pages
        family.host(family.domain(), shown, owner=family.new_owner(), facts=facts)


def devices(family: HostFamily) -> None:
    """Add neighbouring addresses without names: the same device, other settings."""
    network = int(family.rng.integers(1 << 16, 223 << 16)) << 8
    site = family.site({"help": family.count(10, 20), "status": family.count(5, 15)}, numbered=True)
    octets = family.rng.permutation(250)[: family.count(2, 5)] + 1
    for octet in octets.tolist():
        which = np.array([not path.startswith("/help") for path in site.paths], dtype=bool)
        name = family.claim(dotted(network + octet))
        shown = family.own(site, which)
        family.host(
            name, shown, owner=family.new_owner(), facts=CrawlFacts(address=name, linked_from=0)
        )


def other_ports(family: HostFamily) -> None:
    """Add a site and another application on a port of it, with some documents of the site."""
    domain, facts, owner = family.domain(), CrawlFacts(address=family.address()), family.new_owner()
    site = usual_site(family)
    family.host(domain, site, owner=owner, facts=facts)
    other = family.own(site, family.chosen(site, float(family.rng.uniform(0.2, 1)), root=True))
    family.host(family.claim(f"{domain}:8443"), other, owner=owner, facts=facts)
    if family.rng.random() < 0.5:  # a third is a true copy of neither
        third = family.own(site, family.chosen(site, 0.5, root=True))
        family.host(family.claim(f"{domain}:3000"), third, owner=owner, decoration=PLAIN)
