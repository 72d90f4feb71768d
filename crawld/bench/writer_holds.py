"""How long transactions hold the writer of a database."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar, TypeVarTuple

import apsw
import trio

from crawld.workers import Threads

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class WriterHolds(Threads):
    """Threads that measure the longest transaction of `write` since `forget`.

    Attributes:
        longest_ms: its processor time on the thread of the writer, milliseconds: waits for the
            disk and for a busy machine do not count.
    """

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._held_s = 0.0

    def forget(self) -> None:
        """Begin again."""
        self.longest_ms = 0.0

    async def run(
        self,
        call: Callable[[*Ts], T],
        *args: *Ts,
        limiter: trio.CapacityLimiter | None = None,
        abandon_on_cancel: bool = False,
    ) -> T:
        """Run the call in a thread; only the calls of the writer have a connection."""
        connection = call.args[0] if isinstance(call, partial) and call.args else None
        if not isinstance(connection, apsw.Connection):
            return await super().run(
                call, *args, limiter=limiter, abandon_on_cancel=abandon_on_cancel
            )
        measured = partial(self._measure, connection, call, *args)
        return await super().run(measured, limiter=limiter, abandon_on_cancel=abandon_on_cancel)

    def _measure(self, connection: apsw.Connection, call: Callable[[*Ts], T], *args: *Ts) -> T:
        began_s = time.thread_time()
        try:
            return call(*args)
        finally:
            self._held_s += time.thread_time() - began_s
            with suppress(apsw.ConnectionClosedError):  # the call has closed it
                if not connection.in_transaction:
                    self.longest_ms = max(self.longest_ms, self._held_s * 1e3)
                    self._held_s = 0.0
