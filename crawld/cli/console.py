"""The console of Rich for tables and live views: without control characters and markup."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import Any, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from crawld.cli.output import printable

PIPED_COLUMNS = 1000
"""Table width without a terminal, so that nothing wraps."""


class _Console(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        # Rich would exit with an error; `with_exit_code` handles this
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console for tables and progress, without markup."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPED_COLUMNS
    return _Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def drawn_lines(view: RenderableType, columns: int) -> list[str]:
    """Return the lines of a view on a terminal, with the colors that standard output has."""
    target = io.StringIO()
    _Console(
        file=target,
        width=columns,
        force_terminal=True,
        color_system=cast("Any", console().color_system),
        markup=False,
        highlight=False,
        emoji=False,
    ).print(view)
    return target.getvalue().rstrip("\n").split("\n")
