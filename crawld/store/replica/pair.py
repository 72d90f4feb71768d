"""Pairs of hosts that may be replicas: evidence, verdict, and the operator's decision."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, NamedTuple

import apsw

from crawld.core.replica.verdict import PairEvidence, VerdictLevel
from crawld.store.frontier import server

Word = Literal["confirmed", "rejected"]

Pair = tuple[int, int]
"""Two server_ids, the smaller first."""


def ordered_pair(one_id: int, other_id: int) -> Pair:
    """Return two hosts as a pair."""
    return (one_id, other_id) if one_id < other_id else (other_id, one_id)


@dataclass(frozen=True, slots=True)
class PairRow:
    """Two hosts that may be replicas; `one_id` is smaller than `other_id`.

    Attributes:
        judged_at: time of the verdict.
        level: how sure the verdict is.
        evidence: the evidence for it; its first host is `one_id`.
        word: the operator's decision, None if there is none.
    """

    one_id: int
    other_id: int
    judged_at: float
    level: VerdictLevel
    evidence: PairEvidence
    features: dict[str, float]
    word: Word | None = None


_PUT_PAIR: Final = """
INSERT INTO replica_pair (one_id, other_id, judged_at, level, probability, evidence, features)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET judged_at = excluded.judged_at, level = excluded.level,
    probability = excluded.probability, evidence = excluded.evidence, features = excluded.features
"""


def put_pairs(connection: apsw.Connection, pairs: Iterable[PairRow]) -> None:
    """Store verdicts; the operator's decisions stay."""
    for pair in pairs:
        evidence = (pair.evidence.probability, _evidence_json(pair.evidence))
        verdict = (pair.judged_at, pair.level, *evidence, json.dumps(pair.features))
        connection.execute(_PUT_PAIR, (pair.one_id, pair.other_id, *verdict))


def forget_pairs(connection: apsw.Connection, pairs: Iterable[Pair]) -> None:
    """Delete pairs, except those with a decision of the operator."""
    connection.executemany(
        "DELETE FROM replica_pair WHERE one_id = ? AND other_id = ? AND word IS NULL", list(pairs)
    )


_DECIDED: Final = """
WHERE word IS NOT NULL OR EXISTS (SELECT 1 FROM replica WHERE status = 'held'
  AND server_id IN (one_id, other_id) AND canonical_id IN (one_id, other_id))
"""


def list_pairs(
    connection: apsw.Connection,
    server_id: int | None = None,
    *,
    decided: bool = False,
    limit: int = -1,
) -> list[PairRow]:
    """Return the pairs of a host, or all, the most certain first.

    Args:
        server_id: one of the hosts.
        decided: only pairs that the operator has decided, and those of a replica that waits and its
            canonical host.
        limit: largest number of pairs; negative: no limit.
    """
    where, bindings = ("WHERE ?1 IN (one_id, other_id)", (server_id,)) if server_id else ("", ())
    rows = connection.execute(
        "SELECT one_id, other_id, judged_at, level, evidence, features, word FROM replica_pair"
        f" {_DECIDED if decided else where} ORDER BY level, probability DESC, one_id, other_id"
        f" LIMIT {limit:d}",
        () if decided else bindings,
    )
    return [
        PairRow(one, other, at, VerdictLevel(level), _evidence(text), json.loads(features), word)
        for one, other, at, level, text, features, word in rows
    ]


_CERTAIN: Final = """
SELECT server_id FROM replica CROSS JOIN replica_pair
ON one_id = min(server_id, canonical_id) AND other_id = max(server_id, canonical_id)
WHERE level = ? AND status = 'pruned'
"""


def certain_replicas(connection: apsw.Connection) -> set[int]:
    """Return the declared replicas whose pair with their canonical host is certain."""
    return {server_id for (server_id,) in connection.execute(_CERTAIN, (VerdictLevel.CERTAIN,))}


def count_pairs(connection: apsw.Connection) -> int:
    """Return the number of judged pairs."""
    count: int = connection.execute("SELECT count(*) FROM replica_pair").get
    return count


def pairs_among(connection: apsw.Connection, server_ids: Collection[int]) -> list[Pair]:
    """Return the judged pairs of which both hosts are among those given, the smaller first."""
    found = []
    for one in sorted(server_ids):
        rows = connection.execute("SELECT other_id FROM replica_pair WHERE one_id = ?", (one,))
        found += [(one, other) for (other,) in rows if other in server_ids]
    return found


_PUT_WORD: Final = """
INSERT INTO replica_pair (one_id, other_id, judged_at, level, evidence, features, word)
VALUES (?, ?, ?, 'unlikely', ?, '{}', ?)
"""


def put_words(
    connection: apsw.Connection, pairs: Iterable[tuple[int, int]], word: Word | None, now: float
) -> int:
    """Store the operator's decision on pairs, judged or not; None: the searches decide again.

    Returns:
        The number of pairs whose decision changed.
    """
    changed = 0
    for low, high in (ordered_pair(*pair) for pair in pairs):
        row = connection.execute(
            "SELECT word FROM replica_pair WHERE one_id = ? AND other_id = ?", (low, high)
        ).fetchone()
        if (row[0] if row else None) == word:
            continue
        changed += 1
        if row:
            sql = "UPDATE replica_pair SET word = ? WHERE one_id = ? AND other_id = ?"
            connection.execute(sql, (word, low, high))
        else:
            evidence = PairEvidence(
                names=names(connection, [(low, high)])[0],
                pages=(0, 0),
                common=0,
                compared=0,
                equal=0,
            )
            connection.execute(_PUT_WORD, (low, high, now, _evidence_json(evidence), word))
    return changed


class Answer(NamedTuple):
    """A pair that the operator has decided, with the names of its hosts."""

    one_id: int
    other_id: int
    names: tuple[str, str]
    word: Word


def list_answers(connection: apsw.Connection) -> list[Answer]:
    """Return every pair that the operator has decided."""
    rows: list[Any] = connection.execute(
        "SELECT one_id, other_id, word FROM replica_pair WHERE word IS NOT NULL"
    ).fetchall()
    name_of = server.names(connection, {number for row in rows for number in row[:2]})
    found = [Answer(low, high, (name_of[low], name_of[high]), word) for low, high, word in rows]
    return sorted(found, key=lambda answer: answer.names)


def names(connection: apsw.Connection, pairs: Iterable[Pair]) -> list[tuple[str, str]]:
    """Return the host names of pairs."""
    wanted = list(pairs)
    name_of = server.names(connection, {number for pair in wanted for number in pair})
    return [(name_of[one], name_of[other]) for one, other in wanted]


_FIELDS: Final = tuple(field.name for field in fields(PairEvidence))


def _evidence_json(evidence: PairEvidence) -> str:
    # `asdict` copies every value; there are tens of thousands of pairs.
    return json.dumps({name: getattr(evidence, name) for name in _FIELDS})


def _evidence(text: str) -> PairEvidence:
    value = json.loads(text)
    for name in ("names", "pages", "rare", "redirects", "canonicals"):
        if name in value:  # evidence stored by an older program has fewer fields
            value[name] = tuple(value[name])
    return PairEvidence(**value)
