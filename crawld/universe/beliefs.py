"""What a daemon must know from the answers of a host, and what a kill lets it forget."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Told(NamedTuple, Generic[T]):
    """What an answer said, and when it was sent (seconds since the start)."""

    at_s: float
    value: T


class Memory(Generic[T]):
    """One thing that the daemon must know.

    Attributes:
        beliefs: what it may believe, more than one value after a kill; empty: nothing.
    """

    def __init__(self, *beliefs: Told[T]) -> None:
        self.beliefs = self._before = list(beliefs)

    def tell(self, at_s: float, value: T) -> None:
        """Note an answer, which replaces the earlier ones."""
        self._before, self.beliefs = self.beliefs, [Told(at_s, value)]

    def forget(self, since_s: float) -> None:
        """Permit that an answer since then is forgotten."""
        if self.beliefs and self.beliefs[-1].at_s >= since_s:
            self.beliefs = [*self._before, *self.beliefs]

    def doubt(self, value: T) -> None:
        """Permit that the daemon believes a value, too."""
        self.beliefs = [Told(0.0, value), *self.beliefs]

    def values(self) -> list[T]:
        """Return what the daemon may believe."""
        return [told.value for told in self.beliefs]
