"""Run sync calls off the event loop: every thread of crawld belongs to one `Workers` object.

The daemon gets its `Workers` at start and passes it on; command line programs use `THREADS`. A
simulation passes its own object, and so decides when each call runs and when its result arrives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    TypeVarTuple,
    cast,
)

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
        """Close the connection after the calls before this one; do not wait for cancelled ones."""
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


LEFT_S = 0.5
"""How long the end of a connection waits for a cancelled call: one that checks ends meanwhile."""


class AbandonedError(Exception):
    """The caller of the call on this thread was cancelled; nobody gets its result."""


class _Call(Generic[T]):
    """A call on the thread of a connection, of which nothing is kept when its caller has it.

    apsw's thread keeps its last call, result or exception until the next: of a connection that is
    used rarely, a large page for hours. Here it gets none of them.

    Attributes:
        is_wanted: whether its caller waits; set by the event loop.
        has_ended: whether it ended; set by the thread.
    """

    __slots__ = ("_call", "_error", "_result", "has_ended", "is_wanted")

    def __init__(self, call: Callable[[], T]) -> None:
        self.is_wanted = True
        self.has_ended = False
        self._call: Callable[[], T] | None = call
        self._result: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the call on this thread."""
        call, self._call = self._call, None
        assert call is not None
        _THREAD.call = self
        _UNDER_WAY.add(self)
        try:
            self._result = call()
        except BaseException as error:  # raised where the result is taken
            self._error = error
        finally:
            _UNDER_WAY.discard(self)
            _THREAD.call = None
            self.has_ended = True

    def take(self) -> T:
        """Return the result, or raise what the call raised; once."""
        result, error = self._result, self._error
        self._result = self._error = None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        return cast("T", result)


class _Thread(threading.local):
    """What this thread runs; None: no call of a connection."""

    call: _Call[Any] | None = None


_THREAD = _Thread()


_UNDER_WAY: Final[set[object]] = set()
"""Calls that may be abandoned and have not ended; added and removed by their threads."""


def calls_under_way() -> int:
    """Return how many calls that may be abandoned have not ended.

    After the event loop these are abandoned, and end with the process. Python should not be
    finalized beneath them: what is on their stacks stays alive, which libraries report as leaks
    (nanobind in 20 lines), and a thread in C may use what is freed.
    """
    return len(_UNDER_WAY)


def _run_noted(call: Callable[[*Ts], T], *args: *Ts) -> T:
    token = object()
    _UNDER_WAY.add(token)
    try:
        return call(*args)
    finally:
        _UNDER_WAY.discard(token)


def check_wanted() -> None:
    """Return if somebody waits for the call on this thread.

    Long calls in Python check at each step; SQLite checks by itself. On a thread without a
    connection this does nothing.

    Raises:
        AbandonedError: the caller was cancelled.
    """
    call = _THREAD.call
    if call is not None and not call.is_wanted:
        raise AbandonedError


class ThreadConnection:
    """A connection on a thread of its own; see `WorkerConnection`."""

    def __init__(self, connection: apsw.AsyncConnection) -> None:
        self._connection = connection
        self._abandoned: _Call[Any] | None = None

    async def run(
        self,
        call: Callable[Concatenate[apsw.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run the call on the thread."""
        connection = self._connection
        under_way = _Call(partial(call, cast("apsw.Connection", connection), *args, **kwargs))
        try:
            await connection.async_run(under_way.run)
            return under_way.take()
        except trio.Cancelled:
            under_way.is_wanted = False
            self._abandoned = under_way
            raise
        except trio.TooSlowError:
            # The thread noticed a deadline first; here the scope that has it is cancelled.
            await trio.sleep_until(trio.current_effective_deadline())
            raise

    async def aclose(self) -> None:
        """Close the connection and end its thread.

        A cancelled call that does not end within `LEFT_S` is left to its thread, which ends after
        it: a computation in Python can be neither interrupted nor awaited by a daemon that stops.
        """
        if self._abandoned is None or self._abandoned.has_ended:
            await self._connection.aclose()
            return
        with trio.move_on_after(LEFT_S) as scope:
            await self._connection.aclose()
        if scope.cancelled_caught:
            self._connection.async_controller.close()  # type: ignore[no-untyped-call]


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
        if not abandon_on_cancel:
            return await trio.to_thread.run_sync(call, *args, limiter=limiter)
        return await trio.to_thread.run_sync(
            _run_noted, call, *args, limiter=limiter, abandon_on_cancel=True
        )

    async def connect(self, filename: str, flags: int) -> ThreadConnection:
        """Open a connection on its own thread; see `Workers.connect`."""
        from apsw import aio

        # By default it looks for other event loops and reads the version of trio's package: 5 ms.
        apsw.async_controller.set(aio.Trio)  # type: ignore[arg-type]
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
