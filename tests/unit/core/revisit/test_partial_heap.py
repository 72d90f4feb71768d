"""The partially ordered queue: many slots, equal and infinite keys, rekeying."""

import math

import numpy as np
import pytest

from crawld.core.revisit.heap import ABSENT
from crawld.core.revisit.partial_heap import PartialHeap


def drained(queue):
    out = []
    while (slot := queue.first()) != ABSENT:
        out.append(slot)
        queue.remove(slot)
    return out


def test_many_slots_leave_in_order_of_their_keys():
    keys = np.random.default_rng(0).normal(size=20_000)
    queue = PartialHeap()
    queue.load(keys)
    assert drained(queue) == np.argsort(keys).tolist()
    assert len(queue) == 0


def test_slots_with_key_nan_stay_outside_and_infinite_ones_come_last():
    queue = PartialHeap()
    queue.load(np.array([math.inf, 3.0, math.nan, -1.0, math.inf]))
    assert 2 not in queue
    assert drained(queue) == [3, 1, 0, 4]


def test_slots_with_equal_keys_all_leave():
    queue = PartialHeap()
    queue.load(np.full(5_000, 7.0))
    assert sorted(drained(queue)) == list(range(5_000))


def test_first_is_the_least_key_after_random_pushes():
    rng = np.random.default_rng(1)
    queue, model = PartialHeap(), dict(enumerate(rng.normal(size=3_000).tolist()))
    queue.load(np.array(list(model.values())))
    for _ in range(6_000):
        slot, key = int(rng.integers(3_000)), float(rng.normal())
        queue.push(slot, key)
        model[slot] = key
        first = queue.first()
        assert queue.key(first) == pytest.approx(min(model.values()), abs=0)
        if rng.random() < 0.3:
            queue.remove(first)
            del model[first]
    assert len(queue) == len(model)
    assert queue.members().tolist() == sorted(model)


def test_repeated_pushes_do_not_accumulate_entries():
    queue = PartialHeap()
    queue.load(np.arange(100.0))
    queue.first()
    for k in range(50_000):
        queue.push(k % 100, -float(k))
    assert len(queue._pushed) < 5_000
    assert queue.first() == 49_999 % 100


def test_all_slots_can_be_rekeyed():
    queue = PartialHeap()
    keys = np.arange(1_000.0)
    queue.load(keys)
    queue.first()
    queue.move(np.arange(1_000), -keys)
    assert queue.first() == 999


def test_moved_slots_leave_in_their_new_order_and_removed_ones_stay_away():
    rng = np.random.default_rng(3)
    keys = rng.normal(size=20_000)
    queue = PartialHeap()
    queue.load(keys)
    for _ in range(50):
        queue.remove(queue.first())
    for size in (10, 3_000):
        moved = rng.choice(20_000, size, replace=False)
        keys[moved] = rng.normal(-2.0, 3.0, size)
        queue.move(moved, keys[moved])
    members = queue.members()
    assert len(members) == 20_000 - 50
    assert queue.members(100, 300).tolist() == members[(members >= 100) & (members < 300)].tolist()
    assert drained(queue) == members[np.argsort(keys[members])].tolist()
