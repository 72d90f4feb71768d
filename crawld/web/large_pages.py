"""Large pages are rendered apart, a few at a time, so that small ones never wait behind them.

Rewriting a page of 5 MB takes a second or more. Such work has a database connection and a thread of
its own; the result is kept for a while if it is not too large, and readers who want the same one
wait for it together.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import trio

from crawld.web.reply import Postponed, Rendered, Reply

INLINE_BYTES: Final = 128 * 1024
"""Stored pages up to this size are rendered in a few milliseconds, with their look-up."""

INLINE_FILE_BYTES: Final = 1024 * 1024
"""Other copies, which are sent as they are, are read with their look-up up to this size."""

KEPT_BYTES: Final = 32 * 1024 * 1024
"""Rendered pages that are kept, in all, where no memory budget says less."""

MAX_WAITING: Final = 128
"""Readers who wait for large pages; more are told to come back."""

RENDERING_FACTOR: Final = 12
"""Most bytes that a rendering takes per byte read: a page takes two to five, of short links ten."""

READING_FACTOR: Final = 2
"""The same of a copy that is sent as it is: its stored and its decoded bytes."""

Render = Callable[[], Awaitable[Reply | Postponed]]
Hold = Callable[[int], AbstractAsyncContextManager[None]]
"""Holds so many bytes of memory; waits until they are free."""


@asynccontextmanager
async def unlimited(_size_bytes: int) -> AsyncIterator[None]:
    """Hold memory where there is no budget."""
    yield


class _Rendering:
    """A page that is being rendered; the result goes to all who wait for it, kept or not."""

    __slots__ = ("ended", "rendered")

    def __init__(self) -> None:
        self.ended = trio.Event()
        self.rendered: Rendered | None = None


class LargePages:
    """The rendered large pages, and those being rendered, by ETag."""

    def __init__(
        self,
        hold: Hold = unlimited,
        kept_bytes: int = KEPT_BYTES,
        *,
        most_bytes: int | None = None,
    ) -> None:
        """Keep nothing yet.

        Args:
            hold: the memory of one rendering.
            kept_bytes: rendered pages that are kept, in all.
            most_bytes: what one rendering may take; None: any amount.
        """
        self.waiting = 0
        self._hold = hold
        self._max_kept_bytes = kept_bytes
        self._most_bytes = most_bytes
        self._kept: dict[str, Rendered] = {}  # the least recently rendered first
        self._under_way: dict[str, _Rendering] = {}

    def find(self, etag: str) -> Rendered | None:
        """Return a rendered page; None: render it. May be called from any thread."""
        return self._kept.get(etag)

    def admits(self, postponed: Postponed) -> bool:
        """Whether there can be enough memory for a response."""
        return self._most_bytes is None or postponed.memory_bytes <= self._most_bytes

    def most(self, memory_bytes: int) -> int:
        """Return so much memory, or the most that one response may take."""
        return memory_bytes if self._most_bytes is None else min(memory_bytes, self._most_bytes)

    async def reply(self, postponed: Postponed, render: Render) -> Reply | None:
        """Return the response to a postponed request; None if too many readers wait.

        Args:
            postponed: what the first look-up returned.
            render: makes the response, however long it takes.
        """
        if self.waiting >= MAX_WAITING:
            return None
        self.waiting += 1
        try:
            etag, finish = postponed.etag, postponed.finish
            if etag is None or finish is None:
                return await self._make(postponed, render)
            while (under_way := self._under_way.get(etag)) is not None:
                await under_way.ended.wait()
                if under_way.rendered is not None:
                    return finish(under_way.rendered)
            rendered = self._kept.get(etag)
            return await self._render(postponed, render) if rendered is None else finish(rendered)
        finally:
            self.waiting -= 1

    async def _render(self, postponed: Postponed, render: Render) -> Reply:
        """Make the page that other readers may wait for."""
        assert postponed.etag is not None
        under_way = self._under_way[postponed.etag] = _Rendering()
        try:
            reply = await self._make(postponed, render)
            under_way.rendered = reply.rendered
        finally:
            self._under_way.pop(postponed.etag).ended.set()
        if reply.rendered is not None:
            self._keep(reply.rendered)
        return reply

    async def _make(self, postponed: Postponed, render: Render) -> Reply:
        async with self._hold(postponed.memory_bytes):
            reply = await render()
        assert isinstance(reply, Reply)
        return reply

    def _keep(self, rendered: Rendered) -> None:
        if len(rendered.body) > self._max_kept_bytes:
            return
        self._kept[rendered.etag] = rendered
        size_bytes = sum(len(each.body) for each in self._kept.values())
        while size_bytes > self._max_kept_bytes:
            size_bytes -= len(self._kept.pop(next(iter(self._kept))).body)
