"""Decide which hosts are replicas, from judged pairs. Pure functions, so each rule is testable.

1. The operator's word wins: a confirmed pair is a replica, a rejected one shares nothing.
2. Two hosts whose evidence shows that they share pages are linked, and compared page by page: one
   becomes `partly` a replica, of which the agreeing pages rest. As soon as the comparisons say so,
   it is declared (`pruned`), and later withdrawn, by one statistic (`verdict.is_replica`).
3. Links are never closed: each host rests under the first host in the order of
   `core/replica/canonical.py` with which it is linked itself. A page that is not as that host's may
   rest under another one (an *alternate*) under which its host may rest too.
4. Between owners nothing rests without a declaration of the copy; a pair that looks like a replica
   is held for the operator.
5. If a run would prune too many hosts, some of the new ones are held (`storm.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from crawld.core.replica.canonical import (
    HostProfile,
    agreement_with_others,
    may_rest_under,
    order_to_keep,
    why_kept,
)
from crawld.core.replica.owners import is_side_name, site_name
from crawld.core.replica.verdict import (
    HostAgreement,
    PairEvidence,
    declared_by,
    is_replica,
    is_worth_a_question,
    may_be_replica,
    pointing_hosts,
    shares_pages,
)
from crawld.daemon.jobs.replicas.decision import Decision
from crawld.daemon.jobs.replicas.storm import StormLimit
from crawld.store.replica.pair import Pair, Word, ordered_pair
from crawld.store.replica.replica import RESTING, ReplicaRow, Status

LEFT_SHARE: Final = 0.05
"""Bound of the agreeing share below which the pages of two hosts are no longer compared; half of
the least share with which it begins (`verdict.SHARED_SHARE_OF_DOMAIN`)."""


MOST_ALTERNATES: Final = 4
"""Hosts besides the canonical one with whose pages those of a replica are compared."""

FEW_HOSTS: Final = 30
"""In larger groups only hosts that are linked themselves are alternates."""

STAYING: Final = 2.0
"""How much more pages count that rest under a host than those that may: hosts do not change for
little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """The input of a plan.

    Attributes:
        evidence: by pair of host numbers, the smaller first.
        profiles: the profile of each host in a pair.
        replicas: with how many of their pages agree.
        crowded: registrable domains that give names to anybody.
        limit: how many hosts this run may prune.
    """

    evidence: Mapping[Pair, PairEvidence]
    operator_words: Mapping[Pair, Word]
    replicas: Sequence[ReplicaRow]
    profiles: Mapping[int, HostProfile]
    hosts: int
    crowded: Collection[str] = ()
    limit: StormLimit = field(default_factory=StormLimit)


def link_of(given: PlanInput, pair: Pair, row: ReplicaRow | None) -> bool | None:
    """Return whether one host of a pair is a replica of the other; None: they share no pages.

    Args:
        given: of it only what is known of the pair counts.
        pair: the hosts.
        row: what is stored of one as a replica of the other, unless that was withdrawn.
    """
    word = given.operator_words.get(pair)
    if word is not None:
        return True if word == "confirmed" else None
    return _verdict(given, pair, row)


def _verdict(given: PlanInput, pair: Pair, row: ReplicaRow | None) -> bool | None:
    """Return whether one host of a pair is a replica; None if they do not even share pages."""
    evidence = given.evidence.get(pair)
    status = None if row is None else row.status
    if evidence is None:
        return status == "pruned" if status in RESTING else None
    if row is None or status not in RESTING:
        if evidence.is_declared:
            return not evidence.compared  # of pages that redirect there are no texts to compare
        return False if shares_pages(evidence) else None
    # Pages that rest age, so that only their comparisons count.
    agreement = agreement_of(row)
    if agreement is None:
        return status == "pruned" or (evidence.is_declared and not evidence.compared)
    if is_replica(evidence, agreement, declared=status == "pruned"):
        return True
    few = agreement.least_share < LEFT_SHARE and not evidence.is_of_one_site
    return False if evidence.is_declared or (agreement.agreeing and not few) else None


def agreement_of(row: ReplicaRow) -> HostAgreement | None:
    """Return how many pages of a host agree with their twins; None if none was compared.

    Before a host is declared, all its pages count that were never visited: those near the root may
    be a manual, and the others its own. What it finds later does not undo the verdict.
    """
    compared = row.agreeing + row.differing
    if not compared:
        return None
    root = None if row.root is None else bool(row.root)
    size = row.twins if row.status == "pruned" else max(row.twins, row.unvisited + compared)
    return HostAgreement(size, row.agreeing, row.differing, root)


def is_row_overdue(given: PlanInput, row: ReplicaRow) -> bool:
    """Whether comparisons since the last plan change the status of a host."""
    return (
        row.status in RESTING
        and pair_of(row) not in given.operator_words
        and _status(given, row) != row.status
    )


def _status(given: PlanInput, row: ReplicaRow) -> Status | None:
    """Return the status of a host by its comparisons; None if it shares no pages any more."""
    pair = pair_of(row)
    same = _verdict(given, pair, row)
    if same is None:
        return None
    evidence = given.evidence.get(pair)
    declares = evidence is not None and evidence.declares(pair.index(row.server_id))
    may = _may_rest(given, row.server_id, row.canonical_id, row, copy_declares=declares)
    return "pruned" if same and may else "partly"


def decide_group(
    hosts: Sequence[int],
    links: Mapping[Pair, bool],
    neighbors: Mapping[int, Sequence[int]],
    rows: Mapping[int, ReplicaRow],
    given: PlanInput,
) -> list[Decision]:
    """Decide the hosts of a group in the order in which they are kept: near-linear in its links.

    Of three sites and more, such as branches of a company, those are kept first under which most
    pages of the others may rest.
    """
    evidence = {
        pair: given.evidence[pair]
        for host in hosts
        for other in neighbors[host]
        if (pair := ordered_pair(host, other)) in given.evidence
    }
    declared = declared_by(evidence, hosts)
    pointing = pointing_hosts(evidence)
    agreement = agreement_with_others({host: given.profiles[host].name for host in hosts}, evidence)
    profiles = {host: given.profiles[host] for host in hosts}
    profiles |= {host: replace(profiles[host], agreement=one) for host, one in agreement.items()}
    group = _Group(given, links, rows, evidence, declared, profiles)
    order = order_to_keep(profiles, declared, pointing)
    place = {host: at for at, host in enumerate(order)}
    later = {
        kept: [copy for copy in sorted(neighbors[kept]) if place[copy] > place[kept]]
        for kept in order
    }
    are_branches = len(hosts) > 2 and _are_branches(profiles.values(), declared)
    if are_branches:
        gains = {kept: sum(group.gain(copy, kept) for copy in later[kept]) for kept in order}
        order.sort(key=lambda host: -gains[host])
    found, asked = _decide_in_order(order, later, group, may_stay=not are_branches)
    if len(hosts) > 2:
        for copy, decision in found.items():
            others = hosts if len(hosts) <= FEW_HOSTS else neighbors[copy]
            alternates = group.alternates(copy, decision.canonical_id, others)
            found[copy] = replace(decision, alternates=alternates)
    held = [decision for copy, decision in asked.items() if copy not in found]
    return sorted([*found.values(), *held], key=lambda decision: decision.server_id)


def _decide_in_order(
    order: Sequence[int], later: Mapping[int, Sequence[int]], group: _Group, *, may_stay: bool
) -> tuple[dict[int, Decision], dict[int, Decision]]:
    """Return the decisions on hosts that rest, and on those that would wait, by host.

    Args:
        order: the hosts, the first to keep first.
        later: for each, those linked with it that may rest under it.
        group: decides about pairs.
        may_stay: whether a host goes to another for more pages only.
    """
    found: dict[int, Decision] = {}
    asked: dict[int, Decision] = {}
    left: dict[int, int] = {}
    keeping: set[int] = set()
    for kept in order:
        if kept in found:
            continue
        # Those that rest elsewhere come last: they stay, unless their own host rests here now.
        for copy in sorted(later[kept], key=lambda copy: group.rests_elsewhere(copy, kept)):
            if copy in found or copy in keeping:
                continue
            if may_stay and group.stays(copy, kept, found):
                left.setdefault(copy, kept)
                continue
            decision = group.decision(copy, kept)
            if decision is not None:
                found[copy] = decision
                keeping.add(kept)
            elif copy not in asked and group.asks(copy, kept):
                names = f"{group.profiles[kept].name} and {group.profiles[copy].name}"
                asked[copy] = Decision.held(copy, kept, f"{names} may have different owners")
    _add_left(found, left, keeping, group)
    return found, asked


def _add_left(
    found: dict[int, Decision], left: Mapping[int, int], keeping: Collection[int], group: _Group
) -> None:
    """Decide about hosts whose own host rests by now, under one with which they share nothing.

    Args:
        found: the decisions on hosts that rest.
        left: for each host that was to stay, the first other one under which it may rest.
        keeping: hosts under which others rest.
        group: decides about pairs.
    """
    for copy, kept in left.items():
        if copy in found or copy in keeping or kept in found:
            continue
        decision = group.decision(copy, kept)
        if decision is not None:
            found[copy] = decision


def _are_branches(profiles: Iterable[HostProfile], declared: Mapping[int, Collection[int]]) -> bool:
    """Whether no host is another name of one, and neither they nor the operator say which to keep.

    All of it holds for long: what a single comparison changes would move the hosts to and fro.
    """
    known = list(profiles)
    sites = {site_name(profile.name) for profile in known}
    told = any(declared.values()) or any(profile.preferred for profile in known)
    return len(sites) == len(known) and not told


class _Group(NamedTuple):
    """What decides about the pairs of a group."""

    given: PlanInput
    links: Mapping[Pair, bool]
    rows: Mapping[int, ReplicaRow]
    evidence: Mapping[Pair, PairEvidence]
    declared: Mapping[int, Collection[int]]
    profiles: Mapping[int, HostProfile]

    def decision(self, copy: int, kept: int) -> Decision | None:
        """Return what becomes of a host under another; None: it may not rest there."""
        given, pair = self.given, ordered_pair(kept, copy)
        is_declared = self._is_declared(copy, kept)
        here, there = self.profiles[copy], self.profiles[kept]
        row = self.rows.get(copy)
        rests = self._rests(copy, kept)
        may = given.operator_words.get(pair) == "confirmed" or _may_rest(
            given, copy, kept, row, copy_declares=is_declared
        )
        if not may and not self._may_show_pages(copy, kept):
            return None
        names = [self.profiles[host].name for host in self.declared[kept]]
        points = pair in self.evidence and self.evidence[pair].points(pair.index(copy))
        why = why_kept(there, here, names, copy_declares=is_declared or points)
        reason = row.reason if row is not None and rests else why
        status: Status = "pruned" if self.links[pair] and may else "partly"
        return Decision(copy, kept, status, reason)

    def asks(self, copy: int, kept: int) -> bool:
        """Whether the operator is asked about two hosts."""
        return _asks(ordered_pair(copy, kept), self.rows.get(copy), self.given)

    def alternates(self, copy: int, kept: int, others: Iterable[int]) -> tuple[int, ...]:
        """Return those of some hosts under which pages of a host may rest, too, ascending.

        Of two hosts of which either could rest under the other, only the second does: a page rests
        under one that is crawled.
        """
        found: list[int] = []
        for other in sorted(others):
            if len(found) == MOST_ALTERNATES:
                break
            if other in (copy, kept) or not self._may_show(copy, other):
                continue
            if other < copy or not self._may_show(other, copy):
                found.append(other)
        return tuple(found)

    def _may_show(self, copy: int, other: int) -> bool:
        """Whether pages of a host may rest under another; under staging only those of staging."""
        names = self.profiles[copy].name, self.profiles[other].name
        if is_side_name(names[1]) and not is_side_name(names[0]):
            return False
        word = self.given.operator_words.get(ordered_pair(copy, other))
        return word == "confirmed" or (word is None and self._may_show_pages(copy, other))

    def _may_show_pages(self, copy: int, other: int) -> bool:
        """Whether pages of a host may rest under another that show the same text."""
        row = self.rows.get(copy)
        return may_rest_under(
            self.profiles[copy],
            self.profiles[other],
            copy_declares=self._is_declared(copy, other),
            rests=self._rests(copy, other),
            pages_only=True,
            shows_site=_shows_site(self.given, ordered_pair(copy, other), row, other),
            crowded=self.given.crowded,
        )

    def _is_declared(self, copy: int, kept: int) -> bool:
        return copy in self.declared[kept] and kept not in self.declared[copy]

    def rests_elsewhere(self, copy: int, kept: int) -> bool:
        """Whether pages of a host rest under another than this."""
        row = self.rows.get(copy)
        return row is not None and row.canonical_id != kept and row.status in RESTING

    def stays(self, copy: int, kept: int, resting: Collection[int]) -> bool:
        """Whether a host stays under the one where it rests, rather than go to another.

        It does not if that one rests now, or if somebody says so, or if far more pages would rest.

        Args:
            resting: hosts that rest by what was decided so far.
        """
        row, there = self.rows.get(copy), self.profiles[kept]
        if row is None or not self.rests_elsewhere(copy, kept):
            return False
        now = row.canonical_id
        if now in resting or now not in self.profiles or ordered_pair(copy, now) not in self.links:
            return False
        told = (
            there.preferred or copy in self.declared[kept] or self.links[ordered_pair(copy, kept)]
        )
        if told or self.decision(copy, now) is None:
            return False
        return self._alike(copy, kept) < STAYING * self._alike(copy, now)

    def _alike(self, copy: int, kept: int) -> float:
        known = self.evidence.get(ordered_pair(copy, kept))
        return known.alike if known is not None else 0.0

    def gain(self, copy: int, kept: int) -> float:
        """Return how many pages of a host may rest under another; what rests there counts more."""
        if self.decision(copy, kept) is None:
            return 0.0
        pages = self._alike(copy, kept)
        return STAYING * pages if self._rests(copy, kept) else pages

    def _rests(self, copy: int, kept: int) -> bool:
        row = self.rows.get(copy)
        return row is not None and row.canonical_id == kept and row.status in RESTING


def _may_rest(
    given: PlanInput, copy: int, kept: int, row: ReplicaRow | None, *, copy_declares: bool
) -> bool:
    """Whether a host may be declared a replica of another without a question to the operator."""
    is_pruned = row is not None and row.canonical_id == kept and row.status == "pruned"
    return may_rest_under(
        given.profiles[copy],
        given.profiles[kept],
        copy_declares=copy_declares,
        rests=is_pruned,
        shows_site=_shows_site(given, ordered_pair(copy, kept), row, kept),
        crowded=given.crowded,
    )


def _shows_site(given: PlanInput, pair: Pair, row: ReplicaRow | None, kept: int) -> bool:
    """Whether a host shows the site of the one to keep, its root page included.

    Of a declared host the verdict says so, which has its own thresholds.
    """
    if row is not None and row.canonical_id == kept and row.status in RESTING:
        if row.status == "pruned":
            return True
        if row.root is not None:
            return bool(row.root)
    evidence = given.evidence.get(pair)
    return evidence is not None and evidence.root is True


def withdrawals(links: Mapping[Pair, bool], given: PlanInput) -> list[Decision]:
    """Withdraw hosts whose pages were compared and differ; their old texts must not count again."""
    found = []
    for row in given.replicas:
        pair, agreement = pair_of(row), agreement_of(row)
        if (
            row.status in RESTING
            and agreement
            and pair not in links
            and pair not in given.operator_words
        ):
            compared = agreement.agreeing + agreement.differing
            why = f"{agreement.differing} of {compared} compared pages differ"
            found.append(Decision(row.server_id, row.canonical_id, "withdrawn", why))
    return found


def _asks(pair: Pair, row: ReplicaRow | None, given: PlanInput) -> bool:
    """Whether the operator is asked about two hosts that may have different owners."""
    evidence = given.evidence.get(pair)
    if evidence is None:
        return False
    was_asked = row is not None and row.status == "held" and pair_of(row) == pair
    return is_worth_a_question(evidence) or (was_asked and may_be_replica(evidence))


def pair_of(row: ReplicaRow) -> Pair:
    """Return a replica and its canonical host as a pair."""
    return ordered_pair(row.server_id, row.canonical_id)
