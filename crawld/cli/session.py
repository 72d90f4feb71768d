"""The connection and the output of one `crawlctl` command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from crawld.cli.console import console
from crawld.cli.output import printable_json
from crawld.cli.response import read_response

if TYPE_CHECKING:
    from rich.console import RenderableType

    from crawld.cli.client import Client
    from crawld.daemon.api.schemas.status import Done

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """The first argument of every command: the client, and how to show its result.

    Attributes:
        as_json: whether as JSON.
        draw: shows what was rendered; None: it is printed.
        in_lines: whether JSON is printed on one line.
    """

    client: Client
    as_json: bool
    draw: Callable[[RenderableType], None] | None = None
    in_lines: bool = False

    def show(self, body: bytes, render: Callable[[T], RenderableType]) -> T:
        """Print a response body as JSON or rendered; return the value that was rendered.

        Args:
            render: takes the model of the response, or its JSON as records.

        Raises:
            OperatorError: the body is not JSON, or lacks what `render` reads.
        """
        value: T = read_response(body)
        if self.as_json and self.in_lines:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            print(printable_json(text), flush=True)
        elif self.as_json:
            print(printable_json(body.decode()))
        elif self.draw is not None:
            self.draw(render(value))
        else:
            console().print(render(value))
        return value

    def show_done(self, body: bytes) -> None:
        """Print the result of a command."""
        self.show(body, _done_text)


def _done_text(done: Done) -> str:
    return done.done
