"""Decides from evidence whether the pages of two hosts are compared, and whether one is a replica.

Two steps, since only a comparison page by page can show that a host is a replica:

1. Hosts *share pages* if some texts under equal paths are equal. A text counts by how rare it is
   over all hosts, so one manual on many hosts, a login wall or a parking page proves little. From
   then on `rest.py` decides page by page, whatever becomes of the hosts, so that little is needed.
2. A host is a *replica* by the lower 95 % bound of the share of its pages that agree, if enough
   do. The same number declares and withdraws, with a distance between both thresholds. Names that
   say that two hosts are versions or languages of one thing forbid it.

Redirects and canonical links on most pages of a host declare it to be a replica of their target:
they retire the host that sends them, never the target, and only if its pages agree: a site may move
in part, or quote another. A score proves nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from crawld.core.replica.bound import agreeing_share_bound, lower_bound
from crawld.core.replica.owners import are_editions, differ_by_www, site_name, without_port
from crawld.core.url import registrable_domain

SHARED_WEIGHT: Final = 3.0
"""Least weight of the equal texts under equal paths of two hosts that share pages."""

SHARED_TEXTS: Final = 2
"""The same for hosts of one registrable domain, whatever the weight: many may show its texts."""

SHARED_SHARE: Final = 0.15
"""Share of the compared paths that must be equal then, at the lower 95 % bound ..."""

SHARED_SHARE_OF_DOMAIN: Final = 0.1
"""... and for hosts of one registrable domain."""

SHARED_COVERAGE: Final = 0.2
"""Share of the smaller host's pages whose paths both hosts must have then."""

LEAST_WEIGHT: Final = 6.0
"""The weight of a possible replica. On the hardest test web, the sites of one company share up to
five documents."""

LEAST_SHARE: Final = 0.25
"""Share of the compared paths that must be equal by weight then, at the lower 95 % bound."""

LEAST_COVERAGE: Final = 0.4
"""Share of the smaller host's pages whose paths both hosts must have then."""

LEAST_AGREEING: Final = 6
"""Pages that must agree before a host is declared a replica."""

DECLARED_SHARE: Final = 0.9
"""Bound of the agreeing share from which on a host is declared a replica ..."""

WITHDRAWN_SHARE: Final = 0.8
"""... and below which the verdict is withdrawn."""

WWW_DECLARED_SHARE: Final = 0.5
"""The same for names that differ only by "www.", which nearly always show one site ..."""

WWW_WITHDRAWN_SHARE: Final = 0.4
"""... although much of it may be old or differ at each visit."""

ROOT_SHARE: Final = 0.15
"""How much the bound falls if the root pages differ: two hosts have one manual and own news."""

LEAST_RARE: Final = 5
"""With so many compared paths that only the two hosts have, most of these must agree too."""

LEAST_SHARE_OF_RARE: Final = 0.9

DECLARED_RARITY: Final = 0.5
"""Mean weight of a shared text from which on a host is declared a replica: up to three hosts show
such a text. What more hosts show may be the sample pages of one program ..."""

WITHDRAWN_RARITY: Final = 0.4
"""... and below this weight, about six hosts, the verdict is withdrawn."""

LEAST_DECLARED: Final = 3
"""Pages that must redirect or name their canonical ..."""

LEAST_DECLARED_SHARE: Final = 0.67
"""... and their share of the pages fetched from the copy."""

LEAST_POINTING_SHARE: Final = 0.2
"""The share from which on one of two names of a site is the other to keep."""

CONTRADICTED_COMPARED: Final = 8
"""With this many paths compared and next to none equal, two hosts are not the same."""

CONTRADICTED_SHARE: Final = 0.05

PROBED_PATHS: Final = 24
"""Shared paths of an undecided pair that are fetched at a time."""

MOST_PROBED: Final = 96
"""A pair that needs more pages than this is not asked for any."""

PROBED_PROBABILITY: Final = 0.1
"""A pair is undecided from this probability on ..."""

PROBED_EQUAL: Final = 3
"""... or from this many equal texts on."""


class VerdictLevel(StrEnum):
    """What the evidence shows; only a certain level can declare a replica."""

    CERTAIN = "certain"
    LIKELY = "likely"
    UNLIKELY = "unlikely"


class HostAgreement(NamedTuple):
    """How many pages of a host agree with their twins.

    Attributes:
        size: its pages, without those that were visited and have no twin.
        agreeing: pages whose own text agreed when last compared.
        differing: pages whose text differed, or proves nothing (a wall, an error page).
        root: whether the root pages agree; None: not compared.
    """

    size: int
    agreeing: int
    differing: int
    root: bool | None = None

    @property
    def least_share(self) -> float:
        """Lower 95 % bound of the agreeing share."""
        compared = self.agreeing + self.differing
        return agreeing_share_bound(max(self.size, compared), compared, self.differing)

    @property
    def share_bound(self) -> float:
        """The same, less if the roots differ: decides the verdict."""
        return self.least_share - self._penalty

    @property
    def seen_share(self) -> float:
        """Agreeing share of the compared pages, less if the roots differ; 1 if none was compared.

        Enough for a host that says itself that it is a replica.
        """
        compared = self.agreeing + self.differing
        return self.agreeing / compared - self._penalty if compared else 1.0

    @property
    def is_shown(self) -> bool:
        """Whether several pages agree, or all of a small host were compared, or none could be."""
        compared = self.agreeing + self.differing
        return self.agreeing >= LEAST_AGREEING or compared in (0, self.size)

    @property
    def _penalty(self) -> float:
        return ROOT_SHARE if self.root is False else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PairEvidence:
    """The evidence on a pair (a, b); tuples hold the value of a first, then that of b.

    Attributes:
        pages: pages fetched from each.
        common: paths that both have.
        compared: common paths with texts on both.
        equal: compared paths with equal texts.
        partial: sum over the other compared paths of how far the texts resemble, each 0 to 1.
        weight: sum over both of how rare the texts are, 1 for a text of these two hosts only;
            None: not measured, each counts 1.
        rare: of the paths that only these two hosts have, those compared, and those that are equal.
        root: whether the texts of the root pages are equal or resemble; None: not compared.
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
    weight: float | None = None
    partial: float = 0.0
    rare: tuple[int, int] = (0, 0)
    root: bool | None = None
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
    def shown(self) -> float:
        """Weight of the texts that agree, in part or whole."""
        return self.alike if self.weight is None else self.weight

    @property
    def alike(self) -> float:
        """How many texts agree, in part or whole, whatever their weight."""
        return self.equal + self.partial

    @property
    def rarity(self) -> float:
        """Mean weight of a text that agrees; 1 if none does."""
        return self.shown / self.alike if self.alike else 1.0

    def as_rare_as(self, later: PairEvidence) -> PairEvidence:
        """Return this evidence with the mean weight of a text in other evidence on the pair."""
        weight = later.rarity * self.alike if later.alike else self.weight
        return self if weight == self.weight else replace(self, weight=weight)

    @property
    def agreement(self) -> HostAgreement:
        """What the evidence says about the agreement of the hosts, before pages are compared."""
        agreeing = self.equal + int(self.partial)
        return HostAgreement(self.common, agreeing, self.compared - agreeing, self.root)

    def declares(self, side: int) -> bool:
        """Whether most pages of one side (0 or 1) redirect or point to the other."""
        most = max(self.redirects[side], self.canonicals[side])
        return most >= LEAST_DECLARED and most >= LEAST_DECLARED_SHARE * self.pages[side]

    def points(self, side: int) -> bool:
        """Whether one side (0 or 1) sends readers to the other, both of one site by their names.

        It is not to be kept then: the pages of the other would have redirects as their twins.
        """
        least = [max(LEAST_DECLARED, LEAST_POINTING_SHARE * pages) for pages in self.pages]
        most = [max(self.redirects[at], self.canonicals[at]) for at in (0, 1)]
        return (
            self.is_of_one_site and most[side] >= least[side] and most[1 - side] < least[1 - side]
        )

    @property
    def is_of_one_site(self) -> bool:
        """Whether the names differ by service labels only (`www`, `web2`)."""
        one, other = self.names
        return site_name(one) == site_name(other)

    @property
    def is_of_one_domain(self) -> bool:
        """Whether both names are under one registrable domain."""
        one, other = (registrable_domain(without_port(name)) for name in self.names)
        return one == other

    @property
    def redirects_pages(self) -> bool:
        """Whether several pages of one of the hosts redirect to the same path of the other."""
        return max(self.redirects) >= LEAST_DECLARED

    @property
    def is_declared(self) -> bool:
        """Whether most pages of one of the hosts redirect or point to the other."""
        return self.declares(0) or self.declares(1)


def shares_pages(evidence: PairEvidence) -> bool:
    """Whether the pages of two hosts are to be compared one by one.

    Each page rests by its own comparison, so this saves only work: two names of one site are
    compared from one equal text on, and hosts of which pages redirect to the other.
    """
    if evidence.redirects_pages or (evidence.is_of_one_site and evidence.alike >= 1.0):
        return True
    if evidence.is_of_one_domain:
        is_enough, least = evidence.alike >= SHARED_TEXTS, SHARED_SHARE_OF_DOMAIN
    else:
        is_enough, least = evidence.shown >= SHARED_WEIGHT, SHARED_SHARE
    return (
        is_enough
        and lower_bound(evidence.alike, evidence.compared) >= least
        and _covers(evidence, SHARED_COVERAGE)
    )


def _covers(evidence: PairEvidence, share: float) -> bool:
    return evidence.common >= share * min(evidence.pages)


def may_be_replica(evidence: PairEvidence, more: int = 0) -> bool:
    """Whether two hosts share so many pages that one may be a replica of the other.

    Args:
        more: shared paths that are taken for fetched and equal as well, each as rare as those so
            far.
    """
    shown = evidence.shown + evidence.rarity * more
    return (
        shown >= LEAST_WEIGHT
        and lower_bound(shown, shown + evidence.compared - evidence.alike) >= LEAST_SHARE
        and evidence.common + more >= LEAST_COVERAGE * (min(evidence.pages) + more)
    )


def is_replica(evidence: PairEvidence, agreement: HostAgreement, *, declared: bool) -> bool:
    """Whether one host of a pair is a replica of the other.

    Args:
        agreement: of the pages of one with those of the other.
        declared: whether it is a replica now; a lower threshold withdraws.
    """
    if evidence.is_declared:
        least = WITHDRAWN_SHARE if declared else DECLARED_SHARE
        return agreement.seen_share >= least and (declared or agreement.is_shown)
    least = WITHDRAWN_RARITY if declared else DECLARED_RARITY
    return _agrees(evidence, agreement, declared=declared) and _is_of_few_hosts(evidence, least)


def _agrees(evidence: PairEvidence, agreement: HostAgreement, *, declared: bool) -> bool:
    if are_editions(*evidence.names):
        return False
    if differ_by_www(*evidence.names):
        least = WWW_WITHDRAWN_SHARE if declared else WWW_DECLARED_SHARE
    else:
        least = WITHDRAWN_SHARE if declared else DECLARED_SHARE
    if agreement.agreeing < LEAST_AGREEING or agreement.share_bound < least:
        return False
    return declared or (
        (evidence.alike >= 1.0 or not evidence.compared)  # not by redirects alone
        and evidence.rarity * agreement.agreeing >= LEAST_WEIGHT
        and _covers(evidence, LEAST_COVERAGE)
        and (_rare_pages_agree(evidence) or _rare_pages_agree_now(evidence, agreement))
    )


def _is_of_few_hosts(evidence: PairEvidence, least: float) -> bool:
    """Whether few hosts show the texts; the machines of one site may be many."""
    return evidence.rarity >= least or evidence.is_of_one_site


def _rare_pages_agree(evidence: PairEvidence) -> bool:
    compared, equal = evidence.rare
    return compared < LEAST_RARE or equal + evidence.partial >= LEAST_SHARE_OF_RARE * compared


def _rare_pages_agree_now(evidence: PairEvidence, agreement: HostAgreement) -> bool:
    """Whether they must agree, however few other pages differ: since then all were compared."""
    compared, _ = evidence.rare
    is_known = agreement.agreeing + agreement.differing >= evidence.compared
    return is_known and compared - agreement.differing >= LEAST_SHARE_OF_RARE * compared


def looks_like_replica(evidence: PairEvidence) -> bool:
    """Whether the evidence promises a replica before the pages are compared one by one."""
    if evidence.is_declared:
        return is_replica(evidence, evidence.agreement, declared=False)
    return is_worth_a_question(evidence) and _is_of_few_hosts(evidence, DECLARED_RARITY)


def is_worth_a_question(evidence: PairEvidence) -> bool:
    """Whether hosts agree like a replica, as mirrors of many owners do, and a person can tell."""
    return evidence.is_declared or (
        may_be_replica(evidence) and _agrees(evidence, evidence.agreement, declared=False)
    )


def level_of(evidence: PairEvidence) -> VerdictLevel:
    """Return the certainty of the verdict on this evidence."""
    if looks_like_replica(evidence):
        return VerdictLevel.CERTAIN
    likely = (evidence.probability or 0.0) >= 0.5 or may_be_replica(evidence)
    return (
        VerdictLevel.LIKELY if likely and not is_contradicted(evidence) else VerdictLevel.UNLIKELY
    )


def is_contradicted(evidence: PairEvidence) -> bool:
    """Whether enough paths were compared to show that two hosts are not the same."""
    return (
        evidence.compared >= CONTRADICTED_COMPARED
        and evidence.alike <= CONTRADICTED_SHARE * evidence.compared
        and not evidence.is_declared
    )


def pages_to_probe(evidence: PairEvidence) -> int | None:
    """Return how many more shared paths must be fetched to show that a host may be a replica.

    A curtailed sequential test: it assumes that all of them will be equal, each as rare as those so
    far, is asked again after each run, and gives up when it cannot be passed.

    Returns:
        0: it may be one now. None: more than `MOST_PROBED`, or enough differs to give up.
    """
    if is_contradicted(evidence):
        return None

    def is_enough(more: int) -> bool:
        return may_be_replica(evidence, more)

    if not is_enough(MOST_PROBED):
        return None
    return bisect_left(range(MOST_PROBED), True, key=is_enough)


def is_undecided(evidence: PairEvidence) -> bool:
    """Whether fetching more common pages may decide the pair."""
    promising = (
        evidence.probability or 0.0
    ) >= PROBED_PROBABILITY or evidence.equal >= PROBED_EQUAL
    if not promising or evidence.is_declared or is_contradicted(evidence):
        return False
    # As `pages_to_probe`, without the number: this is asked for every pair of a search.
    return not may_be_replica(evidence) and may_be_replica(evidence, MOST_PROBED)


def pointing_hosts(evidence: Mapping[tuple[int, int], PairEvidence]) -> set[int]:
    """Return the hosts that send readers to another name of their site."""
    return {
        host
        for pair, shown in evidence.items()
        for side, host in enumerate(pair)
        if shown.points(side)
    }


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
