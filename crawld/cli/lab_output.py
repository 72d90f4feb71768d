"""Progress and result files of `crawld lab`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from crawld.errors import OperatorError


def progress() -> Progress:
    """Return a bar on stderr that vanishes at its end."""
    return Progress(
        TextColumn("{task.description:<20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def chosen_names(given: str, known: Iterable[str], what: str, also: str = "") -> list[str]:
    """Return the names of a comma-separated option.

    Args:
        what: what is named, for the message.
        also: another name that the option knows.

    Raises:
        OperatorError: one is not known.
    """
    names = [name.strip() for name in given.split(",") if name.strip()]
    listed = [*known]
    if unknown := [name for name in names if name not in listed]:
        shown = ", ".join([*listed, *([also] if also else [])])
        raise OperatorError(f"unknown {what} {unknown[0]!r}", hint=f"known: {shown}")
    return names


def write_json(path: Path, value: dict[str, object]) -> None:
    """Replace a result file atomically, so that a reader never sees an incomplete one."""
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror}") from error
