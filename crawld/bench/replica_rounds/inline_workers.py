"""Workers without threads: in the rounds nothing else runs beside the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar, TypeVarTuple

import apsw
import trio

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class InlineConnection:
    """An SQLite connection whose calls run where they are called."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def run(
        self,
        call: Callable[Concatenate[apsw.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run the call; see `crawld.workers.WorkerConnection`."""
        await trio.lowlevel.checkpoint_if_cancelled()
        return call(self._connection, *args, **kwargs)

    async def aclose(self) -> None:
        """Close the connection."""
        self._connection.close()


class InlineWorkers:
    """Runs calls on the event loop: a hop to a thread costs more than most calls of the job."""

    async def run(
        self,
        call: Callable[[*Ts], T],
        *args: *Ts,
        limiter: trio.CapacityLimiter | None = None,
        abandon_on_cancel: bool = False,
    ) -> T:
        """Run the call; see `crawld.workers.Workers`."""
        await trio.lowlevel.checkpoint_if_cancelled()
        return call(*args)

    async def connect(self, filename: str, flags: int) -> InlineConnection:
        """Open a connection."""
        return InlineConnection(apsw.Connection(filename, flags))


INLINE: Final = InlineWorkers()
