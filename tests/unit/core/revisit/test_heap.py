"""The heap of slots: what it keeps of a slot that is not in it."""

from crawld.core.revisit.heap import ABSENT, SlotHeap


def test_a_removed_slot_returns_with_the_key_it_was_given_meanwhile():
    heap = SlotHeap()
    for slot, key in enumerate((5.0, 3.0, 4.0)):
        heap.push(slot, key)
    heap.remove(1)
    assert heap.key(1) == 3.0
    heap.move(1, 4.5)
    assert (heap.first(), heap.key(1)) == (2, 4.5)
    heap.push(1, heap.key(1))
    heap.remove(2)
    assert heap.first() == 1
    heap.move(1, 9.0)
    assert heap.first() == 0
    heap.remove(0)
    heap.remove(1)
    assert heap.first() == ABSENT
