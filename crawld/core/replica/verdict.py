"""Decides whether two hosts are replicas, with reasons, and which hosts may be pruned.

A score never prunes. The gate requires evidence that a score cannot give: enough equal texts under
equal paths, or a declaration by the copy itself, by redirects or canonical links on most of its
pages. The gate of the prototype (three equal texts, 15 % of the common paths, common paths 25 % of
the smaller host) passed 63 wrong pairs of one web, since the sites of one company may have three
equal texts of four; this gate also requires a confidence bound on the share.

Rules:
1. Redirects and canonical links retire the host that sends them, never their target.
2. Groups are formed only from pairs that pass the gate. A group is held for confirmation if two of
   its hosts were compared and contradict each other.
3. One run prunes only a share of all hosts (`storm.py`): more indicate a bug or an attack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

from crawld.core.replica.names import difference_in_words

LEAST_EQUAL = 6
"""Least number of equal texts under equal paths, excluding error pages and empty pages. On the
hardest test web, the sites of one company share up to five documents."""

LEAST_SHARE = 0.25
"""Share of the compared paths that must be equal, at the lower 95 % bound."""

LEAST_COVERAGE = 0.4
"""Share of the smaller host's pages whose paths both hosts must have."""

LEAST_DECLARED = 3
"""Pages that must redirect or name their canonical ..."""

LEAST_DECLARED_SHARE = 0.67
"""... and their share of the pages fetched from the copy."""

CONTRADICTED_COMPARED = 8
"""With this many paths compared and next to none equal, two hosts are not the same."""

CONTRADICTED_SHARE = 0.05

PROBED_PATHS = 24
"""Shared paths of an undecided pair that are fetched at a time."""

PROBED_PROBABILITY = 0.1
"""A pair is undecided from this probability on ..."""

PROBED_EQUAL = 3
"""... or from this many equal texts on."""

_Z = 1.645


class VerdictLevel(StrEnum):
    """Certainty of a verdict; only a certain one prunes, and only the operator can override it."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNLIKELY = "unlikely"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairEvidence:
    """The evidence on a pair (a, b); tuples hold the value of a first, then that of b.

    Attributes:
        pages: pages fetched from each.
        common: paths that both have.
        compared: common paths with texts on both.
        equal: compared paths with equal texts.
        redirects: pages of each that redirect to the same path of the other.
        canonicals: pages of each that name the same path of the other as canonical.
        same_address: whether both have one address.
        same_certificate: whether one certificate names both.
        probability: by the classifier; None if it is not trained.
    """

    names: tuple[str, str]
    pages: tuple[int, int]
    common: int
    compared: int
    equal: int
    redirects: tuple[int, int] = (0, 0)
    canonicals: tuple[int, int] = (0, 0)
    same_address: bool = False
    same_certificate: bool = False
    probability: float | None = None

    @property
    def share(self) -> float:
        """Share of the compared paths whose texts are equal."""
        return self.equal / self.compared if self.compared else 0.0

    @property
    def share_bound(self) -> float:
        """Lower 95 % bound of the share (Wilson 1927)."""
        return lower_bound(self.equal, self.compared)

    def declares(self, side: int) -> bool:
        """Whether most pages of one side (0 or 1) redirect or point to the other."""
        most = max(self.redirects[side], self.canonicals[side])
        return most >= LEAST_DECLARED and most >= LEAST_DECLARED_SHARE * self.pages[side]


def lower_bound(found: int, of: int) -> float:
    """Return the lower 95 % bound of a share.

    >>> round(lower_bound(3, 4), 2), round(lower_bound(41, 44), 2)
    (0.36, 0.84)
    """
    if not of:
        return 0.0
    share, square = found / of, _Z * _Z
    middle = share + square / (2 * of)
    spread = _Z * sqrt(share * (1 - share) / of + square / (4 * of * of))
    return (middle - spread) / (1 + square / of)


def passes_content_gate(evidence: PairEvidence) -> bool:
    """Whether the texts alone show that two hosts are replicas."""
    smaller = min(evidence.pages)
    return (
        evidence.equal >= LEAST_EQUAL
        and evidence.share_bound >= LEAST_SHARE
        and evidence.common >= LEAST_COVERAGE * smaller
    )


def passes_gate(evidence: PairEvidence) -> bool:
    """Whether a verdict on this evidence may prune.

    Equal texts are enough unless the classifier disagrees; a declaration needs no further evidence,
    since it can only retire the host that makes it.
    """
    denied = evidence.probability is not None and evidence.probability < 0.05
    return (
        (passes_content_gate(evidence) and not denied)
        or evidence.declares(0)
        or evidence.declares(1)
    )


def level_of(evidence: PairEvidence) -> VerdictLevel:
    """Return the certainty of the verdict on this evidence."""
    if passes_gate(evidence):
        return VerdictLevel.CERTAIN
    likely = (evidence.probability or 0.0) >= 0.5 or evidence.equal >= LEAST_EQUAL
    return (
        VerdictLevel.LIKELY if likely and not is_contradicted(evidence) else VerdictLevel.UNLIKELY
    )


def is_contradicted(evidence: PairEvidence) -> bool:
    """Whether enough paths were compared to show that two hosts are not the same."""
    return (
        evidence.compared >= CONTRADICTED_COMPARED
        and evidence.share <= CONTRADICTED_SHARE
        and not evidence.declares(0)
        and not evidence.declares(1)
    )


def is_undecided(evidence: PairEvidence) -> bool:
    """Whether fetching more common pages may decide the pair."""
    promising = (
        evidence.probability or 0.0
    ) >= PROBED_PROBABILITY or evidence.equal >= PROBED_EQUAL
    return promising and not passes_gate(evidence) and not is_contradicted(evidence)


def reasons(evidence: PairEvidence) -> list[str]:
    """Return the reasons in words, the strongest first.

    >>> reasons(PairEvidence(names=("www.a.com", "a.com"), pages=(60, 52), common=44, compared=44,
    ...                      equal=41, same_address=True))
    ['same content on 41 of 44 shared paths', 'names differ by www.', 'same address']
    """
    words = []
    for side in (0, 1):
        here, there = evidence.names[side], evidence.names[1 - side]
        if count := evidence.redirects[side]:
            words.append(f"{count} of {evidence.pages[side]} pages of {here} redirect to {there}")
        if count := evidence.canonicals[side]:
            words.append(
                f"{count} of {evidence.pages[side]} pages of {here} name {there} as canonical"
            )
    if evidence.compared:
        words.append(f"same content on {evidence.equal} of {evidence.compared} shared paths")
    else:
        words.append(f"{evidence.common} shared paths, no content to compare")
    if difference := difference_in_words(*evidence.names):
        words.append(difference)
    if evidence.same_address:
        words.append("same address")
    if evidence.same_certificate:
        words.append("one certificate names both")
    return words


def connected_groups(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return the groups of hosts that are connected by pairs, each in ascending order."""
    root: dict[int, int] = {}

    def find(host: int) -> int:
        while root.setdefault(host, host) != host:
            root[host] = root[root[host]]
            host = root[host]
        return host

    for one, other in pairs:
        low, high = sorted((find(one), find(other)))
        root[high] = low
    members: dict[int, list[int]] = {}
    for host in root:
        members.setdefault(find(host), []).append(host)
    return [tuple(sorted(members[at])) for at in sorted(members)]


def declared_by(
    evidence: Mapping[tuple[int, int], PairEvidence], hosts: Sequence[int]
) -> dict[int, set[int]]:
    """Return for each host of a group the hosts of the group that declare it to be the original."""
    inside = set(hosts)
    found: dict[int, set[int]] = {host: set() for host in hosts}
    for (one, other), pair in evidence.items():
        if one in inside and other in inside:
            if pair.declares(0):
                found[other].add(one)
            if pair.declares(1):
                found[one].add(other)
    return found
