"""The bytes of one body while it is received, accounted for in the memory budget.

A body up to `FREE_BYTES` takes no lease. A longer one takes a lease that doubles with it, in steps
of limited size, and the fetch stops reading until the lease is granted: the network holds the
sender back. The whole body is never copied: the buffer that grew becomes the body.
"""

from __future__ import annotations

from io import BytesIO

from crawld.core.page import Failure
from crawld.memory import (
    FREE_BYTES,
    LARGEST_STEP_BYTES,
    MIB,
    WINDOW_BYTES,
    MemoryBudget,
    MemoryLease,
    MemoryShortage,
)
from crawld.net.errors import FetchError
from crawld.net.progress import Progress


class BodyBuffer:
    """Collects the decoded pieces of one body.

    Attributes:
        lease: on the bytes of the body; None while they need none.
        size_bytes: bytes collected.
        room_bytes: how many may be collected without `grow`.
    """

    __slots__ = (
        "_budget",
        "_file",
        "_first",
        "_host",
        "_progress",
        "_window_bytes",
        "lease",
        "room_bytes",
        "size_bytes",
    )

    def __init__(
        self,
        budget: MemoryBudget | None,
        progress: Progress,
        host: str = "",
        *,
        has_window: bool = False,
    ) -> None:
        """Make an empty buffer; without a budget the room is unlimited.

        Args:
            host: where the body comes from.
            has_window: whether the decoder keeps a window of `WINDOW_BYTES`, filled with the body.
        """
        self._budget = budget
        self._progress = progress
        self._host = host
        self._first = b""
        self._file: BytesIO | None = None
        self._window_bytes = WINDOW_BYTES if has_window else 0
        self.size_bytes = 0
        self.lease: MemoryLease | None = None
        self.room_bytes = 2**62
        if budget is not None:
            self.room_bytes = FREE_BYTES // 2 if has_window else FREE_BYTES

    def append(self, piece: bytes) -> None:
        """Append a piece for which there is room."""
        self.size_bytes += len(piece)
        if self._file is None:
            if not self._first:
                self._first = piece  # most bodies are one piece
                return
            self._file = BytesIO()
            self._file.write(self._first)
            self._first = b""
        self._file.write(piece)

    async def grow(self, size_bytes: int) -> None:
        """Make room for a body of `size_bytes`; wait while others have the memory.

        Raises:
            FetchError: `MEMORY`, local: too many wait already.
        """
        budget = self._budget
        assert budget is not None
        if self.lease is None:
            self.lease = budget.bodies.lease(self._host, self._progress)
        needed_bytes = self._cost(size_bytes)
        held_bytes = self.lease.held_bytes
        wanted_bytes = max(needed_bytes, held_bytes + min(held_bytes, LARGEST_STEP_BYTES))
        try:
            if not budget.bodies.grow_nowait(self.lease, wanted_bytes):
                with self._progress.wait_for_memory():
                    await budget.bodies.grow(self.lease, wanted_bytes)
        except MemoryShortage:
            limit_mb = budget.shares.limit_bytes // MIB
            text = f"too many fetches wait for memory ({limit_mb} MiB)"
            raise FetchError(Failure.MEMORY, text, local=True) from None
        held_bytes = self.lease.held_bytes
        window_bytes = min(self._window_bytes, held_bytes // 2)
        self.room_bytes = max(size_bytes, held_bytes - window_bytes)

    def take(self) -> bytes:
        """Return the body, without a copy; the lease shrinks to it."""
        body = self._first
        if self._file is not None:
            body = self._file.getvalue()
            self._file.close()
        if self.lease is not None:
            self.lease.filling = None  # nothing can end the fetch any more
            self.lease.shrink(len(body))
        return body

    def discard(self) -> None:
        """Drop the bytes and give back their lease."""
        if self._file is not None:
            self._file.close()
        if self.lease is not None:
            self.lease.release()

    def _cost(self, size_bytes: int) -> int:
        return size_bytes + min(size_bytes, self._window_bytes)
