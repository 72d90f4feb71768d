"""Run sync calls off the event loop: every thread of crawld belongs to one `Workers` object.

The daemon gets its `Workers` at start and passes it on; command line programs use `THREADS`. A
simulation passes its own object, and so decides when each call runs and when its result arrives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar, TypeVarTuple, cast

import apsw
import trio

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class WorkerConnection(Protocol):
    """An SQLite connection whose calls run off the event loop, one at a time, in order."""

    async def run(
        self,
        call: Callable[Concatenate[apsw.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return what `call(connection, ...)` returns; a cancelled call is interrupted.

        Raises:
            apsw.ConnectionClosedError: the connection was closed meanwhile.
        """
        ...

    async def aclose(self) -> None:
        """Close the connection after the calls before this one."""
        ...


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
            limiter: bounds how many calls with this limiter run at once; None: the default limiter
                of the process.
            abandon_on_cancel: whether a cancelled caller leaves the call running and goes on.
        """
        ...

    async def connect(self, filename: str, flags: int) -> WorkerConnection:
        """Open an SQLite connection.

        Args:
            filename: path or URI of the file.
            flags: those of `apsw.Connection`.

        Raises:
            apsw.Error: the file cannot be opened.
        """
        ...


class ThreadConnection:
    """A connection on a thread of its own; see `WorkerConnection`."""

    def __init__(self, connection: apsw.AsyncConnection) -> None:
        self._connection = connection

    async def run(
        self,
        call: Callable[Concatenate[apsw.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run the call on the thread."""
        connection = self._connection
        try:
            return cast("T", await connection.async_run(call, connection, *args, **kwargs))
        except trio.TooSlowError:
            # The thread noticed a deadline first; here the scope that has it is cancelled.
            await trio.sleep_until(trio.current_effective_deadline())
            raise

    async def aclose(self) -> None:
        """Close the connection and end its thread."""
        await self._connection.aclose()


class Threads:
    """The `Workers` of production: trio's worker threads, and one thread per connection."""

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

    async def connect(self, filename: str, flags: int) -> ThreadConnection:
        """Open a connection on its own thread; see `Workers.connect`."""
        return ThreadConnection(await apsw.Connection.as_async(filename, flags))


def start_sleeper() -> int:
    """Start a thread that sleeps for ever; return its id at the operating system.

    It is there to receive signals whose handlers are in C, which then interrupt no system call of
    another thread.
    """
    ready = threading.Event()

    def sleep() -> None:
        ready.set()
        threading.Event().wait()

    thread = threading.Thread(target=sleep, name="sleeper", daemon=True)
    thread.start()
    ready.wait()
    assert thread.native_id is not None
    return thread.native_id


THREADS = Threads()
"""The default of programs that run outside a simulation."""
