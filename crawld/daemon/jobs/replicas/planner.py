"""Plans the replicas, and again only the groups of which something moved since the last plan.

A group of linked hosts is decided by its own hosts, pairs and replicas alone (`plan.decide_group`),
so that its last decisions hold until one of these moves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import NamedTuple

from crawld.core.replica.canonical import HostProfile
from crawld.core.replica.groups import connected_groups
from crawld.core.replica.verdict import PairEvidence
from crawld.daemon.jobs.replicas.decision import Decision
from crawld.daemon.jobs.replicas.plan import (
    PlanInput,
    decide_group,
    is_row_overdue,
    link_of,
    pair_of,
    withdrawals,
)
from crawld.daemon.jobs.replicas.storm import limit_pruning
from crawld.store.replica.pair import Pair, Word
from crawld.store.replica.replica import RESTING, ReplicaRow


class _KnownPair(NamedTuple):
    """All that a plan takes from a pair: a pair with an equal one is linked as before."""

    evidence: PairEvidence | None
    word: Word | None
    row: tuple[object, ...] | None


@dataclass(frozen=True, slots=True)
class _Planned:
    """What the last plan was made from, and what it decided.

    Attributes:
        links: by linked pair, whether one host is a replica of the other.
        groups: decisions by the hosts of each group.
    """

    pairs: Mapping[Pair, _KnownPair]
    profiles: Mapping[int, HostProfile]
    crowded: Collection[str]
    links: Mapping[Pair, bool]
    groups: Mapping[tuple[int, ...], Sequence[Decision]]


_NOTHING = _Planned({}, {}, (), {}, {})


class Planner:
    """Plans, and remembers the last plan.

    Attributes:
        decided: groups that were decided so far; the others were as in the plan before.
    """

    def __init__(self) -> None:
        self.decided = 0
        self._last = _NOTHING

    def plan(self, given: PlanInput) -> list[Decision]:
        """Return a decision on each host of which pages rest, and on each that waits.

        Hosts of which pages rested and that share none any more are withdrawn.
        """
        last = self._last
        rows = {pair_of(row): row for row in given.replicas if row.status != "withdrawn"}
        pairs = _known_pairs(given, rows)
        links = _links(given, rows, pairs, last)
        linked = {host for pair in links for host in pair}
        part = replace(given, profiles=_with_kept(given, linked))
        moved = _moved_hosts(pairs, part.profiles, last)
        groups = self._decide(part, links, moved, last if given.crowded == last.crowded else None)
        self._last = _Planned(pairs, part.profiles, given.crowded, links, groups)
        decisions = [decision for group in groups.values() for decision in group]
        decided = {decision.server_id for decision in decisions}
        decisions += [each for each in withdrawals(links, given) if each.server_id not in decided]
        confirmed = {
            host
            for pair, word in given.operator_words.items()
            if word == "confirmed"
            for host in pair
        }
        return limit_pruning(
            decisions,
            confirmed,
            given.replicas,
            {host: profile.name for host, profile in given.profiles.items()},
            given.hosts,
            given.limit,
        )

    def _decide(
        self,
        given: PlanInput,
        links: Mapping[Pair, bool],
        moved: AbstractSet[int],
        last: _Planned | None,
    ) -> dict[tuple[int, ...], Sequence[Decision]]:
        neighbors: dict[int, list[int]] = {}
        for one, other in links:
            neighbors.setdefault(one, []).append(other)
            neighbors.setdefault(other, []).append(one)
        rows = {row.server_id: row for row in given.replicas}
        found: dict[tuple[int, ...], Sequence[Decision]] = {}
        for group in connected_groups(links):
            known = last.groups.get(group) if last and moved.isdisjoint(group) else None
            if known is None:
                self.decided += 1
                known = decide_group(group, links, neighbors, rows, given)
            found[group] = known
        return found

    def is_overdue(self, given: PlanInput) -> bool:
        """Whether comparisons since the last plan change the status of a host."""
        known = self._last.pairs
        for row in given.replicas:
            before = known.get(pair_of(row))
            stays = before is not None and before.row == _judged(row)
            if not stays and is_row_overdue(given, row):
                return True
        return False


def plan(given: PlanInput) -> list[Decision]:
    """Return the decisions of a first plan; see `Planner.plan`."""
    return Planner().plan(given)


def linked_pairs(given: PlanInput) -> dict[Pair, bool]:
    """Return the pairs that share pages, and whether one host of each is a replica of the other."""
    rows = {pair_of(row): row for row in given.replicas if row.status != "withdrawn"}
    return _links(given, rows, _known_pairs(given, rows), _NOTHING)


def _known_pairs(given: PlanInput, rows: Mapping[Pair, ReplicaRow]) -> dict[Pair, _KnownPair]:
    return {
        pair: _KnownPair(
            given.evidence.get(pair),
            given.operator_words.get(pair),
            _judged(rows[pair]) if pair in rows else None,
        )
        for pair in {*given.evidence, *rows, *given.operator_words}
    }


def _judged(row: ReplicaRow) -> tuple[object, ...]:
    """Return all of a replica that decides about it: not when it was sampled."""
    return (
        row.server_id,
        row.status,
        row.reason,
        row.twins,
        row.agreeing,
        row.differing,
        row.root,
        row.unvisited,
    )


def _links(
    given: PlanInput,
    rows: Mapping[Pair, ReplicaRow],
    pairs: Mapping[Pair, _KnownPair],
    last: _Planned,
) -> dict[Pair, bool]:
    found: dict[Pair, bool] = {}
    for pair, known in pairs.items():
        same = (
            last.links.get(pair)
            if last.pairs.get(pair) == known
            else link_of(given, pair, rows.get(pair))
        )
        if same is not None:
            found[pair] = same
    return found


def _with_kept(given: PlanInput, linked: Collection[int]) -> dict[int, HostProfile]:
    """Return the profiles of linked hosts, which say of each whether it is kept now."""
    kept = {row.canonical_id for row in given.replicas if row.status in RESTING}
    return {
        host: replace(given.profiles[host], kept=True) if host in kept else given.profiles[host]
        for host in linked
    }


def _moved_hosts(
    pairs: Mapping[Pair, _KnownPair], profiles: Mapping[int, HostProfile], last: _Planned
) -> set[int]:
    """Return the hosts of which a pair or the profile is not that of the last plan."""
    moved = {
        host for pair, known in pairs.items() if last.pairs.get(pair) != known for host in pair
    }
    moved.update(host for pair in last.pairs if pair not in pairs for host in pair)
    moved.update(host for host, profile in profiles.items() if last.profiles.get(host) != profile)
    return moved
