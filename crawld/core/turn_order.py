"""Order in which hosts use a rate that they share.

A host waits in one of three lanes:

    DUE       work with a due time or a lent turn: edits, audits, polls; the order of arrival
    NEW       pages and requisites that were never visited; the order of arrival: hosts take turns
    REVISIT   visits on suspicion: in proportion to the hosts' shares (start-time fair queuing)

DUE comes first, but one turn of `REST_EVERY` is left to the others while they wait; of those turns
NEW has a given share. A host with a small share waits longer, and none for ever: no share counts as
less than `LEAST_SHARE`.

Source: Goyal, Vin & Cheng, SIGCOMM 1996 (start-time fair queuing); the lanes are ours.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from enum import IntEnum
from typing import Final, Generic, TypeVar

from crawld.core.revisit.due import REST_EVERY

LEAST_SHARE: Final = 1.0 / REST_EVERY
"""Smallest share of a host, relative to the mean: the rest that no host goes without."""


Item = TypeVar("Item", bound=Hashable)

_Key = tuple[float, int]


class Lane(IntEnum):
    """What a host waits for; the lowest is the most urgent."""

    DUE = 0
    NEW = 1
    REVISIT = 2


class TurnOrder(Generic[Item]):
    """The hosts that wait for a shared rate, in any number; each operation is logarithmic.

    Attributes:
        new_share: share of the turns of NEW while REVISIT waits too, from 0 to 1.
    """

    def __init__(self, new_share: float = 0.5) -> None:
        self.new_share = new_share
        self._heaps: dict[Lane, list[tuple[_Key, int, Item]]] = {lane: [] for lane in Lane}
        self._lane_of: dict[Item, tuple[Lane, int]] = {}
        self._waiting = dict.fromkeys(Lane, 0)
        self._arrival: dict[Item, tuple[int, float]] = {}
        self._finish: dict[Item, float] = {}
        self._virtual = 0.0
        self._serial = 0
        self._due_in_a_row = 0
        self._balance = 0.0

    def __len__(self) -> int:
        return len(self._lane_of)

    def __contains__(self, item: object) -> bool:
        return item in self._lane_of

    def __iter__(self) -> Iterator[Item]:
        return iter(self._lane_of)

    def lane_of(self, item: Item) -> Lane | None:
        """Return where an item waits, None: it does not."""
        known = self._lane_of.get(item)
        return None if known is None else known[0]

    def arrive(self, item: Item) -> None:
        """Note that an item wants a turn from now on; it may wait elsewhere first."""
        if item not in self._arrival:
            self._serial += 1
            start = max(self._finish.get(item, 0.0), self._virtual)
            self._arrival[item] = self._serial, start

    def put(self, item: Item, lane: Lane) -> None:
        """Let an item wait in a lane, in its place by its arrival."""
        if self.lane_of(item) is lane:
            return
        self.discard(item)
        self.arrive(item)
        arrived, start = self._arrival[item]
        self._serial += 1
        self._lane_of[item] = lane, self._serial
        self._waiting[lane] += 1
        key = (start if lane is Lane.REVISIT else 0.0, arrived)
        heapq.heappush(self._heaps[lane], (key, self._serial, item))

    def served(self, item: Item, share: float) -> None:
        """Note that an item uses its turn.

        Args:
            share: its part of the turns for revisits, relative to the mean of all.
        """
        if (known := self._arrival.pop(item, None)) is not None:
            self._virtual = max(self._virtual, known[1])
            self._finish[item] = known[1] + 1.0 / max(share, LEAST_SHARE)

    def forget(self, item: Item) -> None:
        """Note that an item wants no turn any more."""
        self.discard(item)
        self._arrival.pop(item, None)

    def discard(self, item: Item) -> None:
        """Let an item wait no longer, if it does; it keeps its place."""
        if (known := self._lane_of.pop(item, None)) is not None:
            self._waiting[known[0]] -= 1

    def pop(self) -> Item | None:
        """Return the item whose turn is next, which waits no longer; None: none waits."""
        lane = self._next_lane()
        if lane is None:
            return None
        heap = self._heaps[lane]
        while True:
            _, serial, item = heapq.heappop(heap)
            if self._lane_of.get(item) == (lane, serial):
                break  # else it was moved or discarded meanwhile
        self.discard(item)
        return item

    def _next_lane(self) -> Lane | None:
        due, new, revisit = (self._waiting[lane] > 0 for lane in Lane)
        rest = new or revisit
        if due and not (rest and self._due_in_a_row >= REST_EVERY - 1):
            self._due_in_a_row += 1
            return Lane.DUE
        self._due_in_a_row = 0
        if not rest:
            return None
        if new and revisit:
            lane = Lane.NEW if self._balance >= 0.0 else Lane.REVISIT
            step = self.new_share - 1.0 if lane is Lane.NEW else self.new_share
            self._balance = min(max(self._balance + step, -1.0), 1.0)
            return lane
        return Lane.NEW if new else Lane.REVISIT
