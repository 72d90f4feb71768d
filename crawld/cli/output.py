"""Output and exit codes of commands.

Text from servers may reach a terminal, where control characters could move the cursor or worse. So
they are removed from everything that is printed: tables and progress by the console
(`cli/console.py`), errors and log lines by `printable`, JSON by `printable_json`. Rich's markup is
off for the same reason.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import typer

from crawld.errors import EXIT_OK, CrawldError, OperatorError, StoreError
from crawld.extras import install_command

P = ParamSpec("P")
E = TypeVar("E", bound=BaseException)

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C without a drain: 128 + SIGINT, as in shells."""

_BARS = "▁▂▃▄▅▆▇█"


def print_progress(line: str) -> None:
    """Print a line on stderr at once."""
    print(line, file=sys.stderr, flush=True)


def clean(text: str | None) -> str:
    """Return untrusted text as one printable line."""
    if text is None:
        return ""
    if text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_control(each) else each for each in text)


def printable(text: str) -> str:
    """Return untrusted text as printable lines: only line ends stay."""
    if "\n" not in text:
        return clean(text)
    return "\n".join(map(clean, text.split("\n")))


def printable_json(text: str) -> str:
    """Return JSON with every control character escaped; JSON itself demands it only below 32."""
    if text.isprintable():
        return text
    # Between its strings, JSON has only line ends besides printable characters.
    return "".join(
        json.dumps(each)[1:-1] if each != "\n" and _is_control(each) else each for each in text
    )


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def sparkline(values: Sequence[float]) -> str:
    """Return values in [0, 1] as a row of bars."""
    top = len(_BARS) - 1
    return "".join(_BARS[round(min(max(value, 0.0), 1.0) * top)] for value in values)


def json_text(value: object) -> str:
    """Return indented JSON."""
    return printable_json(json.dumps(value, ensure_ascii=False, indent=2))


def with_exit_code(command: Callable[P, int | None]) -> Callable[P, None]:
    """Make a command exit with its code.

    A `CrawldError` prints its message and hint, never a traceback. A closed output (`| head`) is
    not an error. Any other exception is a bug and propagates.
    """

    @functools.wraps(command)
    def exits(*args: P.args, **kwargs: P.kwargs) -> None:
        raise typer.Exit(_exit_code(functools.partial(command, *args, **kwargs)))

    return exits


def _exit_code(command: Callable[[], int | None]) -> int:
    try:
        code = command() or EXIT_OK
        sys.stdout.flush()
    except BrokenPipeError:
        # keeps the interpreter from flushing into the closed pipe at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except Exception as error:
        known = find_cause(error, CrawldError)
        if known is None:
            raise
        print(f"error: {printable(str(known))}", file=sys.stderr)
        return known.exit_code
    except BaseException as error:
        if find_cause(error, KeyboardInterrupt) is None:
            raise
        return EXIT_INTERRUPTED
    return code


def exit_beneath_threads(end: SystemExit) -> None:
    """End the process at once if abandoned calls still run in threads, else return.

    Everything is closed by now: the exit of a command comes after its event loop.
    """
    workers = sys.modules.get("crawld.workers")  # light commands never load it
    if workers is not None and workers.calls_under_way():
        exit_now(end.code if isinstance(end.code, int) else EXIT_OK)


def exit_now(exit_code: int) -> None:
    """End the process without finalizing Python, which would need its threads to end first."""
    with contextlib.suppress(OSError):  # nobody reads any more
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(exit_code)


def find_cause(error: BaseException, kind: type[E]) -> E | None:
    """Return an error of a kind: the error itself, or the first of a group of only that kind."""
    if isinstance(error, kind):
        return error
    if isinstance(error, BaseExceptionGroup):
        causes: list[E | None] = [find_cause(each, kind) for each in _members(error)]
        return causes[0] if None not in causes else None
    return None


def _members(group: BaseExceptionGroup[Any]) -> Sequence[BaseException]:
    return group.exceptions


def missing_extra(error: ModuleNotFoundError, extra: str) -> OperatorError:
    """Return the error for a command whose optional packages are not installed."""
    return OperatorError(
        f"this command needs {error.name}, which is not installed",
        hint=install_command(extra),
    )


def require_database(db: Path) -> None:
    """Refuse a database that does not exist.

    Raises:
        StoreError: it does not exist.
    """
    if not db.exists():
        raise StoreError(f"there is no database {db}", hint="give an existing file with --db")
