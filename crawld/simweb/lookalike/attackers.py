"""Attackers: hosts that show the pages of a victim, to make a crawler drop the victim.

An attack wins if a page of the victim rests under a host of the attacker. A platform is a domain
below which anybody may have a host and that the public suffix list does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from crawld.simweb.lookalike.copies import usual_site
from crawld.simweb.lookalike.draft import (
    CrawlFacts,
    HostFamily,
    diverging,
    dotted,
    naming_canonical,
    redirecting,
)
from crawld.simweb.lookalike.host import LookalikeHost
from crawld.simweb.lookalike.pages import SitePages

_STRONG = CrawlFacts(https=True, first_seen_day=-390.0, names_per_domain=500)
"""Everything that an attacker can fake: https, met early, 500 names of one domain link to it."""


def _victim(
    family: HostFamily, name: str, pages: SitePages, *, linked_from: int | None = None
) -> LookalikeHost:
    facts = CrawlFacts(
        https=bool(family.rng.random() < 0.5),
        first_seen_day=float(family.rng.uniform(-300, -20)),
        linked_from=family.count(3, 7) if linked_from is None else linked_from,
    )
    return family.host(name, pages, owner=family.new_owner(), facts=facts)


def _attacker(
    family: HostFamily,
    name: str,
    pages: SitePages,
    victim: LookalikeHost,
    facts: CrawlFacts = _STRONG,
) -> None:
    owner = family.new_owner()
    family.host(name, pages, owner=owner, victim=victim.number, facts=facts)


def _platform_pair(family: HostFamily) -> tuple[str, str]:
    domain = family.domain()
    first, second = (family.claim(f"{family.names.word()}.{domain}") for _ in range(2))
    return first, second


def strong_copier(family: HostFamily) -> None:
    """A domain with https, an early date and 500 inlinks from one domain."""
    pages = usual_site(family)
    victim = _victim(family, family.domain(), pages)
    _attacker(family, family.domain(), pages, victim)


def platform_copier(family: HostFamily) -> None:
    """The same on a platform: both hosts seem to have one owner."""
    pages, (name, other) = usual_site(family), _platform_pair(family)
    _attacker(family, other, pages, _victim(family, name, pages))


def platform_root(family: HostFamily) -> None:
    """The victim is a host of a platform, the attacker calls itself www of it."""
    pages, (name, _) = usual_site(family), _platform_pair(family)
    _attacker(family, family.claim(f"www-{name}"), pages, _victim(family, name, pages))


def address_copier(family: HostFamily) -> None:
    """An address next to the victim's, which has no name either."""
    network, pages = int(family.rng.integers(1 << 16, 223 << 16)) << 8, usual_site(family)
    name, other = dotted(network + 7), dotted(network + 9)
    victim = _victim(family, family.claim(name), pages)
    facts = replace(_STRONG, address=other)
    _attacker(family, family.claim(other), pages, victim, facts)


def throw_away_names(family: HostFamily) -> None:
    """49 names of one domain with the victim's pages, and the victim's own www copy."""
    pages, domain, group = usual_site(family), family.domain(), family.new_group()
    owner = family.new_owner()
    victim = family.host(
        domain,
        pages,
        owner=owner,
        group=group,
        original=True,
        keepable=True,
        facts=CrawlFacts(linked_from=5),
    )
    family.host(family.claim(f"www.{domain}"), pages, owner=owner, group=group, keepable=True)
    other, thief, copies = family.domain(), family.new_owner(), family.new_group()
    for at in range(49):  # copies of each other, and of nobody they may replace
        family.host(
            family.claim(f"n{at}.{other}"),
            pages,
            owner=thief,
            group=copies,
            original=at == 0,
            keepable=True,
            victim=victim.number,
            facts=_STRONG,
        )


def chained_names(family: HostFamily) -> None:
    """Names of one domain, each with a part of the next one's pages; one has the victim's."""
    pages, other = usual_site(family), family.domain()
    victim = _victim(family, family.domain(), pages)
    shown = pages
    for at in range(family.count(20, 60)):
        _attacker(family, family.claim(f"c{at}.{other}"), shown, victim)
        shown = family.own(shown, family.chosen(shown, 0.1, root=True))


def open_redirect(family: HostFamily) -> None:
    """The victim redirects where it is told to: some of its pages lead to the attacker's."""
    pages, below = usual_site(family), family.rng.random() < 0.5
    name, other = _platform_pair(family) if below else (family.domain(), family.domain())
    number = len(family.draft.hosts)
    out = family.site({"out": family.count(4, 20)}, numbered=True)
    out = redirecting(out, np.array([path != "/" for path in out.paths]), number + 1)
    victim = _victim(family, name, pages.joined(out))
    plain = family.site({"out": len(out) - 1}, numbered=True)
    _attacker(family, other, pages.joined(plain), victim)


def injected_canonical(family: HostFamily) -> None:
    """Users of the victim write pages that name the attacker's as canonical."""
    pages, below = usual_site(family), family.rng.random() < 0.5
    name, other = _platform_pair(family) if below else (family.domain(), family.domain())
    number = len(family.draft.hosts)
    named = family.chosen(pages, float(family.rng.uniform(0.08, 0.4)))
    victim = _victim(family, name, naming_canonical(pages, named, number + 1))
    _attacker(family, other, pages, victim)


def turning_copier(family: HostFamily) -> None:
    """A copy until the victim rests: then other texts under the same paths."""
    pages, below = usual_site(family), family.rng.random() < 0.7
    name, other = _platform_pair(family) if below else (family.domain(), family.domain())
    victim = _victim(family, name, pages)
    later = diverging(pages, np.ones(len(pages), dtype=bool), float(family.rng.uniform(6, 30)))
    _attacker(family, other, later, victim)


def deep_changes(family: HostFamily) -> None:
    """A copy of what a crawler reads first; the deeper half says something else."""
    pages, (name, other) = usual_site(family), _platform_pair(family)
    deep = np.arange(len(pages)) >= len(pages) // 2
    victim = _victim(family, name, pages)
    _attacker(family, other, family.edited(pages, deep), victim)


def small_changes(family: HostFamily) -> None:
    """A copy with another bank account on some pages."""
    pages, (name, other) = usual_site(family), _platform_pair(family)
    victim = _victim(family, name, pages)
    which = family.chosen(pages, float(family.rng.uniform(0.02, 0.3)))
    _attacker(family, other, family.edited(pages, which), victim)


def noise_maker(family: HostFamily) -> None:
    """A host whose texts are new at every fetch, so that all of them are taken for noise."""
    pages, (name, other) = usual_site(family), _platform_pair(family)
    victim = _victim(family, name, pages)
    volatile = replace(pages, volatile=family.chosen(pages, 0.9, root=True))
    _attacker(family, other, volatile, victim)


ATTACKS: dict[str, Callable[[HostFamily], None]] = {
    one.__name__: one
    for one in (
        strong_copier,
        platform_copier,
        platform_root,
        address_copier,
        throw_away_names,
        chained_names,
        open_redirect,
        injected_canonical,
        turning_copier,
        deep_changes,
        small_changes,
        noise_maker,
    )
}
