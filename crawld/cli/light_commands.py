"""Commands and groups of Typer that load little: plain help, and values read without pydantic.

Typer converts each value by a pydantic model, which takes longer to load and make than most
commands run. A value that is of its parameter's type already needs none; all others take that way.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

_PLAIN_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?\Z").match

OPTIONAL_VALUES = {"--watch": "2"}
"""Options that take a number, or this one if none follows."""


class LightCommand(TyperCommand):
    """A command whose plain values are not converted."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 (a class that typer does not export)
        """Return its parameters, and that of its help."""
        return _lightened(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Read arguments; an option of `OPTIONAL_VALUES` may stand without its value."""
        given: list[str] = []
        for at, word in enumerate(args):
            given.append(word)
            if word in OPTIONAL_VALUES and not _PLAIN_NUMBER(" ".join(args[at + 1 : at + 2])):
                given.append(OPTIONAL_VALUES[word])
        return super().parse_args(ctx, given)


class LightGroup(TyperGroup):
    """A group of such commands; its help shows the whole summary of each command."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401
        """Return its parameters, and that of its help."""
        return _lightened(super().get_params(ctx))

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the commands and their summaries; long summaries wrap."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, (each.help or "").partition("\n\n")[0]) for name, each in found if each]
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join(text.split())) for name, text in rows])


def _lightened(parameters: list[Any]) -> list[Any]:
    for each in parameters:
        if not isinstance(each.process_value, functools.partial):
            each.process_value = functools.partial(_process, each, each.process_value)
    return parameters


def _process(
    parameter: Any,  # noqa: ANN401
    convert: Callable[[Any, object], object],
    context: Any,  # noqa: ANN401
    value: object,
) -> object:
    """Return a plain value as its type, any other as typer converts it."""
    if value is None and not parameter.required and not parameter.multiple and parameter.nargs == 1:
        plain = None
    elif (plain := _plain_value(parameter, value)) is None:
        return convert(context, value)
    return plain if parameter.callback is None else parameter.callback(context, parameter, plain)


def _plain_value(parameter: Any, value: object) -> object | None:  # noqa: ANN401
    """Return a value as the type of its parameter if that is plain; None: typer must decide."""
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if kind == list[str] and isinstance(value, tuple) and value:
        return list(value) if all(map(_is_text, value)) else None
    if parameter.multiple or parameter.nargs != 1:
        return None
    if not isinstance(value, str) or isinstance(value, Enum):
        return value if type(value) is kind else None
    if kind in (str, Path):
        return kind(value) if _is_text(value) else None
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return next((each for each in kind if each.value == value), None)
    if kind in (int, float) and _PLAIN_NUMBER(value):
        number = float(value) if kind is float else int(value) if value.isdecimal() else None
        return number if number is not None and _is_in_range(parameter, number) else None
    return None


def _is_text(value: object) -> bool:
    """Whether a value is text with a UTF-8 form: arguments may be any bytes."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _is_in_range(parameter: Any, number: float) -> bool:  # noqa: ANN401
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    return (least is None or number >= least) and (most is None or number <= most)
