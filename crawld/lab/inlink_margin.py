"""By how many inlinks a host must exceed another of its domain before the other's pages rest.

Two kinds of pairs under one registrable domain, which the public suffix list does not tell apart:

- attacks on a platform (`simweb/lookalike/attackers.py`): the attacker copies a host and buys
  registrable domains that link to it; the crawl has met only a part of the inlinks of both.
- branches of one owner (the franchises of the standard web): each pair that may not rest is visited
  in vain.

An attack wins if the victim's pages may rest under the attacker's.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from crawld.core.replica.canonical import HostProfile, may_rest_under
from crawld.core.replica.owners import inlink_domains
from crawld.core.url import registrable_domain
from crawld.simweb.lookalike.web import LookalikeParameters, make_lookalike_web
from crawld.simweb.replica_parameters import STANDARD, Cause, scale_web
from crawld.simweb.replica_web import make_web

MARGINS: Final = (1, 2, 3, 5)
BUDGETS: Final = (1, 2, 3, 5, 8)
"""Domains that an attacker buys."""

MET: Final = 0.7
"""Share of the inlinks that a crawl has met."""

_PLATFORM: Final = ("platform_copier", "platform_root")
_PLATFORM_HOSTS: Final = 60
_BRANCH_HOSTS: Final = 1_200
_REPLICATED: Final = 0.3
_PAGES: Final = 20


@dataclass(frozen=True, slots=True)
class MarginResult:
    """What a margin allows.

    Attributes:
        margin: see `canonical.MORE_INLINKS`.
        attacks: attacks at each of `BUDGETS`.
        won: how many of them win, by budget.
        branches: pairs of branches.
        decided: how many of them may rest.
    """

    margin: int
    attacks: int
    won: tuple[int, ...]
    branches: int
    decided: int


def inlink_margins(
    seeds: Sequence[int], progress: Callable[[str], None] = lambda line: None
) -> list[MarginResult]:
    """Return what each of `MARGINS` allows, over webs of some seeds."""
    attacks: list[tuple[int, list[HostProfile], HostProfile]] = []
    branches: list[tuple[HostProfile, HostProfile]] = []
    for seed in seeds:
        progress(f"seed {seed}")
        attacks += _attacks(seed)
        branches += _branches(seed)
    return [
        MarginResult(
            margin,
            len(attacks),
            tuple(
                sum(_rests(victim, bought[at], margin) for _, bought, victim in attacks)
                for at in range(len(BUDGETS))
            ),
            len(branches),
            sum(_rests(*pair, margin) or _rests(*pair[::-1], margin) for pair in branches),
        )
        for margin in MARGINS
    ]


def _rests(copy: HostProfile, kept: HostProfile, margin: int) -> bool:
    return may_rest_under(copy, kept, copy_declares=False, pages_only=True, margin=margin)


def _attacks(seed: int) -> Iterator[tuple[int, list[HostProfile], HostProfile]]:
    """Yield each attack: its number, the attacker by budget, and the victim."""
    web = make_lookalike_web(LookalikeParameters(_PLATFORM_HOSTS, kinds=_PLATFORM), seed)
    rng = random.Random(seed)
    for host in web.hosts:
        if host.victim < 0:
            continue
        victim = web.hosts[host.victim]
        met = sum(rng.random() < MET for _ in victim.linked_from)
        own = inlink_domains(host.linked_from, (host.name, victim.name))
        bought = [
            HostProfile(name=host.name, inlinks=own + sum(rng.random() < MET for _ in range(count)))
            for count in BUDGETS
        ]
        yield host.number, bought, HostProfile(name=victim.name, inlinks=met)


def _branches(seed: int) -> Iterator[tuple[HostProfile, HostProfile]]:
    """Yield each pair of branches of one owner."""
    web = make_web(scale_web(STANDARD, _BRANCH_HOSTS, _REPLICATED, _PAGES), seed)
    count = len(web.hosts)
    linked: dict[int, set[str]] = defaultdict(set)
    for source, target in zip(
        web.hosts.link_host.tolist(), web.hosts.link_target.tolist(), strict=True
    ):
        linked[target % count].add(web.hosts.names[source])
    members: dict[int, list[int]] = defaultdict(list)
    for host, group in enumerate(web.group.tolist()):
        if group >= 0 and web.cause[group] is Cause.FRANCHISE:
            members[group].append(host)
    for hosts in members.values():
        names = [web.hosts.names[host] for host in hosts]
        profiles = [
            HostProfile(name=name, inlinks=inlink_domains(linked[host], names))
            for host, name in zip(hosts, names, strict=True)
        ]
        for one, other in combinations(profiles, 2):
            if registrable_domain(one.name) == registrable_domain(other.name):
                yield one, other


def as_markdown(found: Sequence[MarginResult]) -> str:
    """Return the results as a table."""
    budgets = ", ".join(str(budget) for budget in BUDGETS)
    lines = [
        f"| margin | attacks that win of {found[0].attacks}, with {budgets} domains |"
        f" pairs of branches decided of {found[0].branches} |",
        "|---|---|---|",
    ]
    for one in found:
        won = " / ".join(str(count) for count in one.won)
        lines.append(f"| {one.margin} | {won} | {one.decided} |")
    return "\n".join(lines)
