"""Which reads nobody waits for: those of jobs and loaders.

They have a reader of their own, so that a turn of a host, which reads a row or two, never waits for
a job that looks at thousands. They wait in the queue of its thread: one that waited for a place on
the event loop would hold that for some of its passes, and ten jobs beside a busy crawl would wait
for seconds, each for a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_IN_BACKGROUND: Final = ContextVar("in_background", default=False)


@contextmanager
def background_reads() -> Iterator[None]:
    """Mark the reads of this task, and of the tasks that it starts, as background work."""
    token = _IN_BACKGROUND.set(True)
    try:
        yield
    finally:
        _IN_BACKGROUND.reset(token)


def in_background() -> bool:
    """Whether the reads of this task are background work."""
    return _IN_BACKGROUND.get()
