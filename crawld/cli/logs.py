"""Log setup: one line per event on stderr, `key=value` for people or JSON for programs."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, TextIO, cast

import structlog
import structlog.tracebacks
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from crawld.cli.output import clean, printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console


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


def log_above(live_console: Console, *, level: str) -> None:
    """Print the log from a level on above the live view of a console."""
    from rich.file_proxy import FileProxy

    above = cast("TextIO", FileProxy(live_console, sys.stderr))
    configure_logs(style="console", level=lambda: level, stream=above, colors=True)


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
    render = structlog.dev.ConsoleRenderer(
        colors=colors, exception_formatter=_plain_traceback, pad_event_to=20
    )

    def render_printable(logger: WrappedLogger, method: str, event: EventDict) -> str:
        # The renderer shows other values by their `repr`, which has no control characters.
        texts = {key: clean(value) for key, value in event.items() if isinstance(value, str)}
        return render(logger, method, {**event, **texts})

    return render_printable


def _plain_traceback(stream: TextIO, error: ExcInfo) -> None:
    text = StringIO()
    structlog.dev.plain_traceback(text, error)
    stream.write(printable(text.getvalue()))


def _json_line(value: object, *, default: Callable[[object], object]) -> str:
    return printable_json(json.dumps(value, default=default, ensure_ascii=False))


_JSON: tuple[Processor, ...] = (
    # The default shows the local variables of each frame: URLs, bodies, and request headers.
    structlog.processors.ExceptionRenderer(
        structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    ),
    structlog.processors.JSONRenderer(_json_line, default=str),
)
