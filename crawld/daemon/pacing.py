"""Rests between slices of background work, and pauses in long work on the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Concatenate, Final, ParamSpec, TypeVar

import apsw
import trio

from crawld.store.engine.database import Database

P = ParamSpec("P")
T = TypeVar("T")

SLICE_S: Final = 0.004
"""Longest work on the event loop without a pause."""

PART_ITEMS: Final = 32
"""Items between two looks at the clock."""

SLICE_PARTS: Final = 8
"""Most parts between two pauses: 256 links take 2 ms, if no rule of the site or of a robots.txt is
slow."""


class LoopSlices:
    """Lets other tasks run in the middle of long work on the event loop.

    The work may touch state that other tasks change: it must not keep what it has read of that
    state over a pause.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._parts = 0
        self._until = trio.current_time() + SLICE_S

    async def pause(self) -> None:
        """Let other tasks run if the slice is over, after a part of the work; never cancelled."""
        self._parts += 1
        if self._parts >= SLICE_PARTS or trio.current_time() >= self._until:
            await trio.lowlevel.cancel_shielded_checkpoint()
            self._begin()


def parts_of(items: Sequence[T], size: int = PART_ITEMS) -> Iterator[Sequence[T]]:
    """Return the items in parts of a size; the last one may be smaller."""
    return (items[begin : begin + size] for begin in range(0, len(items), size))


class Pace:
    """Measures work and rests in proportion to it.

    The work is all that happened since the last rest, or since construction.
    """

    def __init__(self, rest_factor: float) -> None:
        """Start the measurement; a rest lasts `rest_factor` times as long as the work."""
        self._rest_factor = rest_factor
        self._began_s = trio.current_time()

    async def rest(self) -> None:
        """Sleep in proportion to the work, then start the next measurement."""
        await trio.sleep(self._rest_factor * (trio.current_time() - self._began_s))
        self._began_s = trio.current_time()


class PacedReader:
    """Reads slices of the database with a rest after each."""

    def __init__(self, database: Database, rest_factor: float) -> None:
        """Take the database; a rest lasts `rest_factor` times as long as the read."""
        self._database = database
        self._rest_factor = rest_factor

    async def read(
        self, query: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a query on a reader's thread, then rest."""
        pace = Pace(self._rest_factor)
        found = await self._database.read(query, *args, **kwargs)
        await pace.rest()
        return found
