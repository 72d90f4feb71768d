"""Decide which hosts are replicas, from judged pairs. Pure functions, so each rule is testable.

1. The operator's word wins: a confirmed pair is gated (certain enough), a rejected pair is not.
2. A host that is already pruned stays pruned: its suspended pages age, so their content no longer
   counts; its samples decide.
3. Gated pairs are closed into groups. If a group holds a contradiction, or a choice that only the
   operator can make, the hosts of each owner are decided separately and the rest is held.
4. `core/replica/canonical.py` chooses the host to keep.
5. If a run would prune too many hosts, some of the new ones are held (`storm.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crawld.core.replica.canonical import (
    ALREADY_KEPT,
    Choice,
    HostProfile,
    choose_canonical,
    owners,
)
from crawld.core.replica.verdict import (
    PairEvidence,
    connected_groups,
    declared_by,
    passes_gate,
)
from crawld.daemon.jobs.replicas.decision import Decision
from crawld.daemon.jobs.replicas.storm import StormLimit, limit_pruning
from crawld.store.replica.pair import Word
from crawld.store.replica.replica import ReplicaRow

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """The input of a plan.

    Attributes:
        evidence: by pair of host numbers, the smaller first.
        contradictions: pairs that were compared and differ.
        profiles: the profile of each host in a pair.
        limit: how many hosts this run may prune.
    """

    evidence: Mapping[Pair, PairEvidence]
    operator_words: Mapping[Pair, Word]
    replicas: Sequence[ReplicaRow]
    contradictions: Collection[Pair]
    profiles: Mapping[int, HostProfile]
    hosts: int
    limit: StormLimit = field(default_factory=StormLimit)


def gated_pairs(given: PlanInput) -> set[Pair]:
    """Return the pairs that may be closed into groups."""
    pruned = {row.host_id for row in given.replicas if row.status == "pruned"}
    pairs = {
        pair
        for pair, evidence in given.evidence.items()
        if not pruned.intersection(pair) and passes_gate(evidence)
    }
    pairs |= {_pair(row) for row in given.replicas if row.status == "pruned"}
    pairs |= {pair for pair, word in given.operator_words.items() if word == "confirmed"}
    return {pair for pair in pairs if given.operator_words.get(pair) != "rejected"}


def plan(given: PlanInput) -> list[Decision]:
    """Return a decision on each host of a group except the one to keep."""
    pairs = gated_pairs(given)
    confirmed = {pair for pair in pairs if given.operator_words.get(pair) == "confirmed"}
    rejected = {pair for pair in given.contradictions if pair not in given.operator_words}
    rejected |= {pair for pair, word in given.operator_words.items() if word == "rejected"}
    decisions = []
    closed = connected_groups(sorted(pairs))
    group_of = {host: at for at, group in enumerate(closed) for host in group}
    inside = _by_group(given.evidence, group_of)
    against = _by_group(rejected, group_of)
    for at, group in enumerate(closed):
        evidence = {pair: given.evidence[pair] for pair in inside.get(at, ())}
        part = replace(given, evidence=evidence)
        decisions += _decide_group(group, confirmed, against.get(at, ()), part)
    return limit_pruning(
        decisions,
        {host for pair in confirmed for host in pair},
        given.replicas,
        {host: profile.name for host, profile in given.profiles.items()},
        given.hosts,
        given.limit,
    )


def _by_group(pairs: Iterable[Pair], group_of: Mapping[int, int]) -> dict[int, list[Pair]]:
    """Return the pairs inside each group."""
    found: dict[int, list[Pair]] = {}
    for one, other in pairs:
        at = group_of.get(one)
        if at is not None and at == group_of.get(other):
            found.setdefault(at, []).append((one, other))
    return found


def _decide_group(
    hosts: tuple[int, ...],
    confirmed: Collection[Pair],
    rejected: Collection[Pair],
    given: PlanInput,
) -> list[Decision]:
    """Decide a group; if it cannot be decided as a whole, the hosts of each owner separately."""
    so_far = {row.canonical_id: row.reason for row in given.replicas if row.status == "pruned"}
    profiles = {host: replace(given.profiles[host], kept=host in so_far) for host in hosts}
    owner = owners(profiles, confirmed)
    choice = choose_canonical(profiles, declared_by(given.evidence, hosts), owner)
    against = sorted(pair for pair in rejected if pair[0] in profiles and pair[1] in profiles)
    if against:
        names = " and ".join(profiles[host].name for host in against[0])
        is_rejected = given.operator_words.get(against[0]) == "rejected"
        why = "are two hosts, as the operator says" if is_rejected else "show different content"
        choice = Choice(None, f"{names} {why}")
    if choice.host is not None:
        # Keep the reason for which the host was first chosen.
        reason = choice.reason
        if reason == ALREADY_KEPT:
            reason = so_far.get(choice.host, ALREADY_KEPT)
        return [
            Decision(host, choice.host, "pruned", reason) for host in hosts if host != choice.host
        ]
    classes = [tuple(host for host in hosts if owner[host] == one) for one in set(owner.values())]
    if len(classes) == 1:
        return [Decision.held(host, hosts[0], choice.reason) for host in hosts[1:]]
    decisions = []
    for members in sorted(classes):
        decisions += _decide_group(members, confirmed, rejected, given) if len(members) > 1 else []
    rest = [host for host in hosts if host not in {decision.host_id for decision in decisions}]
    return decisions + [Decision.held(host, rest[0], choice.reason) for host in rest[1:]]


def _pair(row: ReplicaRow) -> Pair:
    return min(row.host_id, row.canonical_id), max(row.host_id, row.canonical_id)
