"""`--watch`: show the result of a command again at intervals."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from crawld.cli.screen import open_screen
from crawld.cli.session import Session
from crawld.core.display import delay_text
from crawld.errors import EXIT_OK, UnreachableError

if TYPE_CHECKING:
    from crawld.cli.client import Client

Command = Callable[[Session], object]


def watch(command: Command, client: Client, interval_s: float, *, as_json: bool) -> int:
    """Show the result of a command at intervals, until q or Ctrl-C; return the exit code.

    While the daemon does not answer, as when it is restarted, that is shown instead. With JSON each
    result is one line.

    Raises:
        CrawldError: the command fails, or no daemon answers at the start.
    """
    with contextlib.suppress(KeyboardInterrupt):
        if as_json:
            while True:
                command(Session(client, as_json=True, in_lines=True))
                time.sleep(interval_s)
        show_at_intervals(lambda: _view(command, client), interval_s)
    return EXIT_OK


def show_at_intervals(view: Callable[[], RenderableType], interval_s: float) -> None:
    """Draw a view, and draw it anew at intervals until q.

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
