"""Pairs of hosts that may be replicas: evidence, verdict, and the operator's decision."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final, Literal

import apsw

from crawld.core.replica.verdict import PairEvidence, VerdictLevel

Word = Literal["confirmed", "rejected"]


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
        evidence = (pair.evidence.probability, json.dumps(asdict(pair.evidence)))
        verdict = (pair.judged_at, pair.level, *evidence, json.dumps(pair.features))
        connection.execute(_PUT_PAIR, (pair.one_id, pair.other_id, *verdict))


def forget_pairs(connection: apsw.Connection, before: float) -> None:
    """Delete pairs not judged since a time, without a decision of the operator.

    Pairs of pruned hosts are not judged: they keep the evidence for which they were pruned.
    """
    connection.execute(
        "DELETE FROM replica_pair WHERE judged_at < ? AND word IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM replica WHERE status = 'pruned' AND host_id IN (one_id, other_id))",
        (before,),
    )


def list_pairs(connection: apsw.Connection, host_id: int | None = None) -> list[PairRow]:
    """Return the pairs of a host, or all, the most certain first."""
    where, bindings = ("WHERE ?1 IN (one_id, other_id)", (host_id,)) if host_id else ("", ())
    rows = connection.execute(
        "SELECT one_id, other_id, judged_at, level, evidence, features, word FROM replica_pair"
        f" {where} ORDER BY level, probability DESC, one_id, other_id",
        bindings,
    )
    return [
        PairRow(one, other, at, VerdictLevel(level), _evidence(text), json.loads(features), word)
        for one, other, at, level, text, features, word in rows
    ]


def put_word(connection: apsw.Connection, one_id: int, other_id: int, word: Word) -> bool:
    """Store the operator's decision on a pair; return whether the pair is known."""
    low, high = sorted((one_id, other_id))
    connection.execute(
        "UPDATE replica_pair SET word = ? WHERE one_id = ? AND other_id = ?", (word, low, high)
    )
    return connection.changes() > 0


def _evidence(text: str) -> PairEvidence:
    value = json.loads(text)
    for name in ("names", "pages", "redirects", "canonicals"):
        value[name] = tuple(value[name])
    return PairEvidence(**value)
