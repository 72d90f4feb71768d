"""Hold new prunings beyond the limit of a search, and all of them if the config forbids pruning.

What the operator confirmed and what was pruned before is not limited. The rule itself is in
`core/replica/storm.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from crawld.core.replica.owners import without_port
from crawld.core.replica.storm import STORM_SHARE, NewReplica, released
from crawld.core.url import registrable_domain
from crawld.daemon.jobs.replicas.decision import Decision
from crawld.store.replica.replica import RESTING, ReplicaRow

PRUNING_IS_OFF = "pruning is off in the config"

WAITS_FOR_TURN = "one search prunes only so many hosts; those that wait longest go first"


@dataclass(frozen=True, slots=True, kw_only=True)
class StormLimit:
    """How many hosts a search may prune.

    Attributes:
        share: largest share of all hosts, and of the hosts of a registrable domain; None: no limit,
            as the operator allowed.
        since: hosts pruned after this time count too, Unix seconds: they leave less for this run.
        prune: whether the config allows to prune at all.
    """

    share: float | None = STORM_SHARE
    since: float = 0.0
    prune: bool = True


def limit_pruning(
    decisions: Sequence[Decision],
    confirmed: Collection[int],
    replicas: Iterable[ReplicaRow],
    names: dict[int, str],
    hosts: int,
    limit: StormLimit,
) -> list[Decision]:
    """Return the decisions with those held that must not be applied yet.

    Args:
        decisions: on each host of a group except the one to keep.
        confirmed: hosts of pairs that the operator confirmed; they are not limited.
        replicas: the present replicas.
        names: the name of each host in a judged pair.
        hosts: number of all hosts.
        limit: how many may be pruned.
    """
    if not limit.prune:
        return [_hold(each, PRUNING_IS_OFF) for each in decisions]
    if limit.share is None:
        return list(decisions)
    rows = {row.server_id: row for row in replicas}
    new = {
        each.server_id
        for each in decisions
        if each.status in RESTING
        and each.server_id not in confirmed
        and not ((row := rows.get(each.server_id)) is not None and row.status in RESTING)
    }
    lately = [
        registrable_domain(row.slot_name)
        for row in rows.values()
        if row.status in RESTING and row.since > limit.since and row.server_id not in confirmed
    ]
    may = released(
        [
            NewReplica(
                host_id=server_id,
                domain=registrable_domain(without_port(names[server_id])),
                waiting_since=_held_since(rows.get(server_id)),
            )
            for server_id in new
        ],
        hosts=hosts,
        domain_hosts=_domain_counts(names.values()) if new else {},
        pruned_lately=lately,
        share=limit.share,
    )
    return [
        Decision.held(each.server_id, each.canonical_id, WAITS_FOR_TURN, "turn")
        if each.server_id in new and each.server_id not in may
        else each
        for each in decisions
    ]


def _domain_counts(names: Iterable[str]) -> Counter[str]:
    return Counter(registrable_domain(without_port(name)) for name in names)


def _hold(decision: Decision, reason: str) -> Decision:
    if decision.status not in RESTING:
        return decision
    return Decision.held(decision.server_id, decision.canonical_id, reason, "config")


def _held_since(row: ReplicaRow | None) -> float | None:
    return row.since if row is not None and row.status == "held" else None
