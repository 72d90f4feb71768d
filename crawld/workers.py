"""Work off the event loop: every call that runs in a thread goes through one `Workers` object.

The daemon gets it at start and hands it to whatever needs it, so that a simulation can decide when
each call runs and when its result arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar, TypeVarTuple

import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Workers(Protocol):
    """Runs sync calls off the event loop."""

    async def run(
        self,
        call: Callable[[*Ts], T],
        *args: *Ts,
        limiter: trio.CapacityLimiter | None = None,
        abandon_on_cancel: bool = False,
    ) -> T:
        """Return what `call(*args)` returns, or raise what it raises.

        Args:
            call: a sync function that touches nothing the event loop writes meanwhile.
            args: its positional arguments.
            limiter: bounds how many such calls run at once; None: the default of the process.
            abandon_on_cancel: whether a cancelled caller leaves the call running and goes on.
        """
        ...


class Threads:
    """The `Workers` of production: trio's worker threads."""

    async def run(
        self,
        call: Callable[[*Ts], T],
        *args: *Ts,
        limiter: trio.CapacityLimiter | None = None,
        abandon_on_cancel: bool = False,
    ) -> T:
        """Run the call in a thread; see `Workers.run`."""
        return await trio.to_thread.run_sync(
            call, *args, limiter=limiter, abandon_on_cancel=abandon_on_cancel
        )


THREADS = Threads()
"""The default of programs that run outside a simulation."""
