"""Chooses which host of a group of replicas to keep, and which hosts may rest under it.

The thesis leaves this open. The hosts of a group stand in one order: the operator's choice; hosts
that declare another to be the original last, before them those of which some pages lead to another
name of their site; the host kept so far; names of production before
staging, ports and addresses; of the names of one site, those that agree best with the others (one
may be stale); inlinks by registrable domain; https; completeness; freshness; shorter
names; age last, since a copier may be met first. Each host rests under the first host before it
with which it shares pages itself: nothing follows from the pages of a third host.

A host rests without the operator's word only under a host of its own owner, or under one that it
declares itself. What a copier shows or declares can retire the copier only. If the names differ by
more than service labels, the domain might give names to anybody after all: then the host to keep
must be linked to from clearly more registrable domains, or neither from any. But the site of a
domain is its owner's, who gave all its names, even where anybody may have one: a host that shows
it, its root page included (below a path, a user's pages may be), rests under it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import log
from statistics import median

from crawld.core.replica.bound import lower_bound
from crawld.core.replica.owners import is_side_name, is_site_of_domain, owner_of, site_name
from crawld.core.replica.verdict import PairEvidence
from crawld.core.units import DAY_S

ALREADY_KEPT = "kept so far"
"""Reason for keeping a host that was chosen before."""

CLEARLY_MORE = 2
"""Factor by which inlinks, one more each, must exceed those of another host of a domain ..."""

LEAST_KNOWN = 3
"""... and least inlinks of a host under which pages of another rest whose texts agree, though it is
no replica ..."""

MORE_INLINKS = 2
"""... and by how many they must exceed the other's then (`crawld lab inlinks`)."""

LEAST_COMPARED = 6
"""Pages compared before the share of a pair counts."""

_SEVERAL = 3

PREFERRED = "preferred by the operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProfile:
    """Properties of a host that decide whether it is kept.

    Attributes:
        preferred: chosen by the operator (`crawlctl replicas prefer` or the config).
        kept: whether it is kept now; other properties may change without moving the choice.
        agreement: median share, at its lower bound, of the pages of each of the other names of its
            site that agree with it; 0: its group has several sites, or nothing is measured.
        https: whether it is fetched by https.
        first_seen_at: Unix seconds.
        inlinks: registrable domains that link to it, without those of its group.
        pages: pages fetched from it.
        changed_at: latest change seen on any of them, Unix seconds; 0: none.
    """

    name: str
    preferred: bool = False
    kept: bool = False
    agreement: float = 0.0
    https: bool = False
    first_seen_at: float = 0.0
    inlinks: int = 0
    pages: int = 0
    changed_at: float = 0.0


def order_to_keep(
    profiles: Mapping[int, HostProfile],
    declared: Mapping[int, Collection[int]],
    pointing: Collection[int] = (),
) -> list[int]:
    """Return the hosts of a group, the one to keep first.

    Args:
        declared: for each, the hosts of the group that declare it to be the original.
        pointing: hosts that send readers to another name of their site.
    """
    declaring = {source for sources in declared.values() for source in sources}

    def rank(host: int) -> tuple[object, ...]:
        profile = profiles[host]
        return (
            not profile.preferred,
            host in declaring,
            host in pointing,
            not profile.kept,
            *(-merit for merit in _merits(profile, len(declared.get(host, ())))),
            profile.name,
        )

    return sorted(profiles, key=rank)


def agreement_with_others(
    names: Mapping[int, str], evidence: Mapping[tuple[int, int], PairEvidence]
) -> dict[int, float]:
    """Return the `HostProfile.agreement` of the hosts of a group; none if it has several sites.

    Nor of two hosts: these are ordered by what else is known. The share is that of the pages of
    another name that could rest under it: a name of which few pages are known is not kept by
    chance.

    Args:
        names: of the hosts.
        evidence: on pairs of them.
    """
    if len(names) < _SEVERAL or len({site_name(name) for name in names.values()}) > 1:
        return {}
    shares: dict[int, list[float]] = {}
    for pair, known in evidence.items():
        if known.compared >= LEAST_COMPARED:
            for side, host in enumerate(pair):
                others = max(known.compared, known.pages[1 - side])
                shares.setdefault(host, []).append(lower_bound(known.alike, others))
    return {host: median(some) for host, some in shares.items()}


def may_rest_under(
    copy: HostProfile,
    kept: HostProfile,
    *,
    copy_declares: bool,
    rests: bool = False,
    pages_only: bool = False,
    shows_site: bool = False,
    crowded: Collection[str] = (),
    margin: int = MORE_INLINKS,
) -> bool:
    """Whether a host may rest under another without a question to the operator.

    Args:
        copy_declares: whether the host itself declares the other to be the original.
        rests: whether it rests there now; it stays until its own inlinks are clearly more.
        pages_only: whether only pages rest whose texts agree; the host is no replica.
        shows_site: whether its root page agrees with that of the other, too.
        crowded: registrable domains that give names to anybody (`crowded_domains`).
        margin: by how many the inlinks of `kept` must exceed those of `copy` if only pages rest.
    """
    if copy.preferred:
        return False
    if kept.preferred or copy_declares:
        return True
    gave_name = shows_site and is_site_of_domain(kept.name, copy.name)
    if not gave_name and owner_of(copy.name, crowded) != owner_of(kept.name, crowded):
        return False
    if site_name(copy.name) == site_name(kept.name):
        return True
    if rests or gave_name:
        return not _is_known_better(copy, kept)
    if pages_only and kept.inlinks >= max(copy.inlinks + margin, LEAST_KNOWN):
        return True
    return copy.inlinks == kept.inlinks == 0 or _is_known_better(kept, copy)


def _is_known_better(one: HostProfile, other: HostProfile) -> bool:
    """Whether clearly more registrable domains link to a host; a few can be bought."""
    return one.inlinks >= CLEARLY_MORE * (other.inlinks + 1)


def why_kept(
    kept: HostProfile, copy: HostProfile, declared_by: Collection[str], *, copy_declares: bool
) -> str:
    """Return in words why a host is kept instead of another."""
    if kept.preferred:
        return PREFERRED
    if copy_declares:
        return f"declared by {copy.name}"
    if kept.kept:
        return ALREADY_KEPT
    words = (
        f"declared by {', '.join(sorted(declared_by))}",
        "the name of the public site",
        "agrees best with the other names",
        "more inlinks",
        "https",
        "more complete",
        "fresher",
        "the shorter name",
        "known longer",
    )
    mine, theirs = _merits(kept, len(declared_by)), _merits(copy, 0)
    return next(
        (word for word, a, b in zip(words, mine, theirs, strict=True) if a != b),
        "first in the alphabet",
    )


def _merits(profile: HostProfile, declared: int) -> tuple[float, ...]:
    # In days and steps of a tenth: hosts that differ by a moment or a page are equal.
    return (
        declared,
        not is_side_name(profile.name),
        round(profile.agreement, 1),
        profile.inlinks,
        profile.https,
        round(log(max(profile.pages, 1)) / log(1.1)),
        profile.changed_at // DAY_S,
        -len(profile.name),
        -(profile.first_seen_at // DAY_S),
    )
