"""Long reads are made in slices with rests between them, which leave the event loop its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import trio

from crawld.store.engine.database import Database

T = TypeVar("T")

REST: Final = 2.0
"""Rest after each slice, in times of its work."""


async def rested(database: Database, function: Callable[..., T], *args: object) -> T:
    """Return what a function reads on a reader's thread, after the rest that follows."""
    began_s = trio.current_time()
    found = await database.read(function, *args)
    await trio.sleep(REST * (trio.current_time() - began_s))
    return found
