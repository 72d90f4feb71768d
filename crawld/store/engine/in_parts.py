"""Store functions that run in parts: the event loop does other work between two parts.

Such a function is a generator that yields after each few dozen rows and returns its result. The
parts belong to one transaction. It may also yield a call that takes long in SQLite, which then runs
on a thread before the next part.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")

Apart: TypeAlias = Callable[[], None]
"""A call that SQLite works on for long without the lock of the interpreter."""

InParts: TypeAlias = Generator[Apart | None, None, T]
"""A call under way; returns its result after its last part."""

PART_ROWS: Final = 32
"""Rows added or changed in one part: about half a millisecond."""


def finish(call: InParts[T]) -> T:
    """Run the remaining parts at once and return the result."""
    while True:
        try:
            apart = next(call)
        except StopIteration as end:
            result: T = end.value
            return result
        if apart is not None:
            apart()
