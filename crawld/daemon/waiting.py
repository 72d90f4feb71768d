"""Wait for the first of several events."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

import trio

Events: TypeAlias = Collection[trio.Event]
"""Events of which each ends a wait."""


async def wait_any(*events: trio.Event) -> None:
    """Wait until one of some events is set."""
    if len(events) == 1:
        await events[0].wait()
        return

    async def wait(event: trio.Event) -> None:
        await event.wait()
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for event in events:
            nursery.start_soon(wait, event)
