"""Make a web of look-alikes from its parameters and a seed, and ask what is true in it.

The number of groups of each kind is fixed per 1,000 hosts; plain sites fill up the rest. Two webs
are published: `FULL`, where a crawl has visited every page, and `PARTIAL`, where it has visited a
part of most hosts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crawld.simweb.lookalike import attackers, changes, copies, editions, walls
from crawld.simweb.lookalike.draft import HostFamily, LookalikeDraft
from crawld.simweb.lookalike.host import NO_GROUP, LookalikeHost

_KINDS: dict[Callable[[HostFamily], None], float] = {
    copies.www: 70,
    copies.mirrors: 35,
    copies.ports: 12,
    copies.bare_addresses: 10,
    copies.staging: 20,
    copies.moves: 20,
    copies.countries: 10,
    copies.open_mirrors: 4,
    copies.latest: 6,
    copies.diverging_copies: 20,
    copies.large_sites: 4,
    editions.versions: 12,
    editions.languages: 12,
    editions.themes: 6,
    editions.sister_sites: 7,
    editions.shops: 6,
    editions.wiki_farms: 2.5,
    editions.forks: 12,
    editions.syndication: 4,
    editions.franchises: 6,
    editions.calendars: 8,
    editions.api_docs: 3.5,
    editions.manuals: 1.5,
    editions.departments: 6,
    editions.platforms: 1,
    walls.login_walls: 4,
    walls.echoing_errors: 5,
    walls.soft_errors: 3,
    walls.placeholders: 3,
    walls.parked: 1.5,
    walls.devices: 4,
    walls.other_ports: 6,
}
"""Groups of each kind in 1,000 hosts."""

_LATER_KINDS: dict[Callable[[HostFamily], None], float] = {
    changes.partly_moved: 6,
    changes.region_shops: 4,
    changes.archives: 5,
    changes.syndicators: 2,
    changes.tenants: 4,
    changes.mirror_networks: 1.5,
    changes.slow_mirrors: 5,
    changes.trials: 5,
    changes.maintenance: 6,
    changes.other_closed_sites: 3,
}
"""Kinds added later, after all others, so that the groups before them stay as they were."""

_ATTACKS_PER_KIND = 1.1
"""Groups of each attack in 1,000 hosts, those of many names among them once in 2,000."""

_MANY_NAMES = ("throw_away_names", "chained_names")


@dataclass(frozen=True, slots=True)
class LookalikeParameters:
    """Parameters of a web of look-alikes.

    Attributes:
        hosts: its number of hosts; groups are whole, so a few more are possible.
        coverage: probability that all pages of a group's hosts were visited on day 0.
        kinds: names of the only kinds and attacks in it; empty: all.
        groups: of each kind; 0: as many as usual among so many hosts.
    """

    hosts: int = 4_000
    coverage: float = 1.0
    kinds: tuple[str, ...] = ()
    groups: int = 0


FULL = LookalikeParameters()
PARTIAL = LookalikeParameters(coverage=0.25)


@dataclass(frozen=True, slots=True)
class LookalikeWeb:
    """A web of look-alikes; the number of a host is its index."""

    parameters: LookalikeParameters
    hosts: tuple[LookalikeHost, ...]

    def are_copies(self, one: int, other: int) -> bool:
        """Whether two hosts are names of one site, whatever each has changed since."""
        group = self.hosts[one].group
        return group != NO_GROUP and group == self.hosts[other].group

    def equal_share(self, one: int, other: int, day: float) -> tuple[int, float]:
        """Return how many pages two hosts both have and say something, and the share that agree."""
        a, b = self.hosts[one], self.hosts[other]
        shared = [(at, b.pages.at[path]) for path, at in a.pages.at.items() if path in b.pages.at]
        if not shared:
            return 0, 0.0
        here, there = np.array(shared).T
        says = a.pages.says_something_at(day)[here] & b.pages.says_something_at(day)[there]
        count = int(says.sum())
        if not count:
            return 0, 0.0
        agree = a.pages.content_at(one, day)[here] == b.pages.content_at(other, day)[there]
        return count, float((agree & says).sum()) / count


def make_lookalike_web(parameters: LookalikeParameters, seed: int) -> LookalikeWeb:
    """Make a web; takes a second per 2,000 hosts."""
    draft = LookalikeDraft(seed, parameters.coverage)
    scale = parameters.hosts / 1_000
    for make, per_thousand in _groups_per_thousand().items():
        if not parameters.kinds or make.__name__ in parameters.kinds:
            for _ in range(parameters.groups or max(1, round(per_thousand * scale))):
                make(draft.family(make.__name__))
    while len(draft.hosts) < parameters.hosts:
        editions.plain(draft.family("plain"))
    return LookalikeWeb(parameters, tuple(draft.hosts))


def _groups_per_thousand() -> dict[Callable[[HostFamily], None], float]:
    attacks = {
        attack: 0.5 if name in _MANY_NAMES else _ATTACKS_PER_KIND
        for name, attack in attackers.ATTACKS.items()
    }
    return _KINDS | attacks | _LATER_KINDS
