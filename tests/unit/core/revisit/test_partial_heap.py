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


def test_slots_leave_in_the_order_of_key_and_slot_whatever_part_of_the_queue_they_are_in():
    """Sorted arrays, what was pushed since, stale entries, equal keys and the rest."""
    rng = np.random.default_rng(4)
    keys = rng.integers(0, 3_000, 6_000).astype(np.float64)
    queue, model = PartialHeap(), dict(enumerate(keys.tolist()))
    queue.load(keys)
    for step in range(400):
        at, most = float(rng.integers(0, 60)), int(rng.choice([3, 50, 5_000]))
        due = sorted((key, slot) for slot, key in model.items() if key <= at)[:most]
        assert queue.least <= min(model.values(), default=math.inf)
        assert queue.take_due(at, most).tolist() == [slot for _, slot in due]
        for _, slot in due:
            del model[slot]
        slots = rng.choice(6_000, int(rng.choice([1, 5, 40, 900])), replace=False)
        new = rng.integers(0, 60 if step % 3 else 3_000, len(slots)).astype(np.float64)
        if step % 4:
            queue.add(slots, new)
        else:
            for slot, key in zip(slots.tolist(), new.tolist(), strict=True):
                queue.push(slot, key)
        model.update(zip(slots.tolist(), new.tolist(), strict=True))
        for slot in rng.choice(6_000, 20).tolist():
            queue.remove(slot)
            model.pop(slot, None)
        first = min((key, slot) for slot, key in model.items())[1] if model else ABSENT
        assert queue.first() == first
        assert len(queue) == len(model)


def test_slots_that_are_never_due_wait():
    queue = PartialHeap()
    queue.load(np.full(10, math.inf))
    assert len(queue.take_due(1e300, 5)) == 0
    assert queue.take_due(math.inf, 5).tolist() == [0, 1, 2, 3, 4]
