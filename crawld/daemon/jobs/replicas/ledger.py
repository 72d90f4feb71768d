"""The stored pairs in memory, so that a run reads and writes only those that moved."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Final

import apsw

from crawld.core.replica.verdict import PairEvidence, level_of
from crawld.daemon.jobs.replicas.judged import JudgedPair
from crawld.daemon.pacing import parts_of
from crawld.store.engine.database import Database
from crawld.store.replica import pair as replica_pair
from crawld.store.replica.pair import Pair, PairRow, Word
from crawld.workers import Workers

SLICE: Final = 100
"""Pairs written in one transaction."""

MOVED_PROBABILITY: Final = 0.02
"""A pair whose probability moved by less is not written again."""

_but_probability: Final = attrgetter(
    *(field.name for field in fields(PairEvidence) if field.name != "probability")
)


class PairLedger:
    """The pairs that are stored, and the operator's words on them."""

    def __init__(self, database: Database, workers: Workers) -> None:
        self._database = database
        self._workers = workers
        self._evidence: dict[Pair, PairEvidence] | None = None
        self.words: dict[Pair, Word] = {}

    async def load(self) -> Mapping[Pair, PairEvidence]:
        """Return the stored evidence; reads all of it once, later only what others may write."""
        if self._evidence is None:
            # There may be many thousands: no part of this runs on the event loop.
            evidence, self.words = await self._database.read(_all_pairs)
            self._evidence = evidence
            return evidence
        rows = await self._database.read(replica_pair.list_pairs, decided=True)
        for row in rows:
            self._evidence.setdefault((row.one_id, row.other_id), row.evidence)
        self.words = {(row.one_id, row.other_id): row.word for row in rows if row.word}
        return self._evidence

    async def put(
        self, judged: Mapping[Pair, JudgedPair], kept: Collection[Pair], now: float
    ) -> int:
        """Store the pairs that moved, forget those that are neither judged nor kept.

        Returns:
            The number of pairs written or forgotten.
        """
        assert self._evidence is not None
        stored = self._evidence
        rows, gone = await self._workers.run(
            _changes, stored, judged, {*kept, *self.words}, now, abandon_on_cancel=True
        )
        for part in parts_of(rows, SLICE):
            await self._database.write(replica_pair.put_pairs, part)
            stored.update({(row.one_id, row.other_id): row.evidence for row in part})
        for pairs in parts_of(gone, SLICE):
            await self._database.write(replica_pair.forget_pairs, pairs)
            for pair in pairs:
                del stored[pair]
        return len(rows) + len(gone)


def _all_pairs(
    connection: apsw.Connection,
) -> tuple[dict[Pair, PairEvidence], dict[Pair, Word]]:
    """Return the evidence on all stored pairs, and the operator's words; on a reader's thread."""
    rows = replica_pair.list_pairs(connection)
    evidence = {(row.one_id, row.other_id): row.evidence for row in rows}
    return evidence, {(row.one_id, row.other_id): row.word for row in rows if row.word}


def _changes(
    stored: Mapping[Pair, PairEvidence],
    judged: Mapping[Pair, JudgedPair],
    kept: Collection[Pair],
    now: float,
) -> tuple[list[PairRow], list[Pair]]:
    """Return the pairs to write, and those to forget."""
    rows = [
        PairRow(
            one_id=one,
            other_id=other,
            judged_at=now,
            level=level_of(pair.evidence),
            evidence=pair.evidence,
            features=pair.features,
        )
        for (one, other), pair in judged.items()
        if has_moved(stored.get((one, other)), pair.evidence)
    ]
    return rows, [pair for pair in stored if pair not in judged and pair not in kept]


def has_moved(before: PairEvidence | None, now: PairEvidence) -> bool:
    """Whether evidence differs from what is stored, by more than a small step of probability."""
    if before is None or (before.probability is None) != (now.probability is None):
        return True
    step = abs((before.probability or 0.0) - (now.probability or 0.0))
    return step >= MOVED_PROBABILITY or _but_probability(before) != _but_probability(now)
