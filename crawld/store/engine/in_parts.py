"""Store functions that run in parts: the event loop does other work between two parts.

Such a function is a generator that yields after each few dozen rows and returns its result. The
parts belong to one transaction.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")

InParts: TypeAlias = Generator[None, None, T]
"""A call under way; returns its result after its last part."""

PART_ROWS: Final = 32
"""Rows added or changed in one part: about half a millisecond."""


def finish(call: InParts[T]) -> T:
    """Run the remaining parts at once and return the result."""
    while True:
        try:
            next(call)
        except StopIteration as end:
            result: T = end.value
            return result
