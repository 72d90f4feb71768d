"""Candidate pairs: shared lists, long lists, pair budgets, and batches in any order."""

import numpy as np

from crawld.core.replica.candidates import (
    CandidateIndex,
    InvertedLists,
    comparable_signatures,
    find_candidates,
)
from crawld.core.replica.hosts import pair_hosts, path_key
from tests.unit.core.replica.sample_hosts import hosts_of


def index_of(*pages, cap=50, budget=1_000_000, batches=1):
    index = CandidateIndex(cap=cap, pair_budget=budget)
    for batch in np.array_split(np.array(pages, dtype=np.int64), batches):
        index.add(batch[:, 0], batch[:, 1].astype(np.uint64), batch[:, 2].astype(np.uint64))
    return index


def pairs(index):
    one, other = pair_hosts(index.candidates().keys)
    return set(zip(one.tolist(), other.tolist(), strict=True))


def test_a_path_or_a_signature_in_common_makes_a_pair():
    index = index_of((0, 10, 1), (1, 10, 2), (2, 11, 2), (3, 12, 3))
    assert pairs(index) == {(0, 1), (1, 2)}


def test_a_page_without_signature_makes_no_pair():
    assert pairs(index_of((0, 10, 0), (1, 11, 0))) == set()


def test_pages_of_one_host_make_no_pair():
    assert pairs(index_of((0, 10, 5), (0, 11, 5), (0, 10, 5))) == set()


def test_shared_counts_the_lists_that_hold_both():
    index = index_of((0, 10, 1), (1, 10, 1), (0, 11, 2), (1, 11, 3))
    assert index.candidates().shared.tolist() == [3]


def test_a_list_above_the_cap_loses_its_pairs():
    pages = [(host, 10, 0) for host in range(4)]
    assert pairs(index_of(*pages, cap=3)) == set()
    assert pairs(index_of(*pages, cap=3, batches=4)) == set()
    assert index_of(*pages, cap=3, batches=4).candidates().long_lists == 1
    assert len(pairs(index_of(*pages[:3], cap=3, batches=3))) == 3


def test_a_list_of_100_000_hosts_makes_no_pairs_and_stays_short():
    lists = InvertedLists()
    hosts = np.arange(100_000)
    values = np.full(100_000, path_key("/index.html"), dtype=np.uint64)
    gained, lost, dropped = lists.add(hosts, values, 1_000)
    assert (len(gained), len(lost), dropped) == (0, 0, 0)
    assert [len(hosts) for _, hosts in lists._runs] == [101]
    gained, _, _ = lists.add(hosts + 100_000, values, 1_000)
    assert len(gained) == 0
    assert [len(hosts) for _, hosts in lists._runs] == [101]


def test_pairs_beyond_the_budget_are_counted_and_short_lists_come_first():
    pages = [(host, 10, 0) for host in range(5)] + [(5, 11, 0), (6, 11, 0)]
    index = index_of(*pages, budget=5)
    assert pairs(index) == {(5, 6)}
    assert index.candidates().dropped == 10


def test_a_list_left_out_removes_no_pairs_when_it_exceeds_the_cap():
    index = index_of(*((host, 10, 0) for host in range(5)), budget=5, cap=5)
    index.add(np.array([5]), np.array([10], dtype=np.uint64), np.array([0], dtype=np.uint64))
    assert len(index.candidates().keys) == 0


def test_a_list_left_out_does_not_hold_up_one_with_nearly_the_same_key():
    lists, key = InvertedLists(), 2**60
    crowd = np.full(5, key, np.uint64)
    _, _, dropped = lists.add(np.arange(5), crowd, 1)
    assert dropped == 10
    gained, _, _ = lists.add(np.array([0, 1]), np.full(2, key + 1, np.uint64), 1)
    assert len(gained) == 1


def test_an_error_page_under_many_paths_is_ignored():
    broken = [(0, path, 7) for path in range(10, 16)]
    whole = [(1, 20, 7), (1, 21, 8)]
    hosts = hosts_of("ab", broken + whole)
    assert comparable_signatures(hosts).tolist() == [0] * 6 + [7, 8]
    assert len(find_candidates(hosts).candidates().keys) == 0


def test_negatives_come_from_long_lists():
    rows = [(host, 10, 0) for host in range(60)] + [(host, 100 + host, 0) for host in range(60)]
    index = index_of(*rows)
    found = index.paths.long_list_pairs(500, seed=1)
    assert 0 < len(found) <= 500
    assert len(index.candidates().keys) == 0
    assert (found == index.paths.long_list_pairs(500, seed=1)).all()
