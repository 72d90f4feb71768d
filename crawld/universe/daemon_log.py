"""What the daemon logs, for the event log and the auditor instead of a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from structlog.typing import EventDict, WrappedLogger


@contextmanager
def listened_log(listen: Callable[[str, str, EventDict], None]) -> Iterator[None]:
    """Pass the level, name and facts of each logged event on, and print none."""

    def take(_: WrappedLogger, method: str, event: EventDict) -> EventDict:
        listen("error" if method == "exception" else method, str(event["event"]), event)
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[take], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)
