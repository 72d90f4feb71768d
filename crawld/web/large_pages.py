"""Large pages are rendered apart, a few at a time, so that small ones never wait behind them.

Rewriting a page of 5 MB takes a second or more. Such work has a database connection and a thread of
its own; the result is kept for a while, and readers who want the same one wait for it together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from crawld.web.reply import Postponed, Rendered, Reply

INLINE_BYTES: Final = 128 * 1024
"""Stored pages up to this size are rendered in a few milliseconds, with their look-up."""

KEPT_BYTES: Final = 32 * 1024 * 1024
"""Rendered pages that are kept, in all; at least the last one."""

MAX_WAITING: Final = 128
"""Readers who wait for large pages; more are told to come back."""

Render = Callable[[], Awaitable[Reply | Postponed]]


class LargePages:
    """The rendered large pages, and those being rendered, by ETag."""

    def __init__(self) -> None:
        self.waiting = 0
        self._kept: dict[str, Rendered] = {}  # the least recently rendered first
        self._under_way: dict[str, trio.Event] = {}

    def find(self, etag: str) -> Rendered | None:
        """Return a rendered page; None: render it. May be called from any thread."""
        return self._kept.get(etag)

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
                return await self._render(None, render)
            while (event := self._under_way.get(etag)) is not None:
                await event.wait()
            rendered = self._kept.get(etag)
            return await self._render(etag, render) if rendered is None else finish(rendered)
        finally:
            self.waiting -= 1

    async def _render(self, etag: str | None, render: Render) -> Reply:
        if etag is not None:
            self._under_way[etag] = trio.Event()
        try:
            reply = await render()
        finally:
            if etag is not None:
                self._under_way.pop(etag).set()
        assert isinstance(reply, Reply)
        if reply.rendered is not None:
            self._keep(reply.rendered)
        return reply

    def _keep(self, rendered: Rendered) -> None:
        self._kept[rendered.etag] = rendered
        size_bytes = sum(len(each.body) for each in self._kept.values())
        while size_bytes > KEPT_BYTES and len(self._kept) > 1:
            size_bytes -= len(self._kept.pop(next(iter(self._kept))).body)
