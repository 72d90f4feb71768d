"""The order in which those who wait are served: fair by owner and by cost.

A place is the time at which its owner would be done if all owners had equal shares (self-clocked
fair queueing, Golestani 1994). So what costs little passes what costs much, an owner with many
requests delays others no more than one with few, and nobody waits for ever: each place that is
served brings the time nearer to every other place.
"""

from __future__ import annotations


class FairOrder:
    """Gives places to those who wait; the lowest is served first."""

    __slots__ = ("_finish_of", "_served_until")

    def __init__(self) -> None:
        self._finish_of: dict[str, float] = {}
        self._served_until = 0.0

    def place(self, owner: str, cost: float) -> float:
        """Return the place of a new request; `cost` in any unit, more than 0."""
        place = max(self._served_until, self._finish_of.get(owner, 0.0)) + cost
        self._finish_of[owner] = place
        return place

    def again(self, place: float) -> float:
        """Return the place of a request that was served and could not be used."""
        return min(place, self._served_until)

    def served(self, place: float) -> None:
        """A place was served."""
        self._served_until = max(self._served_until, place)

    def restart(self) -> None:
        """Nobody waits any more: forget all owners."""
        self._finish_of.clear()
        self._served_until = 0.0
