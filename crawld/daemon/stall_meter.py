"""Measure how long the event loop stands still, and what held it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class StallMeter:
    """Knows what is being analysed.

    Attributes:
        passes: passes of the event loop so far.
        page: the page that the event loop analysed last.
    """

    def __init__(self) -> None:
        self.passes = 0
        self.page: str | None = None

    @contextmanager
    def on_thread(self, url: str) -> Iterator[None]:
        """Note a page that is analysed on a thread."""
        yield
