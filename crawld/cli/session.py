"""The connection and the output of one `crawlctl` command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from crawld.cli.output import console, printable_json
from crawld.cli.response import read_response

if TYPE_CHECKING:
    from rich.console import RenderableType

    from crawld.cli.client import Client
    from crawld.daemon.api.schemas.status import Done

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """The first argument of every command: the client, and whether to print JSON."""

    client: Client
    as_json: bool

    def show(self, body: bytes, render: Callable[[T], RenderableType]) -> T:
        """Print a response body as JSON or rendered; return the value that was rendered.

        Args:
            render: takes the model of the response, or its JSON as records.

        Raises:
            OperatorError: the body is not JSON, or lacks what `render` reads.
        """
        value: T = read_response(body)
        if self.as_json:
            print(printable_json(body.decode()))
        else:
            console().print(render(value))
        return value

    def show_done(self, body: bytes) -> None:
        """Print the result of a command."""
        self.show(body, _done_text)


def _done_text(done: Done) -> str:
    return done.done
