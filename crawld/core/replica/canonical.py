"""Chooses which host of a group of replicas to keep.

The thesis leaves this open. Our order: the operator's choice; the declarations of the hosts
themselves (redirects, canonical links); then, among hosts of one owner, https, age, inlinks,
completeness and freshness. Between different owners a copier can fake all of these, so that texts
alone decide only if age and inlinks from other hosts both clearly support the choice. Otherwise
nothing is pruned until the operator decides.

A declaration by a copier retires the copier; it does not support any other host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from crawld.core.replica.names import same_owner
from crawld.core.replica.verdict import connected_groups

_DAY_S = 86_400.0

CLEARLY_OLDER_S = 7 * _DAY_S
"""A host seen this much earlier than another existed before a copy could be made and found."""

ALREADY_KEPT = "kept so far"
"""Reason for keeping a host that was chosen before."""

CLEARLY_MORE = 3.0
"""Factor by which inlinks from other hosts must exceed those of the copies, plus one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProfile:
    """Properties of a host that decide whether it is kept.

    Attributes:
        preferred: chosen by the operator (`crawlctl replicas prefer` or the config).
        kept: whether it is kept now; other properties may change without moving the choice.
        https: whether it is fetched by https.
        first_seen_at: Unix seconds.
        inlinks: other hosts that link to it, without those of its group.
        pages: pages fetched from it.
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
    """The host to keep (None: the operator must decide), and why, in words."""

    host: int | None
    reason: str


def owners(
    profiles: Mapping[int, HostProfile], confirmed: Iterable[tuple[int, int]] = ()
) -> dict[int, int]:
    """Return for each host the first host of the same owner.

    Hosts have one owner if they are under one registered domain, or if the operator confirmed it.
    Confirmed pairs with other hosts are ignored.
    """
    hosts = sorted(profiles)
    pairs = [pair for pair in confirmed if pair[0] in profiles and pair[1] in profiles]
    pairs += [
        (one, other)
        for at, one in enumerate(hosts)
        for other in hosts[at + 1 :]
        if same_owner(profiles[one].name, profiles[other].name)
    ]
    found = {host: host for host in hosts}
    for group in connected_groups(pairs):
        found |= dict.fromkeys(group, group[0])
    return found


def choose_canonical(
    profiles: Mapping[int, HostProfile],
    declared: Mapping[int, set[int]],
    owner: Mapping[int, int] | None = None,
) -> Choice:
    """Return which host of a group is kept.

    Args:
        declared: for each, the hosts of the group that declare it to be the original.
        owner: the owner of each (`owners`); None: by their names.
    """
    owner = owners(profiles) if owner is None else owner
    preferred = sorted(host for host, profile in profiles.items() if profile.preferred)
    if len(preferred) > 1:
        return Choice(None, "the operator prefers more than one of them")
    if preferred:
        return Choice(preferred[0], "preferred by the operator")
    hosts = sorted(profiles)
    # A host that declares another to be the original is excluded ...
    declaring = {source for sources in declared.values() for source in sources}
    left = [host for host in hosts if host not in declaring] or hosts
    if len(kept := [host for host in left if profiles[host].kept]) == 1:
        return Choice(kept[0], ALREADY_KEPT)
    best = max(left, key=lambda host: _merits(profiles[host], len(declared.get(host, ()))))
    if all(owner[host] == owner[best] for host in left):
        said = declared.get(best, set())
        if said:
            names = ", ".join(sorted(profiles[host].name for host in said))
            return Choice(best, f"declared by {names}")
        return Choice(best, _merit_words(profiles, best, left))
    # ... and between different owners only properties that a copier cannot fake count.
    return _choose_between_owners(profiles, left, owner)


def _choose_between_owners(
    profiles: Mapping[int, HostProfile], hosts: Sequence[int], owner: Mapping[int, int]
) -> Choice:
    """Choose by age and inlinks if both clearly beat every host of another owner."""
    best = max(hosts, key=lambda host: (-profiles[host].first_seen_at, profiles[host].inlinks))
    kept = profiles[best]
    for host in hosts:
        rival = profiles[host]
        if owner[host] == owner[best]:
            continue
        older = rival.first_seen_at - kept.first_seen_at >= CLEARLY_OLDER_S
        known = kept.inlinks >= CLEARLY_MORE * rival.inlinks + 1
        if not (older and known):
            return Choice(None, f"{kept.name} and {rival.name} may have different owners")
    own = [host for host in hosts if owner[host] == owner[best]]
    first = max(own, key=lambda host: _merits(profiles[host], 0))
    return Choice(first, "known longer and linked to more than its copies")


def _merits(profile: HostProfile, declared: int) -> tuple[float, ...]:
    # In days and steps of a tenth: hosts that differ by a moment or a page are equal.
    return (
        declared,
        profile.https,
        -(profile.first_seen_at // _DAY_S),
        profile.inlinks,
        round(log(max(profile.pages, 1)) / log(1.1)),
        profile.changed_at // _DAY_S,
        # Shorter names, then the alphabet: the choice must not depend on the order of a table.
        -len(profile.name),
        -sum(ord(letter) * 256.0**-at for at, letter in enumerate(profile.name[:6])),
    )


def _merit_words(profiles: Mapping[int, HostProfile], best: int, hosts: Sequence[int]) -> str:
    words = ("declared", "https", "known longer", "more inlinks", "more complete", "fresher")
    kept = _merits(profiles[best], 0)
    others = [_merits(profiles[host], 0) for host in hosts if host != best]
    if not others:
        return "the only one that declares no other"
    runner_up = max(others)
    for word, mine, theirs in zip(words, kept, runner_up, strict=False):
        if mine != theirs:
            return word
    return "the shorter name"
