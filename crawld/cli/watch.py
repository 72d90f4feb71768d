"""`--watch`: show the result of a command again at intervals."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from rich.console import Group, RenderableType
from rich.text import Text

from crawld.cli.client import Client
from crawld.cli.screen import open_screen
from crawld.cli.session import Session
from crawld.core.display import delay_text
from crawld.errors import EXIT_OK, OperatorError, UnreachableError

Command = Callable[[Session], object]


class _ReadOnlyClient(Client):
    """A client of commands that are repeated: what changes something is not."""

    def post(self, path: str, form: dict[str, object], *, patient: bool = False) -> NoReturn:
        """Refuse the request."""
        raise OperatorError("--watch is for what shows something", hint="leave out --watch")


def watch(command: Command, socket: Path, interval_s: float, *, as_json: bool) -> int:
    """Show the result of a command at intervals, until q or Ctrl-C; return the exit code.

    While the daemon does not answer, as when it is restarted, that is shown instead. With JSON each
    result is one line.

    Raises:
        CrawldError: the command fails or changes something, or no daemon answers at the start.
    """
    client = _ReadOnlyClient(socket)
    with contextlib.suppress(KeyboardInterrupt):
        if as_json:
            while True:
                command(Session(client, as_json=True, in_lines=True))
                time.sleep(interval_s)
        show_at_intervals(lambda: _view(command, client), interval_s)
    return EXIT_OK


def show_at_intervals(view: Callable[[], RenderableType], interval_s: float) -> None:
    """Draw a view, and draw it again at intervals until q.

    Raises:
        CrawldError: the view fails, or no daemon answers at the start.
    """
    shown = view()
    with open_screen() as screen:
        while True:
            at = time.strftime("%H:%M:%S")
            foot = f"{at}, every {delay_text(interval_s)}; q quits" if screen.is_live else at
            screen.draw(shown, foot)
            if not screen.wait(interval_s):
                return
            try:
                shown = view()
            except UnreachableError as error:
                shown = Text(str(error), "yellow")


def _view(command: Command, client: Client) -> RenderableType:
    drawn: list[RenderableType] = []
    command(Session(client, as_json=False, draw=drawn.append))
    return Group(*drawn)
