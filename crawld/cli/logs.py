"""Log setup: one line per event on stderr, `key=value` for people or JSON for programs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import TextIO

import structlog
import structlog.tracebacks
from structlog.typing import EventDict, Processor, WrappedLogger


def configure_logs(
    *, style: str, level: Callable[[], str], stream: TextIO | None = None, colors: bool = False
) -> None:
    """Send the log of the process to one stream.

    `style` is `json`, `console`, or `auto`: console on a terminal, else JSON. `level` returns the
    minimum level; it is called for each line, so that a reload can change it. `colors` are used
    even if the stream (by default stderr) is not a terminal.
    """
    stream = sys.stderr if stream is None else stream
    as_json = style == "json" or (style == "auto" and not stream.isatty())
    structlog.configure(
        processors=[
            _drop_below(level),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(_JSON if as_json else (_console(colors or stream.isatty()),)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )


def _drop_below(level: Callable[[], str]) -> Processor:
    severities = logging.getLevelNamesMapping()

    def drop_below(_: WrappedLogger, method: str, event: EventDict) -> EventDict:
        # `exception` logs an error with its traceback; it is not a level
        severity = severities.get(method.upper(), logging.ERROR)
        if severity < severities[level().upper()]:
            raise structlog.DropEvent
        return event

    return drop_below


def _console(colors: bool) -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=colors, exception_formatter=structlog.dev.plain_traceback, pad_event_to=20
    )


_JSON: tuple[Processor, ...] = (
    # The default shows the local variables of each frame: URLs, bodies, and request headers.
    structlog.processors.ExceptionRenderer(
        structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    ),
    structlog.processors.JSONRenderer(default=str, ensure_ascii=False),
)
