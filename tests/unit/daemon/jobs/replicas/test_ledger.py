"""Pairs are written only if they moved, and forgotten when nothing is known of them any more."""

from dataclasses import replace

import pytest

from crawld.core.replica.verdict import PairEvidence
from crawld.daemon.jobs.replicas.judged import JudgedPair
from crawld.daemon.jobs.replicas.ledger import PairLedger, has_moved
from crawld.store.engine.database import Database
from crawld.store.frontier import frontier, site
from crawld.store.replica import pair as replica_pair
from crawld.workers import THREADS
from tests.unit.store.rows import NOW, found

EVIDENCE = PairEvidence(
    names=("a.test", "b.test"), pages=(9, 9), common=9, compared=9, equal=9, probability=0.5
)


@pytest.fixture
async def database(tmp_path):
    async with await Database.open(tmp_path / "mirror.db") as opened:
        await opened.write(site.upsert, "docs", "{}", source="config", at=NOW)
        hosts = [found("", host=f"{letter}.test") for letter in "abc"]
        await opened.write(frontier.discover, hosts)
        yield opened


def judged(*pairs, **more):
    evidence = replace(EVIDENCE, **more)
    return {pair: JudgedPair.of(pair, evidence, {"ndist": 1.0}) for pair in pairs}


async def stored(database):
    rows = await database.read(replica_pair.list_pairs)
    return {(row.one_id, row.other_id): (row.judged_at, row.evidence.probability) for row in rows}


async def test_only_pairs_that_moved_are_written(database):
    ledger = PairLedger(database, THREADS)
    assert await ledger.load() == {}
    assert await ledger.put(judged((1, 2), (1, 3)), (), NOW) == 2
    assert await ledger.put(judged((1, 2), (1, 3)), (), NOW + 1) == 0
    # A new ledger, as after a start, knows what is stored.
    ledger = PairLedger(database, THREADS)
    await ledger.load()
    both = judged((1, 2), probability=0.51) | judged((1, 3), probability=0.53)
    assert await ledger.put(both, (), NOW + 2) == 1
    assert await stored(database) == {(1, 2): (NOW, 0.5), (1, 3): (NOW + 2, 0.53)}


async def test_pairs_no_longer_judged_are_forgotten_unless_kept_or_decided(database):
    ledger = PairLedger(database, THREADS)
    await ledger.load()
    await ledger.put(judged((1, 2), (1, 3), (2, 3)), (), NOW)
    await database.write(replica_pair.put_words, [(2, 3)], "rejected", NOW)
    await ledger.load()
    assert ledger.words == {(2, 3): "rejected"}
    assert await ledger.put({}, {(1, 2)}, NOW) == 1
    assert set(await stored(database)) == {(1, 2), (2, 3)}
    await database.write(replica_pair.put_words, [(2, 3)], None, NOW)
    await ledger.load()
    assert await ledger.put({}, (), NOW) == 2
    assert await stored(database) == {}


async def test_a_pair_that_the_operator_alone_knows_is_loaded(database):
    ledger = PairLedger(database, THREADS)
    await ledger.load()
    await database.write(replica_pair.put_words, [(1, 3)], "confirmed", NOW)
    assert (await ledger.load())[1, 3].compared == 0
    assert ledger.words == {(1, 3): "confirmed"}


def test_small_steps_of_probability_are_no_move():
    assert has_moved(None, EVIDENCE)
    assert not has_moved(EVIDENCE, EVIDENCE)
    assert not has_moved(EVIDENCE, replace(EVIDENCE, probability=0.515))
    assert has_moved(EVIDENCE, replace(EVIDENCE, probability=0.53))
    assert has_moved(EVIDENCE, replace(EVIDENCE, probability=None))
    assert has_moved(EVIDENCE, replace(EVIDENCE, equal=8))
