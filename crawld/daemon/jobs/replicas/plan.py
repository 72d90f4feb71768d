"""From judged pairs to what each host is: pure decisions, so that each rule can be tested alone.

1. The operator's word comes first: a confirmed pair is gated, a rejected one is not.
2. A host that is pruned already stays so: the contents of its suspended pages age, so they are
   weighed no more; its samples decide.
3. Groups close over gated pairs. Where one holds a contradiction, or a choice that only the
   operator can make, each owner's hosts are decided by themselves and the rest is held.
4. The kept host is chosen by `core/replica/canonical.py`.
5. More new prunings at once than a web has are held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from crawld.core.replica.canonical import (
    ALREADY_KEPT,
    Choice,
    HostProfile,
    choose_canonical,
    owners,
)
from crawld.core.replica.verdict import (
    STORM_SHARE,
    PairEvidence,
    connected_groups,
    declared_by,
    is_storm,
    passes_gate,
)
from crawld.store.replica.pair import Word
from crawld.store.replica.replica import ReplicaRow, Status

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a host is.

    Attributes:
        host_id: the host.
        canonical_id: the host that is kept; the first of its group where none could be chosen.
        status: `pruned` or `held`.
        reason: why, for the operator.
    """

    host_id: int
    canonical_id: int
    status: Status
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """What decisions are made from.

    Attributes:
        evidence: of each pair of host numbers, the smaller first.
        words: what the operator said of pairs.
        replicas: what hosts are now.
        contradictions: pairs that were compared and are not the same.
        standings: what speaks for each host that stands in a pair.
        hosts: hosts in all.
        prune: whether the config lets verdicts prune.
        most_at_once: share of the hosts that may be pruned by one run; None: any, by the
            operator's word.
    """

    evidence: Mapping[Pair, PairEvidence]
    words: Mapping[Pair, Word]
    replicas: Sequence[ReplicaRow]
    contradictions: Collection[Pair]
    standings: Mapping[int, HostProfile]
    hosts: int
    prune: bool = True
    most_at_once: float | None = STORM_SHARE


def gated_pairs(known: PlanInput) -> set[Pair]:
    """Return the pairs that may be closed into groups."""
    pruned = {row.host_id for row in known.replicas if row.status == "pruned"}
    pairs = {
        pair
        for pair, evidence in known.evidence.items()
        if not pruned.intersection(pair) and passes_gate(evidence)
    }
    pairs |= {_pair(row) for row in known.replicas if row.status == "pruned"}
    pairs |= {pair for pair, word in known.words.items() if word == "confirmed"}
    return {pair for pair in pairs if known.words.get(pair) != "rejected"}


def plan(known: PlanInput) -> list[Decision]:
    """Return what each host of a group is, but for the host that is kept."""
    pairs = gated_pairs(known)
    confirmed = {pair for pair in pairs if known.words.get(pair) == "confirmed"}
    apart = {pair for pair in known.contradictions if pair not in known.words}
    apart |= {pair for pair, word in known.words.items() if word == "rejected"}
    decisions = []
    closed = connected_groups(sorted(pairs))
    group_of = {host: at for at, group in enumerate(closed) for host in group}
    inside = _by_group(known.evidence, group_of)
    against = _by_group(apart, group_of)
    for at, group in enumerate(closed):
        evidence = {pair: known.evidence[pair] for pair in inside.get(at, ())}
        part = replace(known, evidence=evidence)
        decisions += _of_group(group, confirmed, against.get(at, ()), part)
    return _limit_pruning(decisions, confirmed, known)


def _by_group(pairs: Iterable[Pair], group_of: Mapping[int, int]) -> dict[int, list[Pair]]:
    """Return the pairs inside each group."""
    found: dict[int, list[Pair]] = {}
    for one, other in pairs:
        at = group_of.get(one)
        if at is not None and at == group_of.get(other):
            found.setdefault(at, []).append((one, other))
    return found


def _of_group(
    hosts: tuple[int, ...], confirmed: Collection[Pair], apart: Collection[Pair], known: PlanInput
) -> list[Decision]:
    """Decide a group; where it cannot be decided as a whole, each owner's hosts by themselves."""
    so_far = {row.canonical_id: row.reason for row in known.replicas if row.status == "pruned"}
    standings = {host: replace(known.standings[host], kept=host in so_far) for host in hosts}
    owner = owners(standings, confirmed)
    choice = choose_canonical(standings, declared_by(known.evidence, hosts), owner)
    against = sorted(pair for pair in apart if pair[0] in standings and pair[1] in standings)
    if against:
        names = " and ".join(standings[host].name for host in against[0])
        said = known.words.get(against[0]) == "rejected"
        why = "are two hosts, as the operator says" if said else "show different content"
        choice = Choice(None, f"{names} {why}")
    if choice.host is not None:
        # The reason that stands is the one for which it was chosen at first.
        reason = choice.reason
        if reason == ALREADY_KEPT:
            reason = so_far.get(choice.host, ALREADY_KEPT)
        return [
            Decision(host, choice.host, "pruned", reason) for host in hosts if host != choice.host
        ]
    classes = [tuple(host for host in hosts if owner[host] == one) for one in set(owner.values())]
    if len(classes) == 1:
        return [Decision(host, hosts[0], "held", choice.reason) for host in hosts[1:]]
    decisions = []
    for members in sorted(classes):
        decisions += _of_group(members, confirmed, apart, known) if len(members) > 1 else []
    rest = [host for host in hosts if host not in {decision.host_id for decision in decisions}]
    return decisions + [Decision(host, rest[0], "held", choice.reason) for host in rest[1:]]


def _limit_pruning(
    decisions: Sequence[Decision], confirmed: Collection[Pair], known: PlanInput
) -> list[Decision]:
    """Hold what would prune too much at once, or anything where the config forbids it."""
    before = {row.host_id for row in known.replicas if row.status == "pruned"}
    sure = {host for pair in confirmed for host in pair}
    new = {
        decision.host_id
        for decision in decisions
        if decision.status == "pruned" and not {decision.host_id} & (before | sure)
    }
    if not known.prune:
        held, reason = {decision.host_id for decision in decisions}, "pruning is off in the config"
    elif known.most_at_once is not None and is_storm(len(new), known.hosts, known.most_at_once):
        held, reason = (
            new,
            f"{len(new)} hosts at once: crawlctl replicas confirm --all, or one by one",
        )
    else:
        return list(decisions)
    return [
        Decision(decision.host_id, decision.canonical_id, "held", reason)
        if decision.status == "pruned" and decision.host_id in held
        else decision
        for decision in decisions
    ]


def _pair(row: ReplicaRow) -> Pair:
    return min(row.host_id, row.canonical_id), max(row.host_id, row.canonical_id)
