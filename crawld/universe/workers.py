"""Workers without threads: each call runs in one step of the event loop, at a drawn time.

A call waits a drawn time and runs; the result of half of the calls waits again, so that other tasks
run between. What a real thread computes beside the loop is one step here: two calls never
interleave inside SQLite.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Concatenate, ParamSpec, TypeVar, TypeVarTuple, cast

import apsw
import trio

from crawld.universe.jumping_clock import JumpingClock

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MEAN_WAIT_S = 0.001
"""Mean time before a call runs, and before its result arrives."""


class SimulatedConnection:
    """An SQLite connection of the event loop; see `WorkerConnection`."""

    def __init__(self, connection: apsw.Connection, rng: random.Random) -> None:
        self._connection = connection
        self._rng = rng
        self._in_order = trio.StrictFIFOLock()

    async def run(
        self,
        call: Callable[Concatenate[apsw.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run the call after those before it."""
        async with self._in_order:
            await _begin(self._rng)
            result = call(self._connection, *args, **kwargs)
            await _end(self._rng)
            return result

    async def aclose(self) -> None:
        """Close the connection after the calls before this one."""
        with trio.CancelScope(shield=True):
            async with self._in_order:
                self._connection.close()


class SimulatedWorkers:
    """The `Workers` of a universe."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    async def run(
        self,
        call: Callable[[*Ts], T],
        *args: *Ts,
        limiter: trio.CapacityLimiter | None = None,
        abandon_on_cancel: bool = False,
    ) -> T:
        """Run the call at a drawn time; a caller that does not abandon it cannot be cancelled."""
        await trio.lowlevel.checkpoint_if_cancelled()
        async with limiter or nullcontext():
            with trio.CancelScope(shield=not abandon_on_cancel):
                await _begin(self._rng)
                result = call(*args)
                await _end(self._rng)
        return result

    async def connect(self, filename: str, flags: int) -> SimulatedConnection:
        """Open a connection; see `Workers.connect`."""
        await trio.lowlevel.checkpoint()
        return SimulatedConnection(apsw.Connection(filename, flags), self._rng)


async def _begin(rng: random.Random) -> None:
    """Wait until a call runs: for a step of the loop or, as often, for a drawn time."""
    if rng.random() < 0.5:  # costs less than a jump of the clock
        await trio.lowlevel.checkpoint()
    else:
        await _sleep(rng)


async def _end(rng: random.Random) -> None:
    """Wait until the result of a call arrives: not at all for half of the calls."""
    if rng.random() < 0.5:
        await _sleep(rng)


async def _sleep(rng: random.Random) -> None:
    clock = cast("JumpingClock", trio.lowlevel.current_clock())
    await clock.sleep(rng.expovariate(1.0 / MEAN_WAIT_S))
