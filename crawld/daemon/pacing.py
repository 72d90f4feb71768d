"""Rest between slices of background work, so that the crawl keeps its share of the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import apsw
import trio

from crawld.store.engine.database import Database

P = ParamSpec("P")
T = TypeVar("T")


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
