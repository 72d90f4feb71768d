"""How commands speak: figures for people, JSON for programs, one exit code an ending.

What a server sent may end up on a terminal, so every foreign text goes through `clean`: control
characters would move the cursor or worse. Rich's markup is off for the same reason.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import typer
from rich.console import Console

from crawld.errors import EXIT_OK, CrawldError

P = ParamSpec("P")
E = TypeVar("E", bound=BaseException)

EXIT_INTERRUPTED = 130
"""Ended by Ctrl-C before there was anything to drain; 128 + SIGINT, as shells count."""

PIPED_COLUMNS = 1000
"""Width of what is piped: a program or a file has no margin to keep."""

_BARS = "▁▂▃▄▅▆▇█"


def clean(text: str | None) -> str:
    """Return a foreign text as one printable line."""
    if text is None:
        return ""
    if text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_control(each) else each for each in text)


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def sparkline(values: Sequence[float]) -> str:
    """Return values of [0, 1] as a row of bars."""
    top = len(_BARS) - 1
    return "".join(_BARS[round(min(max(value, 0.0), 1.0) * top)] for value in values)


def json_text(value: object) -> str:
    """Return JSON for a program, readable by a person too."""
    return json.dumps(value, ensure_ascii=False, indent=2)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # Rich would end the process as a failure; `with_exit_code` knows better
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return where tables and progress go; nothing in them is markup."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPED_COLUMNS
    return _Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def with_exit_code(command: Callable[P, int | None]) -> Callable[P, None]:
    """Make a command end as every command does.

    An operator's error is a message, its hint and its exit code, never a traceback; a reader that
    went away (`| head`) is no error; what else is raised is a bug and shows where.
    """

    @functools.wraps(command)
    def ends(*args: P.args, **kwargs: P.kwargs) -> None:
        raise typer.Exit(_exit_code(functools.partial(command, *args, **kwargs)))

    return ends


def _exit_code(command: Callable[[], int | None]) -> int:
    try:
        code = command() or EXIT_OK
        sys.stdout.flush()
    except BrokenPipeError:
        # else the interpreter would flush into the closed pipe again as it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except Exception as error:
        known = find_cause(error, CrawldError)
        if known is None:
            raise
        print(f"error: {known}", file=sys.stderr)
        return known.exit_code
    except BaseException as error:
        if find_cause(error, KeyboardInterrupt) is None:
            raise
        return EXIT_INTERRUPTED
    return code


def find_cause(error: BaseException, kind: type[E]) -> E | None:
    """Return the error of a kind that an error is, or that a group of errors consists of."""
    if isinstance(error, kind):
        return error
    if isinstance(error, BaseExceptionGroup):
        causes: list[E | None] = [find_cause(each, kind) for each in _members(error)]
        return causes[0] if None not in causes else None
    return None


def _members(group: BaseExceptionGroup[Any]) -> Sequence[BaseException]:
    return group.exceptions
