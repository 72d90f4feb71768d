"""Which host of a group is kept.

The thesis leaves this open. Ours, in this order: the operator's word; what the hosts themselves
declare (redirects, canonical links); then, among hosts of one owner, https, age, inlinks,
completeness and freshness. Between hosts of different owners those can be made up by whoever copies
a site, so texts alone choose only where age and inlinks of strangers agree on the choice, both
clearly; where they do not, the verdict is held: nothing is pruned until the operator has spoken.

A copier's declaration retires the copier; it says nothing of who else is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from crawld.core.replica.names import same_owner
from crawld.core.replica.verdict import connected_groups

_DAY_S = 86_400.0

CLEARLY_OLDER_S = 7 * _DAY_S
"""First met so much earlier: before a copy could be made and found."""

KEPT = "kept so far"
"""Why a host is kept that was chosen before."""

CLEARLY_MORE = 3.0
"""So many times the inlinks from other hosts, and one more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProfile:
    """What speaks for a host.

    Attributes:
        name: its name.
        preferred: the operator's word: `crawlctl replicas prefer` or the config.
        kept: whether it is the host kept so far; merits that come and go do not move it.
        https: whether it is fetched by https.
        first_seen_at: Unix seconds.
        inlinks: other hosts that link to it, those of its group left out.
        pages: pages fetched of it.
        changed_at: latest change seen on any of them, Unix seconds; 0: none.
    """

    name: str
    preferred: bool = False
    kept: bool = False
    https: bool = False
    first_seen_at: float = 0.0
    inlinks: int = 0
    pages: int = 0
    changed_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The host kept.

    Attributes:
        host: the key of the host kept; None: held for the operator.
        reason: why, in words.
    """

    host: int | None
    reason: str


def owners(
    standings: Mapping[int, HostProfile], confirmed: Iterable[tuple[int, int]] = ()
) -> dict[int, int]:
    """Return for each host the first host of the same owner.

    Hosts are of one owner if they stand under one registered domain, or if the operator said that
    they are one.

    Args:
        standings: the hosts.
        confirmed: pairs that the operator confirmed; those of other hosts are passed over.
    """
    hosts = sorted(standings)
    pairs = [pair for pair in confirmed if pair[0] in standings and pair[1] in standings]
    pairs += [
        (one, other)
        for at, one in enumerate(hosts)
        for other in hosts[at + 1 :]
        if same_owner(standings[one].name, standings[other].name)
    ]
    found = {host: host for host in hosts}
    for group in connected_groups(pairs):
        found |= dict.fromkeys(group, group[0])
    return found


def choose_canonical(
    standings: Mapping[int, HostProfile],
    declared: Mapping[int, set[int]],
    owner: Mapping[int, int] | None = None,
) -> Choice:
    """Return which host of a group is kept.

    Args:
        standings: the hosts of the group.
        declared: for each, the hosts of the group that declare it to be the original.
        owner: the owner of each (`owners`); left out: as their names say.
    """
    owner = owners(standings) if owner is None else owner
    preferred = sorted(host for host, standing in standings.items() if standing.preferred)
    if len(preferred) > 1:
        return Choice(None, "the operator prefers more than one of them")
    if preferred:
        return Choice(preferred[0], "preferred by the operator")
    hosts = sorted(standings)
    # Whoever declares another to be the original is out of the running ...
    declaring = {source for sources in declared.values() for source in sources}
    left = [host for host in hosts if host not in declaring] or hosts
    if len(kept := [host for host in left if standings[host].kept]) == 1:
        return Choice(kept[0], KEPT)
    best = max(left, key=lambda host: _merits(standings[host], len(declared.get(host, ()))))
    if all(owner[host] == owner[best] for host in left):
        said = declared.get(best, set())
        if said:
            names = ", ".join(sorted(standings[host].name for host in said))
            return Choice(best, f"declared by {names}")
        return Choice(best, _merit_words(standings, best, left))
    # ... and between strangers only what a copier cannot make up counts.
    return _among_strangers(standings, left, owner)


def _among_strangers(
    standings: Mapping[int, HostProfile], hosts: Sequence[int], owner: Mapping[int, int]
) -> Choice:
    """Choose by age and inlinks where both agree clearly against every stranger."""
    best = max(hosts, key=lambda host: (-standings[host].first_seen_at, standings[host].inlinks))
    kept = standings[best]
    for host in hosts:
        rival = standings[host]
        if owner[host] == owner[best]:
            continue
        older = rival.first_seen_at - kept.first_seen_at >= CLEARLY_OLDER_S
        known = kept.inlinks >= CLEARLY_MORE * rival.inlinks + 1
        if not (older and known):
            return Choice(None, f"{kept.name} and {rival.name} may have different owners")
    own = [host for host in hosts if owner[host] == owner[best]]
    first = max(own, key=lambda host: _merits(standings[host], 0))
    return Choice(first, "known longer and linked to more than its copies")


def _merits(standing: HostProfile, declared: int) -> tuple[float, ...]:
    # Days and tenths: hosts that differ by a moment or a page are equal.
    return (
        declared,
        standing.https,
        -(standing.first_seen_at // _DAY_S),
        standing.inlinks,
        round(log(max(standing.pages, 1)) / log(1.1)),
        standing.changed_at // _DAY_S,
        # Shorter names, then the alphabet: the choice must not depend on the order of a table.
        -len(standing.name),
        -sum(ord(letter) * 256.0**-at for at, letter in enumerate(standing.name[:6])),
    )


def _merit_words(standings: Mapping[int, HostProfile], best: int, hosts: Sequence[int]) -> str:
    words = ("declared", "https", "known longer", "more inlinks", "more complete", "fresher")
    kept = _merits(standings[best], 0)
    others = [_merits(standings[host], 0) for host in hosts if host != best]
    if not others:
        return "the only one that declares no other"
    runner_up = max(others)
    for word, mine, theirs in zip(words, kept, runner_up, strict=False):
        if mine != theirs:
            return word
    return "the shorter name"
